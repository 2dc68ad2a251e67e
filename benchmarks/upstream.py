"""A fast OpenAI-style upstream: a fixed answer, whole or as 50 deltas, at the cost of a few microseconds.

The model `bench` sends its deltas in one burst, `bench-paced` one every 10 ms, `bench-open` one every 400 ms.
"""

import asyncio
import json
import sys
from typing import cast

import uvloop

_TEXT = "word " * 50


def _response(body: bytes, content_type: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).encode()
    )


_USAGE = {"prompt_tokens": 20, "completion_tokens": 50, "total_tokens": 70}
_WHOLE = {
    "id": "c",
    "object": "chat.completion",
    "model": "bench",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": _TEXT}, "finish_reason": "stop"}],
    "usage": _USAGE,
}
ANSWER = _response(json.dumps(_WHOLE).encode(), "application/json")
_EVENTS = [
    _chunk({"role": "assistant", "content": ""}),
    *(_chunk({"content": "word "}) for _ in range(50)),
    _chunk({}, "stop"),
    b"data: " + json.dumps({"id": "c", "choices": [], "usage": _USAGE}).encode(),
    b"data: [DONE]",
]
STREAM = _response(b"\n\n".join(_EVENTS) + b"\n\n", "text/event-stream")
_PACES_S = {b'"bench-paced"': 0.010, b'"bench-open"': 0.400}
_OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Upstream(asyncio.Protocol):
    """Answers every complete request on a kept-alive connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self._held = b""
        self._pacing: asyncio.Task[None] | None = None

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end].lower()
            _, _, rest = head.partition(b"content-length:")
            length = int(rest.split(b"\r\n", 1)[0]) if rest else 0
            if len(self._held) < end + 4 + length:
                return
            body = self._held[end + 4 : end + 4 + length]
            self._held = self._held[end + 4 + length :]
            streamed = b'"stream":true' in body.replace(b" ", b"")
            pace_s = next((pace for model, pace in _PACES_S.items() if model in body), 0.0)
            if streamed and pace_s:
                self._pacing = asyncio.create_task(self._paced(pace_s))
            else:
                self._transport.write(STREAM if streamed else ANSWER)

    async def _paced(self, pace_s: float) -> None:
        self._transport.write(_OPEN)
        for event in _EVENTS:
            self._transport.write(b"%x\r\n%b\n\n\r\n" % (len(event) + 2, event))
            await asyncio.sleep(pace_s)
        self._transport.write(b"0\r\n\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._pacing is not None:
            self._pacing.cancel()


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
