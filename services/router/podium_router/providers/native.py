"""Calls OpenAI-compatible providers over one shared aiohttp session.

One call is one HTTP request: nothing here retries, follows a redirect or uses a proxy. aiohttp itself
repeats only idempotent methods on a broken kept-alive connection, and this is always a POST.
"""

import asyncio
import json
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

from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError
from podium_router import failures
from podium_router.answer import Answer, BadAnswerError, ProviderErrorEventError
from podium_router.ports import DeltaSink, ProviderRequest
from podium_router.providers.sse import EventTooLargeError, SseEvent, SseParser

_HTTP_OK: Final = 200
_WRITE_BYTES: Final = 256 * 1024
_MAX_ERROR_BYTES: Final = 64 * 1024
_ERROR_READ_S: Final = 1.0
_DRAIN_S: Final = 0.25
_KEEP_ALIVE_S: Final = 20.0
_DONE: Final = b"[DONE]"
_USER_AGENT: Final = "podium-router"


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """Bytes of one answer and of one event of a stream."""

    max_answer_bytes: int = 16 * 1024 * 1024
    max_event_bytes: int = 4 * 1024 * 1024


class NativeClient:
    """The provider client. Build it inside the running loop; close it at the end."""

    def __init__(self, limits: ProviderLimits, clock: Clock) -> None:
        self._limits = limits
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

    async def complete(self, request: ProviderRequest, answer: Answer, sink: DeltaSink) -> None:
        """Make the call and fill `answer`; put deltas into `sink` when it is streamed.

        Raises PodiumError (PROVIDER_FAILED, RATE_LIMITED, DEADLINE); what `answer` holds by then is what
        came. Cancelling closes the connection.
        """
        pause = _Pause(request)
        try:
            async with asyncio.timeout_at(request.deadline), pause.limit:
                await self._exchange(request, answer, sink, pause)
        except PodiumError:
            raise
        except ProviderErrorEventError:
            raise failures.stream_error() from None
        except (BadAnswerError, ValueError, RecursionError) as error:
            if isinstance(error, ClientError):  # an address that cannot be used is both
                raise failures.unreachable() from None
            raise failures.bad_answer() from None
        except EventTooLargeError:
            raise failures.answer_too_large(self._limits.max_event_bytes) from None
        except (ClientError, OSError, TimeoutError) as error:
            # What comes after a streamed answer's finish reason is only usage.
            if not (request.stream and answer.finish_reason):
                raise pause.error(answer) or _broken(error, answer) from None
            answer.close()

    async def close(self) -> None:
        """Close every connection."""
        for task in self._resting:
            task.cancel()
        await self._session.close()

    async def _exchange(
        self, request: ProviderRequest, answer: Answer, sink: DeltaSink, pause: "_Pause"
    ) -> None:
        headers = {
            "Accept": "text/event-stream" if request.stream else "application/json",
            "X-Client-Request-Id": request.attempt_id,
        }
        if request.key is not None:
            headers["Authorization"] = f"Bearer {request.key.reveal()}"
        if request.traceparent:
            headers["traceparent"] = request.traceparent
        response = await self._session.post(
            request.url,
            data=_Body(request.body, answer),
            headers=headers,
            allow_redirects=False,
            timeout=ClientTimeout(total=None, sock_connect=request.timeouts.connect_s),
        )
        is_done = False
        try:
            if response.status != _HTTP_OK:
                raise await self._refusal(response)
            if request.stream and response.content_type != "application/json":
                is_done = await self._read_stream(response, answer, sink, pause)
            else:
                body = await _read(response, self._limits.max_answer_bytes)
                delta = answer.take_message(json.loads(body))
                if request.stream:
                    sink.put(delta)
            answer.close()
        finally:
            if is_done and not response.content.is_eof():
                self._rest(response)
            else:
                # A response that was read to its end has given its connection back already.
                response.close()

    async def _read_stream(
        self, response: ClientResponse, answer: Answer, sink: DeltaSink, pause: "_Pause"
    ) -> bool:
        """Read until the provider says that the answer is complete, or until the end of the body."""
        parser = SseParser(self._limits.max_event_bytes)
        size = 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > self._limits.max_answer_bytes:
                raise failures.answer_too_large(self._limits.max_answer_bytes)
            events = parser.feed(chunk)
            if events:
                if _take_events(events, answer, sink):
                    return True
                pause.suspend()
                await sink.room()
            pause.restart(answer)
        if not (_take_last(parser.finish(), answer, sink) or answer.finish_reason):
            raise failures.stream_cut()
        return False

    def _rest(self, response: ClientResponse) -> None:
        """Read what follows the last event without keeping anybody waiting: it frees the connection."""
        task = asyncio.get_running_loop().create_task(_read_rest(response))
        self._resting.add(task)
        task.add_done_callback(self._resting.discard)

    async def _refusal(self, response: ClientResponse) -> PodiumError:
        body: Any = None
        try:
            async with asyncio.timeout(_ERROR_READ_S):
                body = json.loads(await _read(response, _MAX_ERROR_BYTES))
        except (PodiumError, ClientError, OSError, TimeoutError, ValueError, RecursionError):
            body = None
        return failures.refused(response.status, response.headers, body, self._clock.now_ns())


class _Pause:
    """The time until a stream's first output, then the time of each gap. A slow reader's time counts not."""

    def __init__(self, request: ProviderRequest) -> None:
        self._idle_s = request.timeouts.idle_s
        self._loop = asyncio.get_running_loop()
        self._first_by = self._loop.time() + request.timeouts.first_token_s
        self.limit = asyncio.timeout_at(self._first_by if request.stream else None)

    def suspend(self) -> None:
        """The caller is waited for, not the provider."""
        self._set(None)

    def restart(self, answer: Answer) -> None:
        """Something has come: wait anew. A comment or an empty delta is no output."""
        self._set(self._first_by if answer.is_empty else self._loop.time() + self._idle_s)

    def error(self, answer: Answer) -> PodiumError | None:
        """Return what has taken too long; None when this was not it."""
        if not self.limit.expired():
            return None
        return failures.no_first_token() if answer.is_empty else failures.silent()

    def _set(self, when: float | None) -> None:
        if not self.limit.expired():  # bytes may come in the very moment in which it ends
            self.limit.reschedule(when)


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


def _take_events(events: list[SseEvent], answer: Answer, sink: DeltaSink) -> bool:
    """Take complete events; return whether the provider said that the answer is complete."""
    for event in events:
        if event.data.startswith(_DONE):
            return True
        if not event.data:
            continue
        if event.name == b"error":
            raise ProviderErrorEventError
        delta = answer.take_chunk(json.loads(event.data))
        if delta is not None:
            sink.put(delta)
    return False


def _take_last(events: list[SseEvent], answer: Answer, sink: DeltaSink) -> bool:
    """Take an event without its blank line; if it cannot be read, it was cut."""
    try:
        return _take_events(events, answer, sink)
    except (ValueError, RecursionError, BadAnswerError):
        return False


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


def _broken(error: Exception, answer: Answer) -> PodiumError:
    if isinstance(error, ConnectionTimeoutError):
        return failures.no_connection_in_time()
    if isinstance(error, ClientConnectorError):
        return failures.unreachable()
    if isinstance(error, TimeoutError):
        return failures.too_slow()
    if not answer.dispatched:
        return failures.unreachable()
    return failures.connection_lost() if answer.is_empty else failures.stream_cut()
