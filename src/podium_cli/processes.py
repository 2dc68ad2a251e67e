"""Service processes: started so that they outlive the command, found again by pid and start time."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podium_cli.home import Home

_STATE_FIELD = 0
_START_TIME_FIELD = 19


@dataclass(frozen=True, slots=True)
class Process:
    """A service's process. `birth` tells it from a later process that got the same pid."""

    service: str
    pid: int
    birth: str

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        birth = _birth(self.pid)
        return birth is not None and birth == self.birth


def spawn(
    home: Home, service: str, command: Sequence[str], environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Start a service in a session of its own, its output in its log, and note who it is."""
    with home.log_file(service).open("ab") as log:
        child = subprocess.Popen(  # noqa: S603 - our own modules, no shell
            command,
            env=environment,
            cwd=home.directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    note = {"pid": child.pid, "birth": _birth(child.pid) or ""}
    home.process_file(service).write_text(json.dumps(note) + "\n", encoding="utf-8")
    return child


def find(home: Home, service: str) -> Process | None:
    """Return the process that was last started as `service`, alive or not."""
    try:
        note = json.loads(home.process_file(service).read_bytes())
        return Process(service, int(note["pid"]), str(note["birth"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def forget(home: Home, service: str) -> None:
    """Drop the note of a process that is gone."""
    home.process_file(service).unlink(missing_ok=True)


def send(process: Process, number: signal.Signals) -> None:
    """Send a signal to a process, if it still runs."""
    if process.is_alive:
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return


def wait_gone(
    processes: Sequence[Process], timeout_s: float, sleep: Callable[[float], None]
) -> list[Process]:
    """Wait until all are gone or the time is up; return those that are left."""
    pause_s = 0.05
    left = [process for process in processes if process.is_alive]
    for _ in range(int(timeout_s / pause_s)):
        if not left:
            break
        sleep(pause_s)
        left = [process for process in left if process.is_alive]
    return left


def last_lines(path: Path, count: int = 15) -> list[str]:
    """Return the end of a log file."""
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 16_384))
            return log.read().decode("utf-8", "replace").splitlines()[-count:]
    except OSError:
        return []


def _birth(pid: int) -> str | None:
    """Return when the process began, in the system's own words; None when it does not run."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.parent.parent.joinpath("self").exists():
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[_STATE_FIELD] in ("Z", "X") else fields[_START_TIME_FIELD]
    shown = subprocess.run(  # noqa: S603 - fixed program, a number as argument
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, birth = shown.stdout.strip().partition(" ")
    return birth.strip() if birth and not state.startswith("Z") else None
