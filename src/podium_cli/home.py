"""The home directory of one local Podium: configuration, certificates, data, logs, who runs."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium_cli.failures import CliError

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything of one local installation lies. `directory` is absolute."""

    directory: Path

    @property
    def tls_dir(self) -> Path:
        """The local CA's certificate and every service's certificate and key."""
        return self.directory / "tls"

    @property
    def tenants_file(self) -> Path:
        """Who may call."""
        return self.directory / "tenants.yaml"

    @property
    def pool_file(self) -> Path:
        """Which workers there are."""
        return self.directory / "pool.yaml"

    @property
    def plans_file(self) -> Path:
        """Plans that an operator has written."""
        return self.directory / "plans.yaml"

    @property
    def pins_file(self) -> Path:
        """What dated model names stand for."""
        return self.directory / "pins.yaml"

    @property
    def api_key_file(self) -> Path:
        """The demo tenant's API key, for this command and for examples."""
        return self.directory / "api-key"

    @property
    def vkey_file(self) -> Path:
        """The log's public key, as first seen: what exports are checked against."""
        return self.directory / "log.vkey"

    @property
    def endpoints_file(self) -> Path:
        """Where the services listen."""
        return self.directory / "endpoints.json"

    @property
    def audit_dir(self) -> Path:
        """The log and its sealed content."""
        return self.directory / "audit"

    @property
    def audit_keys_dir(self) -> Path:
        """The log's signing key and the key that content keys are wrapped with."""
        return self.directory / "audit-keys"

    @property
    def keys_dir(self) -> Path:
        """Provider keys that `podium up --use-keys` has found."""
        return self.directory / "keys"

    @property
    def export_dir(self) -> Path:
        """Exports that `podium verify RUN` has made."""
        return self.directory / "exports"

    def log_file(self, service: str) -> Path:
        """What a service has written."""
        return self.directory / "logs" / f"{service}.log"

    def process_file(self, service: str) -> Path:
        """Which process a service is."""
        return self.directory / "run" / f"{service}.json"

    def create(self) -> None:
        """Make the directories, readable by their owner only; CliError when that fails."""
        parts = (
            self.audit_dir,
            self.audit_keys_dir,
            self.keys_dir,
            self.directory / "logs",
            self.directory / "run",
        )
        try:
            for directory in (self.directory, *parts):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CliError(
                f"the home {self.directory} cannot be made: {error.strerror} ({error.filename})",
                hint="name another directory with --home",
            ) from None

    def read_api_key(self) -> str:
        """Return the saved API key; CliError when there is none."""
        try:
            return self.api_key_file.read_text(encoding="utf-8").strip()
        except OSError:
            hint = "start Podium with `podium up`, or give --url and --api-key of another installation"
            if self.tenants_file.exists():  # a key is stored as its hash only: a lost one needs a successor
                hint = "`podium keys create NAME` makes one: save it there"
            raise CliError(f"there is no API key in {self.api_key_file}", hint=hint) from None

    def read_endpoints(self) -> Mapping[str, Any]:
        """Return where the services of this home listen; CliError when it was never started."""
        try:
            endpoints = json.loads(self.endpoints_file.read_bytes())
        except (OSError, ValueError):
            endpoints = None
        if not isinstance(endpoints, dict):
            raise CliError(
                f"no Podium has been started in {self.directory}",
                hint="start one with `podium up`, or name another home with --home",
            )
        return endpoints

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the home for one `up` or `down` at a time."""
        with (self.directory / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CliError(f"another `podium up` or `podium down` is busy in {self.directory}") from None
            yield


def open_home(directory: Path) -> Home:
    """Return the home at `directory`, which need not exist yet."""
    return Home(directory.expanduser().absolute())


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, all of it or nothing."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
