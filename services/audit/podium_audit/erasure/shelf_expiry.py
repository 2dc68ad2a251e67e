"""Drops months of records, where the store can, once nobody who has records there wants them any more.

The longest retention wins, a hold wins over all, and words go first: a month with words left stays.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Protocol

from podium_audit.custody import drops, holds, policies
from podium_audit.log.group_commit import GroupCommit
from podium_audit.records.commands import DropEvidence, Event
from podium_audit.records.shelves import month_of_shelf, shelf_of
from podium_audit.rows.custody import ControlRow, ShelfUse
from podium_audit.stores.readers import Readers
from podium_core.domain.clock import Clock
from podium_core.domain.ids import IdFactory

_US_PER_DAY = 86_400_000_000
_NS_PER_US = 1_000


class ShelfStore(Protocol):
    """The shelves of the log; used by one thread at a time. Every method raises StoreError."""

    def kept(self) -> list[int]:
        """Return the shelves that are not dropped, oldest first."""
        ...

    def use_of(self, shelf: int) -> ShelfUse:
        """Return what is on a shelf."""
        ...

    def has_any(self, shelf: int, run_ids: Sequence[str]) -> bool:
        """Whether one of these runs is on a shelf."""
        ...

    def drop(self, shelf: int, now_us: int) -> None:
        """Drop a shelf whole; one that was cut short is finished."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class ShelfExpiry:
    """One per process; replicas may do the same at once."""

    def __init__(
        self, store: ShelfStore, commit: GroupCommit, readers: Readers, clock: Clock, ids: IdFactory
    ) -> None:
        self._store = store
        self._commit = commit
        self._readers = readers
        self._clock = clock
        self._ids = ids

    async def expire(self, tenant_ids: Sequence[str]) -> list[int]:
        """Drop what has expired, and finish what broke off; return the shelves.

        Raises PodiumError, StoreError: the log or the store cannot now.
        """
        try:
            return await self._expire(tenant_ids)
        finally:
            await asyncio.to_thread(self._store.close)  # the next time is far away

    async def _expire(self, tenant_ids: Sequence[str]) -> list[int]:
        dropped = await self._broken_off(tenant_ids)
        now_us = self._clock.now_ns() // _NS_PER_US
        for shelf in await asyncio.to_thread(self._store.kept):
            if shelf >= shelf_of(now_us):
                break
            use = await asyncio.to_thread(self._store.use_of, shelf)
            days = await self._days(shelf, use)
            if days is None or now_us < use.last_sealed_us + days * _US_PER_DAY:
                continue
            await self._drop(shelf, use.tenant_ids, days)
            dropped.append(shelf)
        return dropped

    async def _broken_off(self, tenant_ids: Sequence[str]) -> list[int]:
        begun: dict[int, tuple[list[str], int]] = {}
        for tenant_id in tenant_ids:
            for row in await self._standing(drops.DROP, tenant_id):
                fields = json.loads(row.body)
                begun.setdefault(fields["shelf"], ([], fields["evidence_days"]))[0].append(tenant_id)
        for shelf, (owners, days) in begun.items():
            await self._drop(shelf, owners, days)
        return list(begun)

    async def _days(self, shelf: int, use: ShelfUse) -> int | None:
        """Return how long the shelf is kept after its last run; None: it may not go."""
        if use.has_words or not use.tenant_ids:
            return None
        longest = 0
        for tenant_id in use.tenant_ids:
            days = policies.policy_of(await self._standing(policies.POLICY, tenant_id)).evidence_days
            if days is None:
                return None
            longest = max(longest, days)
            for row in await self._standing(holds.HOLD, tenant_id):
                run_ids = holds.hold_of(row).run_ids
                if not run_ids or await asyncio.to_thread(self._store.has_any, shelf, run_ids):
                    return None
        return longest

    async def _drop(self, shelf: int, tenant_ids: Sequence[str], days: int) -> None:
        await self._say(shelf, tenant_ids, days, is_done=False)
        await asyncio.to_thread(self._store.drop, shelf, self._clock.now_ns() // _NS_PER_US)
        await self._say(shelf, tenant_ids, days, is_done=True)

    async def _say(self, shelf: int, tenant_ids: Sequence[str], days: int, *, is_done: bool) -> None:
        for tenant_id in tenant_ids:
            event_id = self._ids.new("evt")
            event = Event(event_id, event_id.encode(), "audit")
            month = month_of_shelf(shelf)
            await self._commit.submit(DropEvidence(event, tenant_id, shelf, month, days, is_done=is_done))

    async def _standing(self, kind: str, tenant_id: str) -> list[ControlRow]:
        return await self._readers.ask(lambda view: view.log.controls(kind, tenant_id), tenant_id=tenant_id)
