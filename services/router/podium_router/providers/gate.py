"""Where LiteLLM's requests stop until the log has permitted them.

The library builds its request and sends it in one go. This transport stands where its HTTP client would
be: it notes the request, waits for the permit, and only then sends those very bytes over the router's own
connections. A call gets one request; whatever the library would send after it is refused.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from typing import Final

import httpx
from aiohttp import ClientError, ClientResponse
from yarl import URL

from podium_core.domain.errors import PodiumError
from podium_router import failures
from podium_router.answer import Answer
from podium_router.ports import ProviderRequest, Sending
from podium_router.providers.exchange import Exchange, Outgoing, Pause, broken

_OURS: Final = frozenset(
    {"host", "content-length", "connection", "accept-encoding", "user-agent", "transfer-encoding"}
)
"""Headers that the router's own client sets."""

_USAGE_MARKS: Final = (
    b'"usage"',
    b'"usageMetadata"',
    b'"inputTokens"',
    b'"inputTextTokenCount"',
    b'"billed_units"',
    b'"eval_count"',
)
_GEMINI_KEY: Final = "x-goog-api-key"
_REQUEST_IDS: Final = ("request-id", "x-amzn-requestid", "x-request-id")
_TAIL_BYTES: Final = 24
_current: ContextVar["Passage | None"] = ContextVar("passage", default=None)


class ShutGateError(Exception):
    """Ends the library's part of a call; why is in the passage."""


class Passage:
    """The way of one call through the gate. Made in the loop, entered by the task that runs the library."""

    def __init__(
        self,
        exchange: Exchange,
        *,
        request: ProviderRequest,
        read_refusal: Callable[[int, Mapping[str, str], object], PodiumError],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.arrived: asyncio.Future[Outgoing] = loop.create_future()
        self.failure: PodiumError | None = None
        self.has_usage = False
        self.has_ended = False
        self.request_id = ""
        self._let_out: asyncio.Future[tuple[Sending, Answer, Pause]] = loop.create_future()
        self._exchange = exchange
        self._request = request
        self._read_refusal = read_refusal
        self._opening: asyncio.Task[ClientResponse] | None = None
        self._response: ClientResponse | None = None
        self._tail = b""

    def enter(self) -> None:
        """Make this the passage of the running task's requests."""
        _current.set(self)

    def let_out(self, sending: Sending, answer: Answer, pause: Pause) -> None:
        """Open the gate: the log has permitted the request."""
        self._let_out.set_result((sending, answer, pause))

    def close(self) -> None:
        """Close the provider's connection unless its answer was read to the end."""
        if self._response is not None:
            self._response.close()
        elif self._opening is not None:
            self._opening.cancel()  # whatever the library does with its own cancellation

    async def carry(self, request: httpx.Request) -> httpx.Response:
        """Hold the call's one request until it is let out, then send it."""
        if self.arrived.done():
            raise ShutGateError
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OURS}
        if self._request.kind == "vertex":
            _name_bearer(headers)
        outgoing = Outgoing(URL(str(request.url), encoded=True), headers, await request.aread())
        self.arrived.set_result(outgoing)
        sending, answer, pause = await self._let_out
        headers["X-Client-Request-Id"] = self._request.attempt_id
        if sending.traceparent:
            headers["traceparent"] = sending.traceparent
        return await self._fetch(request, outgoing, answer, pause)

    async def _fetch(
        self, request: httpx.Request, outgoing: Outgoing, answer: Answer, pause: Pause
    ) -> httpx.Response:
        try:
            self._opening = asyncio.ensure_future(
                self._exchange.open(
                    outgoing,
                    answer,
                    connect_s=self._request.timeouts.connect_s,
                    read_refusal=self._read_refusal,
                )
            )
            self._response = await self._opening
            headers = {"content-type": self._response.headers.get("content-type", "")}
            self.request_id = _request_id(self._response.headers)
            if self._request.stream:
                stream = _Bytes(self._pieces(self._response, answer, pause))
                return httpx.Response(200, headers=headers, stream=stream, request=request)
            data = await self._exchange.read(self._response)
            self._look_for_usage(data)
            return httpx.Response(200, headers=headers, content=data, request=request)
        except PodiumError as error:
            self.failure = error
        except (ClientError, OSError, TimeoutError) as error:
            self.failure = broken(error, answer)
        raise ShutGateError

    async def _pieces(self, response: ClientResponse, answer: Answer, pause: Pause) -> AsyncIterator[bytes]:
        limit_bytes = self._exchange.limits.max_answer_bytes
        size = 0
        try:
            async for piece in response.content.iter_any():
                size += len(piece)
                if size > limit_bytes:
                    self.failure = failures.answer_too_large(limit_bytes)
                    raise ShutGateError
                self._look_for_usage(piece)
                yield piece
                pause.restart(answer)  # by now the library has read it
            self.has_ended = True
        except (ClientError, OSError, TimeoutError) as error:
            self.failure = broken(error, answer)
            raise ShutGateError from None

    def _look_for_usage(self, piece: bytes) -> None:
        """Note whether the provider counts: the library guesses where it does not, and says no word of it."""
        if not self.has_usage:
            data = self._tail + piece
            self.has_usage = any(mark in data for mark in _USAGE_MARKS)
            self._tail = data[-_TAIL_BYTES:]


def _name_bearer(headers: dict[str, str]) -> None:
    """Show Vertex AI its token as OAuth has it; all else of its protocol is Gemini's."""
    for name in [name for name in headers if name.lower() == _GEMINI_KEY]:
        headers["Authorization"] = f"Bearer {headers.pop(name)}"


def _request_id(headers: Mapping[str, str]) -> str:
    """Return the provider's own name of this exchange, by which its support finds it."""
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), "")


class Gate(httpx.AsyncBaseTransport):
    """The transport of every HTTP client that the library is given."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry a request through the passage of the task that makes it; there is no other way out."""
        passage = _current.get()
        if passage is None:
            raise ShutGateError
        return await passage.carry(request)


class _Bytes(httpx.AsyncByteStream):
    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            yield piece
