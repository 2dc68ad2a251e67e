"""Leases of open runs: whoever holds a run renews it, or the run is sealed as abandoned."""

import threading
from collections.abc import Collection, Sequence
from typing import Protocol

from podium_core.domain.clock import Clock

_NS_PER_MS = 1_000_000


class Leases(Protocol):
    """When each open run's lease ends. A lease never becomes shorter; 0 asks for the default length.

    The first methods are the log's thread's, which they keep waiting for the store at most; the others are
    the event loop's.
    """

    def keep_only(self, open_runs: Collection[str]) -> None:
        """Match the runs that are open, now and as this collection changes: new ones get a fresh lease."""
        ...

    def prepare(self, opening: Sequence[tuple[str, int]], beginning: Sequence[str]) -> None:
        """Ask at once for what `start` (run id, milliseconds) and `is_alive` of the next batch will need."""
        ...

    def start(self, run_id: str, lease_ms: int = 0) -> None:
        """Give a run its lease, before the run itself is durable."""
        ...

    def is_alive(self, run_id: str) -> bool:
        """Whether the run is open and its lease has not lapsed."""
        ...

    def end(self, run_id: str) -> None:
        """Forget a run that is sealed."""
        ...

    async def renew(self, run_ids: Sequence[str], lease_ms: int) -> list[str]:
        """Renew leases; return the runs that are lost: sealed, unknown, or about to be sealed as lapsed.

        Raises PodiumError (AUDIT_UNAVAILABLE), as the next two do.
        """
        ...

    async def take_lapsed(self, limit: int) -> list[str]:
        """Return runs whose lease has ended, for the caller to seal: from now on nobody renews them."""
        ...

    async def forget(self, run_id: str) -> None:
        """Forget a run that was lapsed, but is not there to be sealed."""
        ...


class MemoryLeases:
    """The leases of a log that has one process, in that process's memory."""

    def __init__(self, clock: Clock, *, default_ms: int, max_ms: int) -> None:
        self._clock = clock
        self._default_ms = default_ms
        self._max_ms = max_ms
        self._ends_ns: dict[str, int] = {}
        self._taken: set[str] = set()
        self._lock = threading.Lock()

    def keep_only(self, open_runs: Collection[str]) -> None:
        """Match the runs that are open: new ones get a fresh lease, the others are forgotten."""
        with self._lock:
            fresh_ns = self._end_ns(0)
            self._ends_ns = {run_id: self._ends_ns.get(run_id, fresh_ns) for run_id in open_runs}
            self._taken.intersection_update(self._ends_ns)

    def prepare(self, opening: Sequence[tuple[str, int]], beginning: Sequence[str]) -> None:
        """Nothing that is in memory need be asked for."""

    def start(self, run_id: str, lease_ms: int = 0) -> None:
        """Give a run its lease."""
        with self._lock:
            self._ends_ns[run_id] = self._end_ns(lease_ms)

    def is_alive(self, run_id: str) -> bool:
        """Whether the run is open and its lease has not lapsed."""
        return self._ends_ns.get(run_id, 0) > self._clock.monotonic_ns()

    def end(self, run_id: str) -> None:
        """Forget a run that is sealed."""
        with self._lock:
            self._ends_ns.pop(run_id, None)
            self._taken.discard(run_id)

    async def renew(self, run_ids: Sequence[str], lease_ms: int) -> list[str]:
        """Renew leases; return the runs that are lost."""
        end_ns = self._end_ns(lease_ms)
        lost: list[str] = []
        with self._lock:
            for run_id in run_ids:
                before_ns = self._ends_ns.get(run_id)
                if before_ns is None or run_id in self._taken:
                    lost.append(run_id)
                else:
                    self._ends_ns[run_id] = max(before_ns, end_ns)
        return lost

    async def take_lapsed(self, limit: int) -> list[str]:
        """Return runs whose lease has ended, those that were returned before among them."""
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            lapsed = [run_id for run_id, end_ns in self._ends_ns.items() if end_ns <= now_ns][:limit]
            self._taken.update(lapsed)
        return lapsed

    async def forget(self, run_id: str) -> None:
        """Forget a run."""
        self.end(run_id)

    def _end_ns(self, lease_ms: int) -> int:
        return self._clock.monotonic_ns() + lease_ns(lease_ms, self._default_ms, self._max_ms)


def lease_ns(asked_ms: int, default_ms: int, max_ms: int) -> int:
    """Return how long a lease lasts that was asked for, in nanoseconds."""
    return (min(asked_ms, max_ms) if asked_ms else default_ms) * _NS_PER_MS
