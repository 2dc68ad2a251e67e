"""Records of keys that were not let in: who was claimed to ask, and how often; no address and no secret.

The first failure is on record at once, those of the next minute together: somebody who guesses keys writes no
more into the log than a record a minute for each key that there is.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from podium_audit.log.group_commit import GroupCommit
from podium_audit.records.commands import AppendNote, Event, RecordRead
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import IdFactory

ACTION: Final = "login_failed"
"""Of the record of a tenant's key, and the kind of the note about keys that nobody has."""

_TOGETHER_S: Final = 60.0
_log = logging.getLogger(__name__)

Claimed = tuple[str, str]
"""Tenant id and key id that a request named; both empty where there is no such key."""


class FailedLogins:
    """Counts failures and has them recorded."""

    def __init__(
        self,
        commit: GroupCommit,
        ids: IdFactory,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._commit = commit
        self._ids = ids
        self._sleep = sleep
        self._counts: Counter[Claimed] = Counter()
        self._some = asyncio.Event()

    def failed(self, claimed: Claimed) -> None:
        """Hear of a request that was refused."""
        self._counts[claimed] += 1
        self._some.set()

    async def keep_recorded(self) -> None:
        """Record what comes, until cancelled."""
        while True:
            await self._some.wait()
            await self.record()
            await self._sleep(_TOGETHER_S)

    async def record(self) -> None:
        """Record what has not been; what the log does not take now is counted further."""
        self._some.clear()
        for claimed, count in list(self._counts.items()):
            try:
                await self._commit.submit(self._command(claimed, count))
            except PodiumError as error:
                _log.warning("failed logins are not recorded yet", extra={"reason": error.reason})
                self._some.set()
                return
            self._counts[claimed] -= count
            if not self._counts[claimed]:
                del self._counts[claimed]

    def _command(self, claimed: Claimed, count: int) -> AppendNote | RecordRead:
        tenant_id, key_id = claimed
        event = Event.own(self._ids.new("evt"))
        facts = {"count": str(count)}
        if not tenant_id:
            return AppendNote(event, "", ACTION, facts)
        return RecordRead(event, "", key_id, ACTION, with_content=False, tenant_id=tenant_id, facts=facts)
