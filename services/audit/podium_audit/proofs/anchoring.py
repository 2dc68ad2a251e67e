"""Gets checkpoints anchored outside, in the background: each place by itself, none can hold up another."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from podium_audit.anchors import AnchorRow, AnchorStore
from podium_audit.log.store_thread import StoreThread
from podium_audit.ports import CheckpointRow, StoreError
from podium_audit.stores.readers import Readers
from podium_audit.telemetry import AnchorMetrics
from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError

_NS_PER_US = 1_000

_log = logging.getLogger(__name__)


class AnchorError(Exception):
    """The place did not anchor the checkpoint. `is_alarm`: it may have found the log to be forked."""

    def __init__(self, message: str, *, is_alarm: bool = False) -> None:
        super().__init__(message)
        self.is_alarm = is_alarm


class Anchor(Protocol):
    """One place outside that ties checkpoints down."""

    @property
    def kind(self) -> str:
        """Which kind of anchor it gives."""
        ...

    @property
    def name(self) -> str:
        """What it is called; the same name stands for the same place after a restart."""
        ...

    @property
    def interval_s(self) -> float:
        """How often it is asked, in seconds, while the log grows."""
        ...

    async def anchor(self, checkpoint: CheckpointRow) -> bytes:
        """Return what ties the checkpoint down, within its own deadline. Raises AnchorError, StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class Anchoring:
    """The places, what they gave, and the log to be anchored."""

    store: AnchorStore
    thread: StoreThread
    readers: Readers
    places: Sequence[Anchor]
    clock: Clock
    metrics: AnchorMetrics

    async def open(self) -> None:
        """Open the store. Raises StoreError."""
        await self.thread.do(self.store.open)

    async def close(self) -> None:
        """Let go of the store."""
        await self.thread.close(self.store.close)

    async def run(self) -> None:
        """Ask each place again and again, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for place in self.places:
                group.create_task(self._keep(place))
            await asyncio.Event().wait()

    async def newest(self, max_size: int) -> list[AnchorRow]:
        """Return the newest anchor of each place over up to so many leaves. Raises PodiumError."""
        return await self.thread.ask(lambda: self.store.newest(max_size))

    async def first_over(self, index: int) -> list[AnchorRow]:
        """Return the earliest anchor of each place that holds leaf `index`. Raises PodiumError."""
        return await self.thread.ask(lambda: self.store.first_over(index))

    async def anchor_now(self, place: Anchor, beyond: int) -> int:
        """Have the newest checkpoint anchored if it is larger than `beyond`; return the anchored size.

        Raises AnchorError, StoreError, PodiumError.
        """
        newest = await self.readers.ask(lambda view: view.log.checkpoint(), tenant_id="")
        if newest is None or newest.size <= beyond:
            return beyond
        data = await place.anchor(newest)
        row = AnchorRow(place.kind, place.name, newest.size, self.clock.now_ns() // _NS_PER_US, data)
        await self.thread.ask(lambda: self.store.put(row))
        return newest.size

    async def _keep(self, place: Anchor) -> None:
        anchored, was_well = 0, True
        self.metrics.anchored(place.kind, place.name, anchored)
        while True:
            try:
                anchored = await self.anchor_now(place, anchored)
            except (AnchorError, StoreError, PodiumError) as error:
                is_alarm = isinstance(error, AnchorError) and error.is_alarm
                self.metrics.failed(place.kind, place.name, is_alarm=is_alarm)
                if was_well or is_alarm:
                    level = logging.ERROR if is_alarm else logging.WARNING
                    _log.log(level, "%s %s: %s", place.kind, place.name, error)
                was_well = False
            else:
                self.metrics.anchored(place.kind, place.name, anchored)
                was_well = True
            await asyncio.sleep(place.interval_s)
