"""How many calls one worker takes at once. Further calls wait in a bounded queue, first come first served."""

import asyncio
from collections import deque
from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError

_RETRY_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """`max_waiting` calls per worker wait at most `max_wait_s` seconds each."""

    max_waiting: int = 256
    max_wait_s: float = 10.0


class Lane:
    """One worker's lane. `capacity` 0 means not limited."""

    def __init__(self, limits: LaneLimits) -> None:
        self.capacity = 0
        self._limits = limits
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def active(self) -> int:
        """How many calls are in the lane now."""
        return self._active

    async def enter(self, deadline: float) -> None:
        """Take a place in the lane; `leave` gives it back. `deadline` is a time of the event loop.

        Raises PodiumError RATE_LIMITED when too many wait, or no place came free in time.
        """
        if self._is_full():
            await self._wait(deadline)
        else:
            self._active += 1

    def leave(self) -> None:
        """Give the place back."""
        self._active -= 1
        self._admit()

    def resize(self, capacity: int) -> None:
        """Change the limit; calls that are in stay in."""
        if capacity != self.capacity:
            self.capacity = capacity
            self._admit()

    def _is_full(self) -> bool:
        return bool(self._waiting) or 0 < self.capacity <= self._active

    async def _wait(self, deadline: float) -> None:
        if len(self._waiting) >= self._limits.max_waiting:
            raise _busy()
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + self._limits.max_wait_s)):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled():  # the place came at the same moment: pass it on
                self._active -= 1
                self._admit()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise _busy() from None
            raise

    def _admit(self) -> None:
        while self._waiting and not 0 < self.capacity <= self._active:
            turn = self._waiting.popleft()
            if not turn.done():
                self._active += 1
                turn.set_result(None)


def _busy() -> PodiumError:
    return PodiumError(
        Code.RATE_LIMITED,
        "the worker is at its concurrency limit; retry, or raise limits.max_concurrency in pool.yaml",
        reason="WORKER_BUSY",
        retry_after_s=_RETRY_AFTER_S,
    )
