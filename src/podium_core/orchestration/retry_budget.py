"""Second calls as a share of the first ones: a failing worker is not called ever more often."""

from typing import Final

_EARNED_PER_CALL: Final = 0.2
_MOST: Final = 100.0
_AT_FIRST: Final = 10.0


class RetryBudget:
    """How many second calls each worker may get, shared by all runs of one runner (as in Finagle).

    Each first call earns a fifth of a second one, up to a hundred; a worker starts with ten.
    """

    def __init__(self) -> None:
        self._left: dict[str, float] = {}

    def earn(self, worker_id: str) -> None:
        """Note a first call."""
        self._left[worker_id] = min(self._left.get(worker_id, _AT_FIRST) + _EARNED_PER_CALL, _MOST)

    def spend(self, worker_id: str) -> bool:
        """Say whether a second call may be made, and count it."""
        left = self._left.get(worker_id, _AT_FIRST)
        if left < 1:
            return False
        self._left[worker_id] = left - 1
        return True
