"""Leases over all replicas: a run opened at one is renewed, used and given up at any other."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from podium_audit.leases import lease_ns
from podium_audit.log.store_thread import StoreThread
from podium_audit.ports import StoreError
from podium_core.domain.clock import Clock

_NS_PER_MS: Final = 1_000_000
_TAKEN_MS: Final = 10_000
_REMOVED_AT_ONCE: Final = 4_096


class LeaseTable(Protocol):
    """Leases in a store; used by one thread at a time. Every method raises StoreError."""

    def open(self) -> None:
        """Get ready."""
        ...

    def put(self, lengths_ms: Mapping[str, int]) -> None:
        """Let runs have a lease of at least so many milliseconds from now."""
        ...

    def put_missing(self, run_ids: Sequence[str], length_ms: int) -> None:
        """Give a lease to those runs that have none."""
        ...

    def left_ns(self, run_ids: Sequence[str]) -> dict[str, int]:
        """Return how long the leases of these runs still last, of those that have one; below 0: lapsed."""
        ...

    def renew(self, run_ids: Sequence[str], length_ms: int) -> dict[str, bool]:
        """Renew leases that nobody has taken; return, of those that there are, whether they are taken."""
        ...

    def take_lapsed(self, limit: int, taken_ms: int) -> list[str]:
        """Take lapsed leases; another may take them again after `taken_ms`, should the taker be gone."""
        ...

    def remove(self, run_ids: Sequence[str]) -> None:
        """Remove leases."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class SharedLeases:
    """`Leases` over a table, of which the log's thread has one connection and the event loop another.

    Leases never become shorter, so what is known to be alive until some moment is not asked for again.
    While the store is away nobody can renew: lapsed runs are let alone until it is back for a default lease.
    """

    def __init__(
        self,
        of_log: LeaseTable,
        of_loop: LeaseTable,
        clock: Clock,
        *,
        default_ms: int,
        max_ms: int,
        wait_s: float,
    ) -> None:
        self._of_log = of_log
        self._of_loop = of_loop
        self._clock = clock
        self._default_ms = default_ms
        self._max_ms = max_ms
        self._thread = StoreThread("leases", wait_s=wait_s)
        self._open_runs: Collection[str] = ()
        self._alive_until_ns: dict[str, int] = {}
        self._ended: deque[str] = deque()
        self._patient_until_ns = self._in(default_ms)
        self._filled_until_ns = 0

    async def open(self) -> None:
        """Get ready. Raises StoreError."""
        await self._thread.do(self._of_loop.open)

    async def close(self) -> None:
        """Let go of the table."""
        await self._thread.close(self._of_loop.close)
        self._of_log.close()

    # --- in the log's thread ---------------------------------------------------------------------

    def keep_only(self, open_runs: Collection[str]) -> None:
        """Match the runs that are open, now and as this collection changes."""
        self._open_runs = open_runs
        self._alive_until_ns = {
            run_id: end_ns for run_id, end_ns in self._alive_until_ns.items() if run_id in open_runs
        }
        self._of_log.put_missing(list(open_runs), self._default_ms)

    def prepare(self, opening: Sequence[tuple[str, int]], beginning: Sequence[str]) -> None:
        """Ask at once for what the coming batch will need."""
        if opening:
            self._put({run_id: self._length_ms(lease_ms) for run_id, lease_ms in opening})
        self._look_up([run_id for run_id in beginning if not self._is_known_alive(run_id)])

    def start(self, run_id: str, lease_ms: int = 0) -> None:
        """Give a run its lease, unless it was prepared."""
        if not self._is_known_alive(run_id):
            self._put({run_id: self._length_ms(lease_ms)})

    def is_alive(self, run_id: str) -> bool:
        """Whether the run is open and its lease has not lapsed."""
        if not self._is_known_alive(run_id):
            self._look_up([run_id])
        return self._is_known_alive(run_id)

    def end(self, run_id: str) -> None:
        """Forget a run that is sealed; its row goes with the next ones."""
        self._alive_until_ns.pop(run_id, None)
        self._ended.append(run_id)

    def _put(self, lengths_ms: Mapping[str, int]) -> None:
        now_ns = self._clock.monotonic_ns()
        self._of_log.put(lengths_ms)
        for run_id, length_ms in lengths_ms.items():
            self._alive_until_ns[run_id] = now_ns + length_ms * _NS_PER_MS

    def _look_up(self, run_ids: Sequence[str]) -> None:
        if run_ids:
            now_ns = self._clock.monotonic_ns()
            for run_id, left_ns in self._of_log.left_ns(run_ids).items():
                self._alive_until_ns[run_id] = now_ns + left_ns

    def _is_known_alive(self, run_id: str) -> bool:
        return self._alive_until_ns.get(run_id, 0) > self._clock.monotonic_ns()

    # --- from the event loop ---------------------------------------------------------------------

    async def renew(self, run_ids: Sequence[str], lease_ms: int) -> list[str]:
        """Renew leases; return the runs that are lost. Raises PodiumError (AUDIT_UNAVAILABLE)."""
        length_ms = self._length_ms(lease_ms)
        return await self._thread.ask(lambda: self._renew(run_ids, length_ms))

    async def take_lapsed(self, limit: int) -> list[str]:
        """Return runs whose lease has ended. Raises PodiumError (AUDIT_UNAVAILABLE)."""
        return await self._thread.ask(lambda: self._take_lapsed(limit))

    async def forget(self, run_id: str) -> None:
        """Forget a run. Raises PodiumError (AUDIT_UNAVAILABLE)."""
        await self._thread.ask(lambda: self._of_loop.remove([run_id]))

    def _renew(self, run_ids: Sequence[str], length_ms: int) -> list[str]:
        is_taken = self._of_loop.renew(run_ids, length_ms)
        missing = [run_id for run_id in run_ids if run_id not in is_taken and run_id in self._open_runs]
        if missing:
            self._of_loop.put_missing(missing, length_ms)
        return [
            run_id
            for run_id in run_ids
            if is_taken.get(run_id, False) or (run_id not in is_taken and run_id not in missing)
        ]

    def _take_lapsed(self, limit: int) -> list[str]:
        try:
            self._tidy()
            if self._clock.monotonic_ns() < self._patient_until_ns:
                return []
            return self._of_loop.take_lapsed(limit, _TAKEN_MS)
        except StoreError:
            self._patient_until_ns = self._in(self._default_ms)
            raise

    def _tidy(self) -> None:
        """Remove what has ended, and now and then give a lease to open runs whose row a crash took away."""
        gone = [self._ended.popleft() for _ in range(min(len(self._ended), _REMOVED_AT_ONCE))]
        if gone:
            self._of_loop.remove(gone)
        if self._clock.monotonic_ns() >= self._filled_until_ns:
            self._of_loop.put_missing(list(self._open_runs), self._default_ms)
            self._filled_until_ns = self._in(self._default_ms)

    def _length_ms(self, lease_ms: int) -> int:
        return lease_ns(lease_ms, self._default_ms, self._max_ms) // _NS_PER_MS

    def _in(self, wait_ms: int) -> int:
        return self._clock.monotonic_ns() + wait_ms * _NS_PER_MS
