"""What a round tells its reader: output waits for a slow one, everything else is few and always has room."""

import asyncio
from collections import deque

from podium_core.orchestration.events import AnswerDelta, RunEvent

_MAX_DELTAS = 64
_MAX_CHARS = 65_536


class EventQueue:
    """Any number of writers, one reader. None stands for the end."""

    def __init__(self) -> None:
        self._events: deque[RunEvent | None] = deque()
        self._delta_count = 0
        self._char_count = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def empty(self) -> bool:
        """Whether nothing waits to be read."""
        return not self._events

    async def put(self, event: RunEvent | None) -> None:
        """Add an event; output first waits until less of it is unread than the queue may hold."""
        if isinstance(event, AnswerDelta):
            while not self._room.is_set():
                await self._room.wait()
            self._count(event, 1)
        self._events.append(event)
        self._news.set()

    async def get(self) -> RunEvent | None:
        """Wait for the next event and return it."""
        while not self._events:
            self._news.clear()
            await self._news.wait()
        return self.get_nowait()

    def get_nowait(self) -> RunEvent | None:
        """Return the next event of a queue that is not empty."""
        event = self._events.popleft()
        if isinstance(event, AnswerDelta):
            self._count(event, -1)
        return event

    def _count(self, event: AnswerDelta, sign: int) -> None:
        self._delta_count += sign
        self._char_count += sign * event.delta.size_chars
        if self._delta_count < _MAX_DELTAS and self._char_count < _MAX_CHARS:
            self._room.set()
        else:
            self._room.clear()
