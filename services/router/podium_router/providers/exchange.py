"""One HTTP request over one shared aiohttp session, whatever protocol its body speaks.

Nothing here retries, follows a redirect or uses a proxy. aiohttp itself repeats only idempotent methods on
a broken kept-alive connection, and this is always a POST.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from yarl import URL

from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError
from podium_router import failures
from podium_router.answer import Answer
from podium_router.ports import ProviderRequest

_HTTP_OK: Final = 200
_WRITE_BYTES: Final = 256 * 1024
_MAX_ERROR_BYTES: Final = 64 * 1024
_ERROR_READ_S: Final = 1.0
_MAX_SLACK_S: Final = 1.0
_SLACK_SHARE: Final = 0.1
_DRAIN_S: Final = 0.25
_KEEP_ALIVE_S: Final = 20.0
_USER_AGENT: Final = "podium-router"


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """Bytes of one answer and of one event of a stream."""

    max_answer_bytes: int = 16 * 1024 * 1024
    max_event_bytes: int = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What leaves: the address, the headers that only this request has, and the bytes of its body."""

    url: URL
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """The connections to providers. Build it inside the running loop; close it at the end."""

    def __init__(self, limits: ProviderLimits, clock: Clock) -> None:
        self.limits = limits
        self._clock = clock
        # Lanes and the server's own limit bound the connections, so the pool itself does not.
        self._session = ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S, ttl_dns_cache=30),
            cookie_jar=DummyCookieJar(),
            headers={
                "Content-Type": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": _USER_AGENT,
            },
        )
        self._resting: set[asyncio.Task[None]] = set()

    async def open(
        self,
        outgoing: Outgoing,
        answer: Answer,
        *,
        connect_s: float,
        read_refusal: Callable[[int, Mapping[str, str], object], PodiumError] | None = None,
    ) -> ClientResponse:
        """Send the request and return a response of status 200, not yet read.

        Raises PodiumError for any other status, aiohttp's ClientError, OSError or TimeoutError when the
        connection fails. `answer.dispatched` is set when the body begins to leave.
        """
        response = await self._session.post(
            outgoing.url,
            data=_Body(outgoing.body, answer),
            headers=outgoing.headers,
            allow_redirects=False,
            timeout=ClientTimeout(total=None, sock_connect=connect_s),
        )
        if response.status == _HTTP_OK:
            return response
        try:
            body = await _error_body(response)
        finally:
            response.close()
        read = read_refusal or self.refused
        raise read(response.status, response.headers, body)

    def refused(self, status: int, headers: Mapping[str, str], body: object) -> PodiumError:
        """Return the error for an answer of another status than 200."""
        return failures.refused(status, headers, body, self._clock.now_ns())

    async def read(self, response: ClientResponse) -> bytes:
        """Return a whole answer. Raises PodiumError when it is too large."""
        return await _read(response, self.limits.max_answer_bytes)

    def rest(self, response: ClientResponse) -> None:
        """Read what follows the last event without keeping anybody waiting: it frees the connection."""
        task = asyncio.get_running_loop().create_task(_read_rest(response))
        self._resting.add(task)
        task.add_done_callback(self._resting.discard)

    async def close(self) -> None:
        """Close every connection."""
        for task in self._resting:
            task.cancel()
        await self._session.close()


class Pause:
    """The time until a stream's first output, then the time of each gap. A slow reader's time counts not.

    A gap may last a tenth longer, a second at most, so that the timer need not be moved for each piece.
    """

    def __init__(self, request: ProviderRequest) -> None:
        self._idle_s = request.timeouts.idle_s
        self._slack_s = min(_MAX_SLACK_S, self._idle_s * _SLACK_SHARE)
        self._loop = asyncio.get_running_loop()
        self._first_by = self._loop.time() + request.timeouts.first_token_s
        self.limit = asyncio.timeout_at(self._first_by if request.stream else None)

    def suspend(self) -> None:
        """The caller is waited for, not the provider."""
        self._set(None)

    def restart(self, answer: Answer) -> None:
        """Something has come: wait anew. A comment or an empty delta is no output."""
        if answer.is_empty:
            self._set(self._first_by)
            return
        silent_by = self._loop.time() + self._idle_s
        set_to = self.limit.when()
        if set_to is None or not silent_by <= set_to <= silent_by + self._slack_s:
            self._set(silent_by + self._slack_s)

    def error(self, answer: Answer) -> PodiumError | None:
        """Return what has taken too long; None when this was not it."""
        if not self.limit.expired():
            return None
        return failures.no_first_token() if answer.is_empty else failures.silent()

    def _set(self, when: float | None) -> None:
        # Bytes may come in the very moment in which it ends.
        if when != self.limit.when() and not self.limit.expired():
            self.limit.reschedule(when)


def broken(error: Exception, answer: Answer) -> PodiumError:
    """Return what a failed connection means for an answer that has come this far."""
    if isinstance(error, ConnectionTimeoutError):
        return failures.no_connection_in_time()
    if isinstance(error, ClientConnectorError):
        return failures.unreachable()
    if isinstance(error, TimeoutError):
        return failures.too_slow()
    if not answer.dispatched:
        return failures.unreachable()
    return failures.connection_lost() if answer.is_empty else failures.stream_cut()


class _Body(Payload):
    """Bytes that note when they begin to leave: from then on the provider may have the request."""

    _autoclose = True

    def __init__(self, data: bytes, answer: Answer) -> None:
        super().__init__(data, content_type="application/json")
        self._size = len(data)
        self._data = data
        self._answer = answer

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._data.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        self._answer.dispatched = True
        if len(self._data) <= _WRITE_BYTES:
            await writer.write(self._data)
            return
        view = memoryview(self._data)
        for start in range(0, len(view), _WRITE_BYTES):
            await writer.write(view[start : start + _WRITE_BYTES])


async def _error_body(response: ClientResponse) -> Any:
    try:
        async with asyncio.timeout(_ERROR_READ_S):
            return json.loads(await _read(response, _MAX_ERROR_BYTES))
    except (PodiumError, ClientError, OSError, TimeoutError, ValueError, RecursionError):
        return None


async def _read(response: ClientResponse, limit_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > limit_bytes:
            raise failures.answer_too_large(limit_bytes)
        pieces.append(piece)
    return b"".join(pieces)


async def _read_rest(response: ClientResponse) -> None:
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in response.content.iter_any():
                pass
    except (ClientError, OSError, TimeoutError):
        return
    finally:
        response.close()
