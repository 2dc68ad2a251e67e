"""What has been kept for long enough: whole runs at a time, never one that a legal hold covers.

Words go first, by their keys; the records of a month go with its partition where the store has them.
"""

import asyncio
import logging

from podium_audit.custody import erasures, holds, policies
from podium_audit.erasure.eraser import AT_ONCE, Eraser, Order
from podium_audit.erasure.shelf_expiry import ShelfExpiry
from podium_audit.log.group_commit import GroupCommit
from podium_audit.ports import StoreError
from podium_audit.records.commands import Event, SetRetention
from podium_audit.stores.readers import Readers
from podium_core.config.tenants import Tenant, Tenants
from podium_core.config.watched import Source
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import IdFactory

SERVICE = "audit"
"""Who erases what has expired, in the record."""

_US_PER_DAY = 86_400_000_000
_NS_PER_US = 1_000

_log = logging.getLogger(__name__)


class Expiry:
    """One per process; several replicas may do the same at once, since each step may be repeated."""

    def __init__(
        self,
        commit: GroupCommit,
        eraser: Eraser,
        readers: Readers,
        tenants: Source[Tenants],
        clock: Clock,
        ids: IdFactory,
        shelves: ShelfExpiry | None = None,
        *,
        interval_s: float,
    ) -> None:
        self._commit = commit
        self._eraser = eraser
        self._readers = readers
        self._tenants = tenants
        self._clock = clock
        self._ids = ids
        self._shelves = shelves
        self._interval_s = interval_s

    async def keep_expired(self) -> None:
        """Take over policies and erase what has expired, now and then, until cancelled."""
        while True:
            for tenant in self._tenants.current.tenants:
                try:
                    await self.expire(tenant)
                except (PodiumError, StoreError):
                    _log.warning("expiry could not finish", extra={"tenant_id": tenant.tenant_id})
            await self._drop_months()
            await asyncio.sleep(self._interval_s)

    async def expire(self, tenant: Tenant) -> int:
        """Erase the words of a tenant's runs that have expired; return how many runs.

        Raises PodiumError, StoreError: the log or a store cannot now.
        """
        await self._take_over(tenant)
        tenant_id = tenant.tenant_id
        rows = await self._readers.ask(
            lambda view: view.log.controls(policies.POLICY, tenant_id), tenant_id=tenant_id
        )
        days = policies.policy_of(rows).words_days
        if days is None:
            return 0
        before_us = self._clock.now_ns() // _NS_PER_US - days * _US_PER_DAY
        count, after_no = 0, 0
        while True:
            held = await self._readers.ask(
                lambda view: view.log.controls(holds.HOLD, tenant_id), tenant_id=tenant_id
            )
            since = after_no
            found = await self._readers.ask(
                lambda view, since=since: view.log.expired_runs(  # type: ignore[misc]
                    tenant_id, sealed_before_us=before_us, after_no=since, limit=AT_ONCE
                ),
                tenant_id=tenant_id,
            )
            if not found:
                return count
            after_no = found[-1].run_no
            free = [row.run_id for row in found if not holds.over(held, row.run_id)]
            if free:
                order = Order(tenant_id, SERVICE, erasures.RETENTION)
                done = await self._eraser.erase(free, order)
                count += sum(not each.refusal for each in done)

    async def drop_months(self) -> list[int]:
        """Drop the months that have expired, where the store can; return their shelves.

        Raises PodiumError, StoreError: the log or a store cannot now.
        """
        if self._shelves is None:
            return []
        return await self._shelves.expire([tenant.tenant_id for tenant in self._tenants.current.tenants])

    async def _drop_months(self) -> None:
        try:
            await self.drop_months()
        except (PodiumError, StoreError) as error:
            _log.warning("months that have expired could not be dropped", exc_info=error)

    async def _take_over(self, tenant: Tenant) -> None:
        """Record the policy of tenants.yaml, if it is another one and may be."""
        event_id = self._ids.new("evt")
        command = SetRetention(
            Event(event_id, event_id.encode(), SERVICE), tenant.tenant_id, tenant.retention
        )
        try:
            await self._commit.submit(command)
        except PodiumError as error:
            if error.code is not Code.POLICY_DENIED:
                raise
            _log.warning(
                "a shorter retention waits for two keys to approve it", extra={"tenant_id": tenant.tenant_id}
            )
