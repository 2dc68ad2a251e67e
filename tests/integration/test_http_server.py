"""What both HTTP edges stand on: strangers get Podium's words, no stack trace, no endless wait."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from podium_core.domain.errors import PodiumError
from podium_core.runtime.http_server import ConnectionLimits, listen
from tests.fakes.waiting import PATIENCE_S

LARGE = b"x" * 16_000_000


def refuse(error: PodiumError) -> web.Response:
    return web.json_response({"reason": error.reason, "message": error.message}, status=400)


async def small(request: web.Request) -> web.Response:
    return web.json_response({"read": len(await request.read())})


async def large(_: web.Request) -> web.Response:
    return web.Response(body=LARGE)


@asynccontextmanager
async def serving(**limits: float) -> AsyncGenerator[int, None]:
    app = web.Application()
    app.router.add_route("*", "/small", small)
    app.router.add_get("/large", large)
    found = ConnectionLimits(**limits)  # type: ignore[arg-type]
    runner, port = await listen(app, "127.0.0.1", 0, refuse=refuse, limits=found, shutdown_timeout_s=0.1)
    try:
        yield port
    finally:
        await runner.cleanup()


async def exchange(port: int, sent: bytes) -> tuple[bytes, bytes]:
    """Send bytes and return head and body of all that comes until the server closes, however it does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    try:
        async with asyncio.timeout(PATIENCE_S):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    except ConnectionError:
        return b"", b""
    finally:
        writer.close()
    return head, body


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", "MALFORMED_HTTP"),
        (b"GET / HTTP/9.9\r\n\r\n", "MALFORMED_HTTP"),
        (b"GET /small HTTP/1.1\r\n\r\n", "MALFORMED_HTTP"),
        (b"GET /small HTTP/1.1\r\nHost: x\r\nAuthorization: canary-key\x00\r\n\r\n", "MALFORMED_HTTP"),
        (b"GET /canary-%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 9_000), "MALFORMED_HTTP"),
        (b"GET /small HTTP/1.1\r\nHost: x\r\n" + b"X: canary\r\n" * 500 + b"\r\n", "MALFORMED_HTTP"),
        (b"POST /small HTTP/1.1\r\nHost: x\r\nExpect: canary\r\nContent-Length: 0\r\n\r\n", "MALFORMED_HTTP"),
        (
            b"POST /small HTTP/1.1\r\nHost: x\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
            "BODY_UNREADABLE",
        ),
        (
            b"POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\ncanary\r\n",
            "MALFORMED_HTTP",
        ),
    ],
    ids=["TLS", "version", "no host", "NUL", "long URL", "many headers", "expect", "encoding", "chunk size"],
)
async def test_what_is_no_http_is_answered_in_our_words(
    sent: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as port:
        head, body = await exchange(port, sent)
    assert head.split(b" ")[1] == b"400"
    assert b"Server: podium" in head
    assert json.loads(body)["reason"] == reason
    assert b"canary" not in head + body
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_connection_without_a_request_is_closed() -> None:
    async with serving(idle_s=0.1) as port:
        assert await exchange(port, b"") == (b"", b"")
        assert await exchange(port, b"GET /small HTTP/1.1\r\nHost: x\r\nX-Slow: ") == (b"", b"")


async def test_no_more_connections_than_there_may_be() -> None:
    async with serving(max_connections=2) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert await exchange(port, b"GET /small HTTP/1.0\r\n\r\n") == (b"", b"")
        held[0][1].close()
        async with asyncio.timeout(PATIENCE_S):  # until the server has seen it close
            while b" 200 " not in (await exchange(port, b"GET /small HTTP/1.0\r\n\r\n"))[0]:
                await asyncio.sleep(0.01)
        held[1][1].close()


@pytest.mark.parametrize("wish", [b"keep-alive", b"close"])
async def test_an_answer_that_nobody_reads_is_not_kept(wish: bytes) -> None:
    async with serving(stall_s=0.1, idle_s=0.1) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: %b\r\n\r\n" % wish)
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0.6)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        got = 0
        try:
            async with asyncio.timeout(PATIENCE_S):
                while piece := await reader.read(1 << 20):
                    got += len(piece)
        except ConnectionError:
            pass
        assert got < len(LARGE)
        writer.close()


async def test_a_slow_reader_is_served_to_the_end() -> None:
    async with serving(stall_s=2.0) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        got = 0
        while piece := await reader.read(400_000):
            got += len(piece)
            await asyncio.sleep(0.01)
        assert got == len(LARGE)
        writer.close()
