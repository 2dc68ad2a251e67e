"""What can be wrong with an export, and where: every failed check names its place."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NoReturn


class ExitCode(IntEnum):
    """The exit code of the command, one per kind of fault, in the order in which they are looked for."""

    OK = 0
    """Every check passed."""
    USAGE = 1
    """The command line or the file could not be read."""
    MALFORMED = 2
    """The file is not an export in the one form that is allowed."""
    CHECKPOINT = 3
    """The checkpoint is not signed by the log's key."""
    NOT_IN_LOG = 4
    """A leaf is not in the log that the checkpoint commits to: a byte of it, or its place, was changed."""
    CONTENT = 5
    """Content or a sent body does not match its commitment."""
    ORDER = 6
    """The run is incomplete, or its records contradict each other."""
    TAIL = 7
    """The end is missing: of the file, or of the run."""
    FORKED = 8
    """The log showed others another history: a checkpoint of it does not continue another."""
    PERMIT = 9
    """An attempt began without, or before, the verdict or plan that permits it."""
    ERASED = 10
    """Every check passed, but the content was erased under a leaf of the log: it is no longer there."""
    WITNESSES = 11
    """Too few of the witnesses that the reader trusts have cosigned."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The first thing found wrong. `line` counts from 1; `leaf_index` is the leaf's place in the log."""

    code: ExitCode
    message: str
    line: int | None = None
    leaf_index: int | None = None

    @property
    def place(self) -> str:
        """Where it is, for people."""
        where = [] if self.line is None else [f"line {self.line}"]
        if self.leaf_index is not None:
            where.append(f"leaf {self.leaf_index}")
        return ", ".join(where) or "the export"

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.message}")


def printable(text: str) -> str:
    """Return `text` with control characters escaped, so that a record cannot steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class FaultError(Exception):
    """Carries a Fault out of a check."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def fail(code: ExitCode, message: str, *, line: int | None = None, leaf_index: int | None = None) -> NoReturn:
    """Raise the FaultError for a failed check."""
    raise FaultError(Fault(code, message, line, leaf_index))
