"""What a piece of foreign code may use, and what is said of it afterwards."""

from dataclasses import dataclass, field
from enum import StrEnum

_MIB = 1 << 20


class Verdict(StrEnum):
    """What a run of foreign code came to."""

    PASSED = "passed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    SANDBOX_ERROR = "sandbox_error"
    """The sandbox failed before the code had begun. Code that has begun cannot bring this about."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one run.

    `memory_bytes` bounds each process's address space and what all of them hold together; `work_bytes` all
    files together.

    """

    wall_s: float = 10.0
    memory_bytes: int = 1024 * _MIB
    file_bytes: int = 8 * _MIB
    work_bytes: int = 16 * _MIB
    process_count: int = 32
    open_files: int = 64
    output_bytes: int = 64 * 1024

    @property
    def cpu_s(self) -> int:
        """Processor seconds: one more than the clock allows, so that the clock speaks first."""
        return int(self.wall_s) + 1


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one run: `replies` are the lines that came over the result pipe with its nonce."""

    verdict: Verdict
    reason: str = ""
    stdout: bytes = b""
    stderr: bytes = b""
    replies: tuple[object, ...] = field(default_factory=tuple)

    @property
    def is_clean(self) -> bool:
        """Whether the code ended by itself and without an error."""
        return self.verdict is Verdict.PASSED
