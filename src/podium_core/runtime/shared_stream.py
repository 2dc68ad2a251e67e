"""One bidirectional stream that many askers share: what is asked while a message is on its way goes next."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

M = TypeVar("M", bound=Message)


async def exchange(
    stream: Any, wake: asyncio.Event, next_message: Callable[[], Message | None], take: Callable[[M], None]
) -> BaseException | None:
    """Send what `next_message` has whenever `wake` is set, and hand over what comes, until the stream ends.

    Returns the error it ended with; None when the other side closed it.
    """
    reading = asyncio.create_task(_read(stream, take))
    reading.add_done_callback(lambda _: wake.set())
    try:
        # A write fails only where the stream has ended, and then the reader knows why.
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await _write(stream, wake, next_message, reading)
        await asyncio.wait([reading])
        return None if reading.cancelled() else reading.exception()
    finally:
        stream.cancel()
        reading.cancel()


async def _write(
    stream: Any,
    wake: asyncio.Event,
    next_message: Callable[[], Message | None],
    reading: "asyncio.Task[None]",
) -> None:
    while not reading.done():
        message = next_message()
        if message is not None:
            await stream.write(message)
        else:
            wake.clear()
            await wake.wait()


async def _read(stream: Any, take: Callable[[M], None]) -> None:
    async for message in stream:
        take(message)
