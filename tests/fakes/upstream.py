"""A scripted OpenAI-style provider on loopback: it misbehaves on request and keeps its own log."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, Self

from aiohttp import web

from tests.fakes.waiting import until

USAGE = {
    "prompt_tokens": 12,
    "completion_tokens": 5,
    "total_tokens": 17,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the provider does with one request.

    `body` answers a plain request, `events` a streamed one; each is whatever bytes the test wants.
    `delay_s` passes before anything is sent, `gap_s` between events. `split` sends events in pieces of
    that many bytes. `held` holds the answer back until it is set; `held_after_text` what follows a stream's
    first text, which comes without a gap. `cut` breaks the connection instead of ending the answer.
    `echo_key` puts the caller's Authorization header into body, events, headers and reason.
    """

    body: bytes = b""
    events: tuple[bytes, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = ""
    delay_s: float = 0.0
    held: asyncio.Event | None = None
    gap_s: float = 0.0
    split: int = 0
    held_after_text: asyncio.Event | None = None
    cut: bool = False
    echo_key: bool = False

    def but(self, **changes: Any) -> "Reply":
        """Return the reply with some fields changed."""
        return replace(self, **changes)


@dataclass(slots=True)
class SeenRequest:
    """One request as the provider saw it. Times are the event loop's."""

    headers: dict[str, str]
    body: bytes
    arrived_s: float
    connection: int
    path: str
    ended_s: float | None = None
    was_hung_up: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """The decoded body."""
        fields: dict[str, Any] = json.loads(self.body)
        return fields

    @property
    def attempt_id(self) -> str:
        """The id that joins this request to a permit."""
        return self.headers["X-Client-Request-Id"]


class Upstream:
    """Serves `script` in order, then what `by_model` has for the model asked for, else `default`."""

    def __init__(self, default: Reply | None = None) -> None:
        self.default = default or answer("hello")
        self.by_model: dict[str, Reply] = {}
        self.script: deque[Reply] = deque()
        self.requests: list[SeenRequest] = []
        self.base_url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def seen(self, count: int = 1) -> list[SeenRequest]:
        """Wait until that many requests have arrived."""
        await until(lambda: len(self.requests) >= count)
        return self.requests

    def key_of(self, request: web.Request) -> str:
        """Return the credential that a request shows."""
        return request.headers.get("Authorization", "")

    def is_stream(self, path: str, body: bytes) -> bool:
        """Say whether a request asks for a stream."""
        return b'"stream":true' in body

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        loop = asyncio.get_running_loop()
        body = await request.read()
        seen = SeenRequest(dict(request.headers), body, loop.time(), id(request.transport), request.path)
        self.requests.append(seen)
        reply = self.script.popleft() if self.script else self._by_model(body)
        try:
            return await self._answer(request, body, reply)
        except (asyncio.CancelledError, ConnectionError):
            seen.was_hung_up = True
            raise
        finally:
            seen.ended_s = loop.time()

    def _by_model(self, body: bytes) -> Reply:
        return self.by_model.get(json.loads(body)["model"], self.default) if self.by_model else self.default

    async def _answer(self, request: web.Request, body: bytes, reply: Reply) -> web.StreamResponse:
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if reply.held is not None:
            await reply.held.wait()
        echo = self.key_of(request) if reply.echo_key else ""
        is_stream = self.is_stream(request.path, body) and bool(reply.events)
        content_type = reply.content_type or ("text/event-stream" if is_stream else "application/json")
        headers = {**reply.headers, "Content-Type": content_type}
        if echo:
            headers["X-Echo"] = echo
        response = web.StreamResponse(status=reply.status, headers=headers, reason=echo or None)
        await response.prepare(request)
        pieces = reply.events if is_stream else (reply.body,)
        await _write(response, [piece.replace(b"@KEY@", echo.encode()) for piece in pieces], reply)
        if reply.cut:
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write_eof()
        return response


_AFTER_FIRST_TEXT = 2
"""The event that `held_after_text` stands before: a stream of `answer` begins with the role and the first text."""


async def _write(response: web.StreamResponse, pieces: list[bytes], reply: Reply) -> None:
    for number, piece in enumerate(pieces):
        held = reply.held_after_text
        if held is not None and number >= _AFTER_FIRST_TEXT:
            await held.wait()
        if number and reply.gap_s and (held is None or held.is_set()):
            await asyncio.sleep(reply.gap_s)
        step = reply.split or len(piece) or 1
        for start in range(0, len(piece), step):
            await response.write(piece[start : start + step])
            if reply.split:
                await asyncio.sleep(0)


def event(chunk: object) -> bytes:
    """Return one data event."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def chunk(
    delta: dict[str, Any] | None = None, finish: str | None = None, model: str = "served-model"
) -> dict[str, Any]:
    """Return one streamed chunk with one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model, "choices": [choice]}


def answer(
    *texts: str,
    finish: str = "stop",
    usage: dict[str, Any] | None = USAGE,
    tool_calls: list[dict[str, Any]] | None = None,
    reasoning: str = "",
) -> Reply:
    """Return a good reply: whole, and streamed with one delta per text."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    if tool_calls:
        message["tool_calls"] = tool_calls
    if reasoning:
        message["reasoning_content"] = reasoning
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "served-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    events = [event(chunk({"role": "assistant", "content": ""}))]
    if reasoning:
        events.append(event(chunk({"reasoning_content": reasoning})))
    events += [event(chunk({"content": text})) for text in texts]
    if tool_calls:
        deltas = [{"index": index, **call} for index, call in enumerate(tool_calls)]
        events.append(event(chunk({"tool_calls": deltas})))
    events.append(event(chunk({}, finish)))
    if usage is not None:
        body["usage"] = usage
        events.append(event({"id": "chatcmpl-1", "model": "served-model", "choices": [], "usage": usage}))
    return Reply(json.dumps(body).encode(), (*events, DONE))


def refusal(status: int, code: str = "", **headers: str) -> Reply:
    """Return an error whose text holds the caller's key, as careless providers write it."""
    error = {"message": "Incorrect API key provided: @KEY@", "type": "some_error", "code": code or None}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(json.dumps({"error": error}).encode(), status=status, headers=named, echo_key=True)
