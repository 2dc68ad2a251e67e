"""Leases of open runs, in memory: whoever holds a run renews it, or the run is sealed as abandoned."""

import threading
from collections.abc import Iterable

from podium_core.domain.clock import Clock

_NS_PER_MS = 1_000_000


class Leases:
    """When each open run's lease ends. Shared by the writer thread and the event loop."""

    def __init__(self, clock: Clock, *, default_ms: int, max_ms: int) -> None:
        self._clock = clock
        self._default_ms = default_ms
        self._max_ms = max_ms
        self._ends_ns: dict[str, int] = {}
        self._cancelled: set[str] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ends_ns)

    def start(self, run_id: str, lease_ms: int = 0) -> None:
        """Give a run its lease; 0 asks for the default length."""
        with self._lock:
            self._ends_ns[run_id] = self._end_ns(lease_ms)

    def end(self, run_id: str) -> None:
        """Forget a run that is sealed."""
        with self._lock:
            self._ends_ns.pop(run_id, None)
            self._cancelled.discard(run_id)

    def cancel(self, run_ids: Iterable[str]) -> None:
        """Let whoever renews these runs hear that they must stop."""
        with self._lock:
            self._cancelled.update(run_ids)

    def cancelled(self, run_ids: Iterable[str]) -> list[str]:
        """Return those of these runs that must stop."""
        with self._lock:
            return [run_id for run_id in run_ids if run_id in self._cancelled]

    def keep_only(self, run_ids: Iterable[str]) -> None:
        """Match the runs that are open: new ones get a fresh lease, the others are forgotten."""
        with self._lock:
            fresh_ns = self._end_ns(0)
            self._ends_ns = {run_id: self._ends_ns.get(run_id, fresh_ns) for run_id in run_ids}
            self._cancelled.intersection_update(self._ends_ns)

    def is_alive(self, run_id: str) -> bool:
        """Whether the run is open and its lease has not lapsed."""
        return self._ends_ns.get(run_id, 0) > self._clock.monotonic_ns()

    def renew(self, run_ids: Iterable[str], lease_ms: int) -> list[str]:
        """Renew leases; return the runs that are lost: sealed, unknown, or lapsed and about to be sealed."""
        now_ns, end_ns = self._clock.monotonic_ns(), self._end_ns(lease_ms)
        lost: list[str] = []
        with self._lock:
            for run_id in run_ids:
                if self._ends_ns.get(run_id, 0) > now_ns:
                    self._ends_ns[run_id] = end_ns
                else:
                    lost.append(run_id)
        return lost

    def extend(self, run_id: str, lease_ms: int) -> None:
        """Let a run's lease last at least this much longer from now."""
        with self._lock:
            end_ns = self._ends_ns.get(run_id)
            if end_ns is not None:
                self._ends_ns[run_id] = max(end_ns, self._end_ns(lease_ms))

    def lapsed(self) -> list[str]:
        """Return the runs whose lease has ended."""
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            return [run_id for run_id, end_ns in self._ends_ns.items() if end_ns <= now_ns]

    def _end_ns(self, lease_ms: int) -> int:
        asked_ms = min(lease_ms, self._max_ms) if lease_ms else self._default_ms
        return self._clock.monotonic_ns() + asked_ms * _NS_PER_MS
