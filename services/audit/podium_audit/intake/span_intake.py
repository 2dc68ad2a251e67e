"""Spans on their way into the store: a bounded queue, one thread, and no wait for whoever sends them.

Spans may be lost, records may not: a store that fails costs the spans that waited, never a run.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from podium_audit.log.store_thread import StoreThread
from podium_audit.ports import StoreError
from podium_audit.rows.spans import SpanRow, SpanStore
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError

MAX_SHOWN = 5_000
"""Most spans of one waterfall."""

_FLUSH_EVERY_S = 0.25
_FLUSHED_AT_ONCE = 2_048
_SWEPT_AT_ONCE = 5_000
_SWEEP_EVERY_S = 60.0
_WAIT_S = 5.0
_RETRY_AFTER_S = 1.0
_NS_PER_DAY = 86_400 * 1_000_000_000

_log = logging.getLogger(__name__)


class SpanIntake:
    """Takes spans from one event loop. `kept_days` bounds their age, `queue_bound` those that wait."""

    def __init__(self, store: SpanStore, clock: Clock, *, kept_days: int, queue_bound: int = 20_000) -> None:
        self._store = store
        self._clock = clock
        self._kept_days = kept_days
        self._queue_bound = queue_bound
        self._queue: deque[SpanRow] = deque()
        self._thread = StoreThread("spans", wait_s=_WAIT_S)
        self._is_open = False

    def take(self, rows: Sequence[SpanRow]) -> None:
        """Let spans wait for the store; raise PodiumError (RATE_LIMITED), taking none, without room."""
        if len(self._queue) + len(rows) > self._queue_bound:
            raise PodiumError(
                Code.RATE_LIMITED,
                "too many spans wait to be stored: send these again shortly",
                reason="SPANS_QUEUE_FULL",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._queue.extend(rows)

    async def of_run(self, run_id: str, tenant_id: str) -> list[SpanRow]:
        """Return the spans of a run's traces, one more than `MAX_SHOWN` at most, those that wait included.

        Raises PodiumError (AUDIT_UNAVAILABLE) when the store cannot answer.
        """
        await self._flush()
        return await self._thread.ask(lambda: self._opened().of_run(run_id, tenant_id, MAX_SHOWN + 1))

    async def keep(self) -> None:
        """Store what waits and delete what is old, until cancelled."""
        sweep_at_ns = 0
        while True:
            await asyncio.sleep(_FLUSH_EVERY_S)
            await self._flush()
            if self._clock.monotonic_ns() >= sweep_at_ns:
                sweep_at_ns = self._clock.monotonic_ns() + int(_SWEEP_EVERY_S * 1e9)
                await self._do(self._sweep)

    async def close(self) -> None:
        """Store what waits and let go of the store."""
        await self._flush()
        await self._thread.close(self._store.close)

    async def _flush(self) -> None:
        while self._queue:
            rows = [self._queue.popleft() for _ in range(min(len(self._queue), _FLUSHED_AT_ONCE))]
            await self._do(lambda rows=rows: self._opened().add(rows))  # type: ignore[misc]

    async def _do(self, work: Callable[[], None]) -> None:
        try:
            await self._thread.do(work)
        except StoreError:
            self._is_open = False
            _log.exception("the span store could not do it: spans are lost")

    def _sweep(self) -> None:
        before_ns = self._clock.now_ns() - self._kept_days * _NS_PER_DAY
        while self._opened().sweep(before_ns, _SWEPT_AT_ONCE) == _SWEPT_AT_ONCE:
            pass

    def _opened(self) -> SpanStore:
        if not self._is_open:
            self._store.open()
            self._is_open = True
        return self._store
