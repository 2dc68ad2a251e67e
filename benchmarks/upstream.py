"""A fast OpenAI-style upstream: a fixed answer, whole or as 50 deltas, at the cost of a few microseconds."""

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


class Upstream(asyncio.Protocol):
    """Answers every complete request on a kept-alive connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self._held = b""

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
            self._transport.write(STREAM if streamed else ANSWER)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
