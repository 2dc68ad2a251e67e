"""What clients may do to the gateway's connections and bodies without harm to the others."""

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress

import aiohttp
import pytest

from podium_core.runtime.http_server import ConnectionLimits
from tests.fakes.gateway import TOKEN, EdgeServer, gateway_settings, running_edge
from tests.fakes.waiting import PATIENCE_S, until

URL = "/v1/chat/completions"
ASKED = {"model": "podium", "messages": [{"role": "user", "content": "6 times 7?"}]}
HEAD = f"POST {URL} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"


async def ask(edge: EdgeServer) -> int:
    async with (
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.post(edge.url + URL, json=ASKED) as response,
    ):
        return response.status


async def connection(edge: EdgeServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(edge.url.rsplit(":", 1)[1]))


async def drop(writers: Iterable[asyncio.StreamWriter]) -> None:
    for writer in list(writers):
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.parametrize(
    "announced",
    [
        "Transfer-Encoding: chunked\r\n\r\n5\r\n",
        f"Content-Length: {32 * 2**20}\r\n\r\n ",
        "Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n",
    ],
    ids=["chunked", "with a length", "compressed"],
)
async def test_bodies_that_are_only_announced_keep_nobody_out(announced: str) -> None:
    async with running_edge(max_concurrent_bytes=48 * 2**20) as edge:
        stalled = [await connection(edge) for _ in range(20)]
        for _, writer in stalled:
            writer.write(f"{HEAD}{announced}".encode())
        await until(lambda: edge.edge.admission.count == len(stalled))
        assert await ask(edge) == 200
        await drop(writer for _, writer in stalled)


async def test_bodies_that_come_are_counted_while_they_come() -> None:
    async with running_edge(max_concurrent_bytes=48 * 2**20) as edge:
        large = [await connection(edge) for _ in range(2)]
        for _, writer in large:
            writer.write(f"{HEAD}Content-Length: {30 * 2**20}\r\n\r\n".encode())
            writer.write(b" " * (29 * 2**20))
        async with asyncio.timeout(PATIENCE_S):
            heads = [asyncio.ensure_future(reader.readuntil(b"\r\n")) for reader, _ in large]
            done, waiting = await asyncio.wait(heads, return_when=asyncio.FIRST_COMPLETED)
        assert [b" 429 " in head.result() for head in done] == [True]
        for head in waiting:
            head.cancel()
        await drop(writer for _, writer in large)


async def test_what_is_no_http_gets_the_same_error_shape() -> None:
    async with running_edge() as edge:
        reader, writer = await connection(edge)
        writer.write(f"{HEAD[:-2]}\x00canary\r\n\r\n".encode())
        head, _, body = (await asyncio.wait_for(reader.read(), PATIENCE_S)).partition(b"\r\n\r\n")
        await drop([writer])
    error = json.loads(body)["error"]
    assert (head.split(b" ")[1], error["code"], error["type"]) == (
        b"400",
        "malformed_http",
        "invalid_request_error",
    )
    assert b"canary" not in head + body
    assert TOKEN.encode() not in head + body


def test_there_is_room_for_as_many_waiting_connections_as_working_ones() -> None:
    assert gateway_settings().connection_limits.max_connections == ConnectionLimits().max_connections
    assert gateway_settings(max_concurrent_runs=9_000).connection_limits.max_connections == 18_000
