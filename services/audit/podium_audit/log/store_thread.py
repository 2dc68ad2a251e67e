"""A thread that owns a store. Callers wait for it, never longer than `wait_s`, and only so many at once."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from podium_audit.log.group_commit import unavailable
from podium_audit.ports import StoreError

T = TypeVar("T")

_MAX_WAITING = 1_024

_log = logging.getLogger(__name__)


class StoreThread:
    """Does work on a store, one piece after the other. Use it from one event loop."""

    def __init__(self, name: str, *, wait_s: float) -> None:
        self._name = name
        self._wait_s = wait_s
        self._waiting = 0
        self._is_well = True
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def ask(self, work: Callable[[], T]) -> T:
        """Return what the work returns.

        Raises what it raises, and PodiumError (AUDIT_UNAVAILABLE) instead of StoreError, or when the thread
        is too busy or does not get to it in time.
        """
        if self._waiting >= _MAX_WAITING:
            raise unavailable()
        self._waiting += 1
        done = asyncio.get_running_loop().run_in_executor(self._thread, self._work, work)
        done.add_done_callback(self._left)
        try:
            async with asyncio.timeout(self._wait_s):
                return await asyncio.shield(done)
        except TimeoutError:
            raise unavailable() from None

    async def do(self, work: Callable[[], T]) -> T:
        """Return what the work returns, however long it takes. Raises what it raises, StoreError among it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self, last: Callable[[], None]) -> None:
        """Finish what is under way, do one last piece of work and end the thread."""
        await self.do(last)
        self._thread.shutdown()

    def _left(self, done: "asyncio.Future[T]") -> None:
        self._waiting -= 1
        if not done.cancelled():
            done.exception()  # whoever waited has it

    def _work(self, work: Callable[[], T]) -> T:
        try:
            done = work()
        except StoreError:
            if self._is_well:
                _log.exception("the store of %s cannot be used: refusing until it can", self._name)
            self._is_well = False
            raise unavailable() from None
        self._is_well = True
        return done
