"""The log of a calibration: what was asked, what came of it. Reading it again means paying for nothing twice.

Each call writes two lines: `begun`, on disk before anything is sent, and `ended`. A call that began and never
ended was cut short; it may have been paid, so it counts at its reserved maximum and is not made again.
"""

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from podium_cli.failures import CliError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class CallKey:
    """What makes two calls the same: the worker, its model, the exact question, the room for the answer."""

    worker_id: str
    model: str
    item_id: str
    question_digest: str
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class Begun:
    """A call is about to be made, and may cost this much at most."""

    run_id: str
    max_cost_usd_micros: int
    time_us: int


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a call. `grade` is right, wrong or unscorable; the last is not on the card."""

    run_id: str
    grade: str
    reason: str
    cost_usd_micros: int
    input_tokens: int
    output_tokens: int
    latency_us: int
    finish_reason: str
    time_us: int
    may_repeat: bool = False
    """Nothing was paid and nothing learned: a later start asks again."""


class Journal:
    """An open log. What an earlier start has written is in `ended` and `lost`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ended: dict[CallKey, Ended] = {}
        self.lost: dict[CallKey, Begun] = {}
        self.spent_usd_micros = 0
        self._file = self._open()

    def begin(self, key: CallKey, begun: Begun) -> None:
        """Note that a call is about to be made; on disk when this returns."""
        self._write("begun", key, begun)
        self.lost[key] = begun

    def forget_lost(self) -> None:
        """Let calls that were cut short be made again; what they may have cost stays counted."""
        self.spent_usd_micros += self.at_risk_usd_micros
        self.lost.clear()

    def end(self, key: CallKey, ended: Ended) -> None:
        """Note what came of a call; on disk when this returns."""
        self._write("ended", key, ended)
        self._take_end(key, ended)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def at_risk_usd_micros(self) -> int:
        """The most that calls without an end may have cost."""
        return sum(begun.max_cost_usd_micros for begun in self.lost.values())

    def _open(self) -> "IO[bytes]":
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("a+b")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.seek(0)
            data = file.read()
        except BlockingIOError:
            file.close()
            raise CliError(f"another calibration writes to {self.path}") from None
        except OSError as error:
            raise CliError(f"the log {self.path} cannot be opened: {error.strerror}") from None
        whole = data.rfind(b"\n") + 1
        try:
            for number, line in enumerate(data[:whole].splitlines(), start=1):
                self._read(line, number)
            file.truncate(whole)  # a line cut short by a crash was never acted on
        except CliError:
            file.close()
            raise
        return file

    def _read(self, line: bytes, number: int) -> None:
        try:
            fields: dict[str, Any] = json.loads(line)
            version, event = fields.pop("v"), fields.pop("event")
            key = CallKey(**{name: fields.pop(name) for name in CallKey.__slots__})
            facts = {"begun": Begun, "ended": Ended}[event](**fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            version = None
        if version != _VERSION:
            raise CliError(
                f"{self.path} line {number} is no line of a calibration log",
                hint="name another log with --log, or mend that line",
            )
        if isinstance(facts, Begun):
            self.lost[key] = facts
        else:
            self._take_end(key, facts)

    def _take_end(self, key: CallKey, ended: Ended) -> None:
        self.lost.pop(key, None)
        self.spent_usd_micros += ended.cost_usd_micros
        if not ended.may_repeat:
            self.ended[key] = ended

    def _write(self, event: str, key: CallKey, facts: Begun | Ended) -> None:
        line = {"v": _VERSION, "event": event, **asdict(key), **asdict(facts)}
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
