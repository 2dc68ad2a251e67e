"""Calls OpenAI-compatible providers: what the log holds is sent as it is, and read as it comes."""

import asyncio
import json
from typing import Final

from aiohttp import ClientError, ClientResponse

from podium_core.domain.errors import PodiumError
from podium_router import failures
from podium_router.answer import Answer, ProviderErrorEventError
from podium_router.body import Body
from podium_router.ports import DeltaSink, ProviderRequest, Sending
from podium_router.providers.exchange import Exchange, Outgoing, Pause, broken
from podium_router.providers.sse import EventTooLargeError, SseEvent, SseParser
from podium_router.vectors import BadAnswerError

_DONE: Final = b"[DONE]"


class NativeClient:
    """The client for OpenAI's own protocol, and for Azure's version of it."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def prepare(self, request: ProviderRequest) -> "NativeCall":
        """Return the call; its body is the request's own."""
        return NativeCall(request, self._exchange)


class NativeCall:
    """One call, ready to be sent."""

    def __init__(self, request: ProviderRequest, exchange: Exchange) -> None:
        self._request = request
        self._exchange = exchange
        self._limits = exchange.limits

    @property
    def body(self) -> Body:
        """The exact bytes that `send` sends."""
        return self._request.body

    @property
    def host(self) -> str:
        """Where they go."""
        return self._request.url.raw_host or ""

    async def send(self, sending: Sending, answer: Answer, sink: DeltaSink) -> None:
        """Make the call and fill `answer`; put deltas into `sink` when it is streamed.

        Raises PodiumError (PROVIDER_FAILED, RATE_LIMITED, DEADLINE); what `answer` holds by then is what
        came. Cancelling closes the connection.
        """
        pause = Pause(self._request)
        try:
            async with asyncio.timeout_at(sending.deadline), pause.limit:
                await self._send(sending, answer, sink, pause)
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
            if not (self._request.stream and answer.finish_reason):
                raise pause.error(answer) or broken(error, answer) from None
            answer.close()

    def discard(self) -> None:
        """Give up a call that will not be sent: nothing is held for it."""

    async def _send(self, sending: Sending, answer: Answer, sink: DeltaSink, pause: Pause) -> None:
        request = self._request
        outgoing = Outgoing(request.url, _headers(request, sending), request.body.data)
        response = await self._exchange.open(outgoing, answer, connect_s=request.timeouts.connect_s)
        is_done = False
        try:
            if request.stream and response.content_type != "application/json":
                is_done = await self._read_stream(response, answer, sink, pause)
            else:
                body = json.loads(await self._exchange.read(response))
                delta = answer.take_vectors(body) if request.is_embedding else answer.take_message(body)
                if request.stream:
                    sink.put(delta)
            answer.close()
        finally:
            if is_done and not response.content.is_eof():
                self._exchange.rest(response)
            else:
                # A response that was read to its end has given its connection back already.
                response.close()

    async def _read_stream(
        self, response: ClientResponse, answer: Answer, sink: DeltaSink, pause: Pause
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
                if not sink.has_room:
                    pause.suspend()
                    await sink.room()
            pause.restart(answer)
        if not (_take_last(parser.finish(), answer, sink) or answer.finish_reason):
            raise failures.stream_cut()
        return False


def _headers(request: ProviderRequest, sending: Sending) -> dict[str, str]:
    headers = {
        "Accept": "text/event-stream" if request.stream else "application/json",
        "X-Client-Request-Id": request.attempt_id,
    }
    key = request.credentials.key
    if key is not None:
        if request.kind == "azure":
            headers["api-key"] = key.reveal()
        else:
            headers["Authorization"] = f"Bearer {key.reveal()}"
    if sending.traceparent:
        headers["traceparent"] = sending.traceparent
    return headers


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
