"""Limits over all replicas: the meters in the store they share, asked from the event loop."""

from collections.abc import Callable, Sequence
from typing import Protocol

from podium_audit.log.store_thread import StoreThread
from podium_audit.slices import Lease, Wish
from podium_core.domain.limits import LimitName

Limits = Callable[[LimitName], int | None]


class MeterTable(Protocol):
    """Meters that several processes share; used by one thread. Every method raises StoreError."""

    def open(self) -> None:
        """Get ready."""
        ...

    def lease(self, holder_id: str, wishes: Sequence[Wish], limit_of: Limits, valid_ns: int) -> list[Lease]:
        """Book what the holder used and return its new slices."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class SharedMeters:
    """`Meters` over a table. `limit_of` is asked each time, so a changed file counts at once."""

    def __init__(
        self,
        table: MeterTable,
        limit_of: Limits,
        *,
        valid_ns: int,
        wait_s: float,
    ) -> None:
        self._table = table
        self._limit_of = limit_of
        self._valid_ns = valid_ns
        self._thread = StoreThread("meters", wait_s=wait_s)

    @property
    def valid_ns(self) -> int:
        """How long a slice lasts."""
        return self._valid_ns

    async def open(self) -> None:
        """Get ready. Raises StoreError."""
        await self._thread.do(self._table.open)

    async def lease(self, holder_id: str, wishes: Sequence[Wish]) -> list[Lease]:
        """Return the slices. Raises PodiumError (AUDIT_UNAVAILABLE)."""
        return await self._thread.ask(
            lambda: self._table.lease(holder_id, wishes, self._limit_of, self._valid_ns)
        )

    async def close(self) -> None:
        """Finish what is under way and let go of the table."""
        await self._thread.close(self._table.close)
