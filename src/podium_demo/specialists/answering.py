"""What every specialist shares: how it declines, what it may spend, and how it sees earlier results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

MAX_INSTRUCTION_CHARS = 2_000
"""Longer instructions are declined unread: every parser here is at worst quadratic in this length."""

MAX_RESULT_CHARS = 20_000
"""Longer earlier results are declined; answers are never longer than this."""

_MAX_OPERATIONS = 20_000
_MAX_CPU_NS = 500_000_000


class CannotAnswerError(Exception):
    """The specialist does not answer; the text says why, in plain words for the reader."""


class Budget:
    """The work one request may cause: counted operations, and CPU time as a backstop.

    `cpu_ns` reads the CPU time of the current thread, in nanoseconds.
    """

    def __init__(self, cpu_ns: Callable[[], int]) -> None:
        self._cpu_ns = cpu_ns
        self._started_ns = cpu_ns()
        self._operations = 0

    def spend(self, operations: int = 1) -> None:
        """Count work; raise CannotAnswerError when the request has used up its share."""
        self._operations += operations
        if self._operations > _MAX_OPERATIONS or self._cpu_ns() - self._started_ns > _MAX_CPU_NS:
            raise CannotAnswerError("that takes more work than one request may cause here")


DECLINES = "I cannot answer this:"
"""How every answer starts that is none."""


class Earlier:
    """Earlier results, oldest first. Remembers which were looked at, so that answers can build on them.

    Results that are declined answers hold numbers and words too, so nobody may build on them unaware.
    """

    def __init__(self, results: Sequence[str]) -> None:
        self._results = tuple(results)
        self.used = 0

    def latest(self) -> str:
        """Return the newest result: what `it` and `the result` mean."""
        if not self._results:
            raise CannotAnswerError("there is no earlier result to work on")
        self.used = max(self.used, 1)
        return _given(self._results[-1])

    def every(self, *, with_declined: bool = False) -> tuple[str, ...]:
        """Return all results: what `both`, `them` and `the results` mean."""
        if not self._results:
            raise CannotAnswerError("there are no earlier results to work on")
        self.used = len(self._results)
        if not with_declined:
            for result in self._results:
                _given(result)
        return self._results


def _given(result: str) -> str:
    if result.startswith(DECLINES):
        raise CannotAnswerError("an earlier step gave no result to work on")
    return result


@dataclass(frozen=True, slots=True)
class Specialist:
    """A demo model. `solve` answers one plain instruction or raises CannotAnswerError."""

    model: str
    skills: tuple[str, ...]
    abilities: str
    solve: Callable[[str, Earlier, Budget], str]
