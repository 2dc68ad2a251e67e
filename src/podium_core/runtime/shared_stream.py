"""One bidirectional stream that many askers share: what is asked while a message is on its way goes next.

A stream stays on the connection, and so at the replica, where it was opened. It moves on by itself: after
`stream_age_s`, and when its server says that it is closing, new questions go to a new stream, and the old
one ends when everything on it is answered (docs/adr/0020).
"""

import asyncio
import contextlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

C = TypeVar("C", bound="SharedStream")

_MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""A message takes no further operation once it is this long; a single long one travels alone."""
_AGE_S: Final = 10.0
_SPREAD: Final = 0.25
_FIRST_PAUSE_S: Final = 0.02
_MAX_PAUSE_S: Final = 1.0


def stream_age_s() -> float:
    """Return how many seconds a stream stays in use: spread, so that many opened at once move one by one."""
    return _AGE_S * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 - spreads load, guards nothing


class _Sized(Protocol):
    def ByteSize(self) -> int: ...  # noqa: N802 - protobuf's name


B = TypeVar("B", bound=_Sized)


def taken_from(queue: dict[int, B]) -> list[B]:
    """Take as many operations as one message holds out of what waits to be sent, by id and in its order."""
    taken: dict[int, B] = {}
    size = 0
    for operation_id, operation in queue.items():
        size += operation.ByteSize()
        if taken and size > _MAX_MESSAGE_BYTES:
            break
        taken[operation_id] = operation
    for operation_id in taken:
        del queue[operation_id]
    return list(taken.values())


class SharedStream(ABC):
    """One stream, from its opening to its end, which comes once it is retired and nothing waits on it."""

    def __init__(self, age_s: float) -> None:
        loop = asyncio.get_running_loop()
        self.takes_more = True
        self.wake = asyncio.Event()
        self._moving = loop.call_later(age_s, self.retire)
        self.task = loop.create_task(self._serve())

    def retire(self) -> None:
        """Take no more questions, and end once all are answered."""
        self.takes_more = False
        self.wake.set()

    @abstractmethod
    def open(self) -> Any:
        """Return the call."""

    @abstractmethod
    def next_message(self) -> Message | None:
        """Return what is to be sent now, if anything."""

    @abstractmethod
    def take(self, message: Any) -> None:
        """Hand over what came."""

    @abstractmethod
    def is_idle(self) -> bool:
        """Whether nobody waits for anything of this stream."""

    @abstractmethod
    def ended(self, error: BaseException | None) -> None:
        """Tell those who still wait that the stream ended: with an error, or None if somebody closed it."""

    async def _serve(self) -> None:
        error: BaseException | None = None
        try:
            error = await self._exchange(self.open())
        finally:
            self._moving.cancel()
            self.takes_more = False
            self.ended(error)

    async def _exchange(self, stream: Any) -> BaseException | None:
        reading = asyncio.create_task(self._read(stream))
        reading.add_done_callback(lambda _: self.wake.set())
        try:
            # A write fails only where the stream has ended, and then the reader knows why.
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await self._write(stream, reading)
            await asyncio.wait([reading])
            return None if reading.cancelled() else reading.exception()
        finally:
            stream.cancel()
            reading.cancel()

    async def _write(self, stream: Any, reading: "asyncio.Task[None]") -> None:
        while not reading.done():
            message = self.next_message()
            if message is not None:
                await stream.write(message)
            elif not self.takes_more and self.is_idle():
                await stream.done_writing()
                return
            else:
                self.wake.clear()
                await self.wake.wait()

    async def _read(self, stream: Any) -> None:
        async for message in stream:
            self.take(message)
            if not self.takes_more:
                self.wake.set()  # it may have been the last that was waited for


class SharedStreams(Generic[C]):
    """The stream that takes questions now, and those before it that still owe answers."""

    def __init__(self, opened: Callable[[float], C], age_s: Callable[[], float] = stream_age_s) -> None:
        self._opened = opened
        self._age_s = age_s
        self._current: C | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._later: dict[Callable[[], None], asyncio.TimerHandle] = {}

    def current(self) -> C:
        """Return a stream that takes questions; it is opened if there is none."""
        current = self._current
        if current is None or not current.takes_more:
            current = self._current = self._opened(self._age_s())
            self._tasks.add(current.task)
            current.task.add_done_callback(self._tasks.discard)
        return current

    def again(self, ask: Callable[[], None], times: int) -> None:
        """Have something asked once more, for which a stream was too late so many `times` before."""

        def due() -> None:
            del self._later[ask]
            ask()

        pause_s = min(_FIRST_PAUSE_S * 2**times, _MAX_PAUSE_S)
        self._later[ask] = asyncio.get_running_loop().call_later(pause_s, due)

    async def close(self) -> None:
        """End every stream at once; those who wait on one, or for one, are told."""
        for ask, due in tuple(self._later.items()):
            due.cancel()
            del self._later[ask]
            ask()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
