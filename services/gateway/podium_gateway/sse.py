"""One server-sent event stream: opened as late as useful, never silent for long, closed cleanly."""

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import web

_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


_SHORT_BYTES = 16 * 1024
"""Far below what a transport buffers before its writer must wait."""


_WRITE_CHARS = 65_536


class ClientGoneError(Exception):
    """The client hung up or has stopped reading."""


class EventStream:
    """The response of a streamed answer. Until the first send, an error can still be a status code."""

    def __init__(self, request: web.Request, headers: Mapping[str, str], stall_timeout_s: float) -> None:
        self._request = request
        self._response = web.StreamResponse(headers={**_HEADERS, **headers})
        self._stall_timeout_s = stall_timeout_s
        request[STREAM] = self

    @property
    def response(self) -> web.StreamResponse:
        """What the handler returns."""
        return self._response

    @property
    def is_open(self) -> bool:
        """Whether bytes have gone out."""
        return self._response.prepared

    async def send(self, text: str) -> None:
        """Send in one write, or in several where the text is long, so that no copy of it waits whole.

        Raises ClientGoneError when nobody takes a write within the stall timeout.
        """
        for start in range(0, len(text), _WRITE_CHARS):
            # A provider's tool arguments may hold half a surrogate pair, which UTF-8 cannot.
            await self._write(text[start : start + _WRITE_CHARS].encode(errors="replace"))

    async def _write(self, data: bytes) -> None:
        try:
            if self._response.prepared and self._is_short(data):
                await self._response.write(data)
                return
            async with asyncio.timeout(self._stall_timeout_s):
                if not self._response.prepared:
                    await self._response.prepare(self._request)
                await self._response.write(data)
        except (ConnectionError, TimeoutError):
            self.abort()
            raise ClientGoneError from None

    async def close(self) -> None:
        """End the body, so that clients which wait for its end do not wait."""
        try:
            async with asyncio.timeout(self._stall_timeout_s):
                await self._response.write_eof()
        except (ConnectionError, TimeoutError):
            self.abort()

    def _is_short(self, data: bytes) -> bool:
        """Whether a write cannot have to wait: nothing waits to be read, and this fits what may."""
        transport = self._request.transport
        return len(data) < _SHORT_BYTES and transport is not None and not transport.get_write_buffer_size()

    def abort(self) -> None:
        """Cut the connection: the client must not take what it has for the whole."""
        transport = self._request.transport
        if transport is not None:
            transport.abort()


STREAM = web.RequestKey("stream", EventStream)
"""Where a request keeps its stream, for whoever must cut it."""


class Heartbeat:
    """Wakes a writer whose client has heard nothing for a while.

    One timer that is moved on only when it fires, so that a busy stream pays nothing for it.
    """

    def __init__(self, wake: Callable[[], None], *, first_s: float, then_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = wake
        self._then_s = then_s
        self._due_at = self._loop.time() + first_s
        self._timer = self._loop.call_at(self._due_at, self._fire)

    @property
    def is_due(self) -> bool:
        """Whether the client must hear something now."""
        return self._loop.time() >= self._due_at

    def heard(self) -> None:
        """The client has just been sent something."""
        self._due_at = self._loop.time() + self._then_s

    def stop(self) -> None:
        """Never wake again."""
        self._timer.cancel()

    def _fire(self) -> None:
        if self.is_due:
            self._wake()
            self._timer = self._loop.call_at(self._loop.time() + self._then_s, self._fire)
        else:
            self._timer = self._loop.call_at(self._due_at, self._fire)
