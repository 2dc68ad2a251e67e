"""Warnings that a share of a tenant's or a key's budget is used: one record per share and month."""

import asyncio
import hashlib
import logging
from collections.abc import Callable

from podium_audit.log.group_commit import GroupCommit
from podium_audit.records.commands import AppendNote, Event, TenantMoney
from podium_core.config.tenants import Tenants
from podium_core.domain.errors import PodiumError

NOTE_KIND = "budget_warning"

_PERCENT = 100
_MAX_TOLD = 4_096
_log = logging.getLogger(__name__)

Warned = Callable[[str, int], None]
"""Hears of each warning: the tenant, and the share of its budget in percent."""


class BudgetWarnings:
    """Notes each share that is used up. The note's event id names share and month, so none comes twice."""

    def __init__(self, commit: GroupCommit, tenants: Callable[[], Tenants], warned: Warned) -> None:
        self._commit = commit
        self._tenants = tenants
        self._warned = warned
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def after(self, run_id: str, money: TenantMoney) -> int:
        """Hear of money once a run is sealed; return the largest share that is used, or 0."""
        tenant = self._tenants().by_id.get(money.tenant_id)
        if tenant is None or not money.budget_usd_micros:
            return 0
        used = [
            percent
            for percent in tenant.warn_percents
            if money.settled_usd_micros * _PERCENT >= money.budget_usd_micros * percent
        ]
        for percent in used:
            self._note(run_id, money, percent)
        return max(used, default=0)

    async def close(self) -> None:
        """Wait for the notes that are on their way."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _note(self, run_id: str, money: TenantMoney, percent: int) -> None:
        event_id = f"budget:{_owner(money)}:{money.month}:{percent}"
        if event_id in self._told:
            return
        if len(self._told) >= _MAX_TOLD:
            self._told.clear()  # the log still knows
        self._told.add(event_id)
        facts = {
            "month": money.month,
            "percent": str(percent),
            "budget_usd_micros": str(money.budget_usd_micros),
            "spent_usd_micros": str(money.settled_usd_micros),
        }
        if money.key_id:
            facts["key"] = money.key_id
        note = AppendNote(Event.own(event_id), run_id, NOTE_KIND, facts)
        task = asyncio.create_task(self._append(note, money.tenant_id, percent))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _append(self, note: AppendNote, tenant_id: str, percent: int) -> None:
        try:
            applied = await self._commit.submit(note)
        except PodiumError as error:
            self._told.discard(note.event.event_id)  # the next run's end tries again
            _log.warning("a budget warning is not recorded yet", extra={"reason": error.reason})
            return
        if applied.is_new:
            self._warned(tenant_id, percent)


def _owner(money: TenantMoney) -> str:
    """Return a name for whose money it is that fits an event id, which two full names would not."""
    if not money.key_id:
        return money.tenant_id
    return "key:" + hashlib.sha256(f"{money.tenant_id}/{money.key_id}".encode()).hexdigest()[:32]
