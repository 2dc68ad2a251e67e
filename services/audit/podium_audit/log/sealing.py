"""Sealing as a conversation in time: wait a little for attempts that are ending, and seal lost runs."""

import asyncio
import contextlib
import logging
from dataclasses import replace

from podium_audit.leases import Leases
from podium_audit.log.group_commit import GroupCommit
from podium_audit.records.commands import Applied, Event, Seal
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.domain.run import RunOutcome

ABANDONED_REASON = "LEASE_LAPSED"

_MS_PER_S = 1_000
_GRACE_MS = 5_000
_LOOK_EVERY_S = 0.1
_REAPED_AT_ONCE = 256

_log = logging.getLogger(__name__)


class Sealer:
    """Seals runs. A run with open attempts is parked up to `wait_s`, then they count as unknown."""

    def __init__(self, commit: GroupCommit, leases: Leases, *, wait_s: float) -> None:
        self._commit = commit
        self._leases = leases
        self._wait_s = wait_s
        self._parked: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[Applied]] = set()

    async def seal(self, command: Seal) -> Applied:
        """Return once the run is sealed, even if the caller is gone before. Raises PodiumError."""
        task = asyncio.ensure_future(self._seal(command))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def attempt_ended(self, run_id: str, open_attempts: int) -> None:
        """Hear that an attempt's end is committed; wakes the run's seal when it was the last one."""
        if not open_attempts and (ended := self._parked.get(run_id)) is not None:
            ended.set()

    async def drain(self, timeout_s: float) -> None:
        """Wait until no seal is under way, at most `timeout_s` seconds."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)

    async def _seal(self, command: Seal) -> Applied:
        run_id = command.run_id
        ended = self._parked.setdefault(run_id, asyncio.Event())
        try:
            applied = await self._commit.submit(command)
            if not applied.open_attempts:
                return applied
            with contextlib.suppress(PodiumError):
                await self._leases.renew([run_id], int(self._wait_s * _MS_PER_S) + _GRACE_MS)
            sealed = await self._wait(command, ended)
        finally:
            ended.set()
            if self._parked.get(run_id) is ended:
                del self._parked[run_id]
        return sealed or await self._commit.submit(replace(command, settle_open=True))

    async def _wait(self, command: Seal, ended: asyncio.Event) -> Applied | None:
        """Return the seal once the last attempt has ended, None when that takes too long.

        One that ends at another replica wakes nobody here, so a shared log is looked at now and then.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s):
                while not await self._has_ended(ended):
                    applied = await self._commit.submit(command)
                    if not applied.open_attempts:
                        return applied
        return None

    async def _has_ended(self, ended: asyncio.Event) -> bool:
        if not self._commit.is_shared:
            return await ended.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY_S):
                return await ended.wait()
        return False

    def _forget(self, task: "asyncio.Task[Applied]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it; a caller that is gone does not need it


class Reaper:
    """Seals runs whose lease has lapsed as abandoned; their open attempts are settled as unknown."""

    def __init__(self, commit: GroupCommit, leases: Leases, ids: IdFactory, *, interval_s: float) -> None:
        self._commit = commit
        self._leases = leases
        self._ids = ids
        self._interval_s = interval_s

    async def run(self) -> None:
        """Reap until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            await self.reap()

    async def reap(self) -> int:
        """Seal runs that have lapsed by now; return how many. What cannot be sealed now stays lapsed."""
        try:
            lapsed = await self._leases.take_lapsed(_REAPED_AT_ONCE)
        except PodiumError:
            return 0  # the store is away, which is logged; the next time will do
        sealed = await asyncio.gather(*(self._abandon(run_id) for run_id in lapsed))
        return sum(sealed)

    async def _abandon(self, run_id: str) -> bool:
        command = Seal(
            Event(self._ids.new("evt"), b"", "audit"),
            run_id,
            RunOutcome.ABANDONED,
            ABANDONED_REASON,
            settle_open=True,
        )
        try:
            await self._commit.submit(command)
        except PodiumError as error:
            if error.code is not Code.AUDIT_UNAVAILABLE:
                await self._give_up(run_id, error)
            return False
        _log.warning("sealed a run as abandoned", extra={"run_id": run_id})
        return True

    async def _give_up(self, run_id: str, error: PodiumError) -> None:
        """Let go of a lease without an open run: its opening failed, or another replica has sealed it."""
        if error.reason not in ("RUN_UNKNOWN", "RUN_SEALED"):
            _log.warning("a lapsed run could not be sealed", extra={"run_id": run_id, "reason": error.reason})
        with contextlib.suppress(PodiumError):
            await self._leases.forget(run_id)
