"""Carries out erasures: decision on record, stored answers deleted, keys destroyed, completion on record.

What a crash parts is finished by `keep_finished`, on this replica or another: each step may be repeated.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from podium_audit.conversations import Conversations
from podium_audit.log.group_commit import GroupCommit, unavailable
from podium_audit.ports import RunKeys, StoreError
from podium_audit.records.commands import BeginErasure, Event, FinishErasure
from podium_audit.rows.custody import ErasureRow
from podium_audit.stores.readers import Readers
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import IdFactory

AT_ONCE = 64
"""Runs whose keys are destroyed by one commit of the key store."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """Who wants something erased, and why."""

    tenant_id: str
    principal_id: str
    basis: str
    case_id: str = ""


@dataclass(frozen=True, slots=True)
class Erased:
    """What became of one run: erased under `leaf_index`, or refused there for `refusal`."""

    run_id: str
    leaf_index: int
    refusal: str = ""


class Eraser:
    """One per process. Use it from one event loop."""

    def __init__(
        self,
        commit: GroupCommit,
        conversations: Conversations,
        keys: RunKeys,
        readers: Readers,
        ids: IdFactory,
        key_backup_days: int,
        *,
        retry_s: float = 5.0,
    ) -> None:
        self._commit = commit
        self._conversations = conversations
        self._keys = keys
        self._readers = readers
        self._ids = ids
        self._retry_s = retry_s
        self.key_backup_days = key_backup_days

    async def erase(self, run_ids: Sequence[str], order: Order) -> list[Erased]:
        """Erase at most `AT_ONCE` runs; return what became of each, in order.

        Raises PodiumError: NOT_FOUND, CONFLICT (a run goes on), AUDIT_UNAVAILABLE. What was decided by then
        is finished all the same, soon.
        """
        begun = await asyncio.gather(
            *(self._begin(run_id, order) for run_id in run_ids), return_exceptions=True
        )
        decided = [each for each in begun if isinstance(each, Erased | ErasureRow)]
        finished = await self._finish([each for each in decided if isinstance(each, ErasureRow)])
        for each in begun:
            if isinstance(each, BaseException):
                raise each
        done = {each.run_id: each for each in [*finished, *decided] if isinstance(each, Erased)}
        return [done[run_id] for run_id in run_ids]

    async def keep_finished(self) -> None:
        """Finish what was begun and not finished, now and then, until cancelled."""
        while True:
            try:
                while await self.finish_pending() == AT_ONCE:
                    pass
            except (PodiumError, StoreError):
                _log.warning("an erasure could not be finished; it is tried again")
            await asyncio.sleep(self._retry_s)

    async def finish_pending(self) -> int:
        """Finish some of the erasures that were begun; return how many. Raises PodiumError, StoreError."""
        pending = await self._readers.ask(lambda view: view.log.pending_erasures(AT_ONCE), tenant_id="")
        return len(await self._finish(pending))

    async def _begin(self, run_id: str, order: Order) -> Erased | ErasureRow:
        event_id = self._ids.new("evt")
        command = BeginErasure(
            Event.own(event_id), run_id, order.tenant_id, order.principal_id, order.basis, order.case_id
        )
        applied = await self._commit.submit(command)
        index = applied.leaf_indices[0]
        if applied.refusal or applied.erased_index is not None:
            return Erased(run_id, index, applied.refusal)
        found = await self._readers.ask(lambda view: view.log.run(run_id), tenant_id=order.tenant_id)
        if found is None:
            raise unavailable()
        row = found[0]
        return ErasureRow(row.run_no, run_id, order.tenant_id, row.key_no, index)

    async def _finish(self, pending: Sequence[ErasureRow]) -> list[Erased]:
        if not pending:
            return []
        await self._conversations.delete_of_runs([(each.tenant_id, each.run_id) for each in pending])
        try:
            await asyncio.to_thread(self._keys.erase, [each.key_no for each in pending])
        except StoreError as error:
            _log.error("the key store could not erase", exc_info=error)
            raise unavailable() from None
        return list(await asyncio.gather(*(self._record(each) for each in pending)))

    async def _record(self, pending: ErasureRow) -> Erased:
        event = Event.own(f"erased.{pending.begun_index}")  # whoever finishes it: there is one such record
        command = FinishErasure(event, pending.run_id, self.key_backup_days)
        applied = await self._commit.submit(command)
        return Erased(pending.run_id, applied.leaf_indices[0])
