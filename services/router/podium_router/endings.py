"""Brings the ends of attempts to the log, in the background: no answer waits for its bookkeeping.

An end is begun before the caller hears of it and then kept until the log has it, or until its budget is
over: then the log itself settles the attempt, at the reserved maximum.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from podium_core.domain.errors import Code, PodiumError
from podium_router.calls import AttemptEnd
from podium_router.ports import AuditPort

_log = logging.getLogger(__name__)

UNCERTAIN_CODES = frozenset({Code.AUDIT_UNAVAILABLE, Code.DEADLINE, Code.CANCELLED, Code.INTERNAL})
"""After these the log may hold the attempt although no permit came back, so its end must be told."""


class Endings:
    """The ends that are on their way. Bounded: `check_room` refuses new attempts while too many are."""

    def __init__(self, audit: AuditPort, max_pending: int) -> None:
        self._audit = audit
        self._max_pending = max_pending
        self._tasks: dict[asyncio.Task[None], str] = {}

    @property
    def pending(self) -> int:
        """How many ends the log has not confirmed yet."""
        return len(self._tasks)

    def check_room(self) -> None:
        """Raise PodiumError (AUDIT_UNAVAILABLE) while too many ends are unconfirmed."""
        if len(self._tasks) >= self._max_pending:
            raise PodiumError(
                Code.AUDIT_UNAVAILABLE,
                "the audit log is behind; retry in a moment",
                reason="ENDINGS_PENDING",
                retry_after_s=1.0,
            )

    async def send(self, end: AttemptEnd) -> None:
        """Begin to tell the log, and return when the request is on its way."""
        sent = asyncio.Event()
        self._spawn(end, self._tell(end, sent))
        await sent.wait()

    def add(self, end: AttemptEnd) -> None:
        """Tell the log, waiting for nothing: for attempts that are being cancelled."""
        self._spawn(end, self._tell(end, asyncio.Event()))

    def add_after(self, begin: asyncio.Task[int], end: AttemptEnd) -> None:
        """Tell the log once it has decided about an attempt whose caller is gone."""
        self._spawn(end, self._tell_after(begin, end))

    async def confirmed(self, run_id: str, timeout_s: float) -> bool:
        """Wait for a run's ends that are on their way; say whether there were any and all are done."""
        tasks = [task for task, of_run in self._tasks.items() if of_run == run_id]
        if not tasks:
            return False
        _, late = await asyncio.wait(tasks, timeout=timeout_s)
        return not late

    async def drain(self, timeout_s: float) -> int:
        """Wait for the ends that are on their way; return how many are still unconfirmed."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        return len(left)

    def _spawn(self, end: AttemptEnd, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = end.run_id
        task.add_done_callback(self._tasks.pop)

    async def _tell(self, end: AttemptEnd, sent: asyncio.Event) -> None:
        try:
            await self._audit.end(end, sent)
        except PodiumError as error:
            if error.code is Code.NOT_FOUND and not end.dispatched:
                return  # the log never held it
            _log.error(
                "the log did not take an attempt's end; it will settle it at the reserved maximum",
                extra={"attempt_id": end.attempt_id, "code": error.code.value, "reason": error.reason},
            )
        finally:
            sent.set()

    async def _tell_after(self, begin: asyncio.Task[int], end: AttemptEnd) -> None:
        try:
            await begin
        except PodiumError as error:
            if error.code not in UNCERTAIN_CODES:
                return
        await self._tell(end, asyncio.Event())
