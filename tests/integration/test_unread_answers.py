"""Clients that ask for long answers and do not read them: the gateway keeps little of what waits for them."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.fakes.gateway import TOKEN, running_edge
from tests.fakes.gateway_process import gateway_process
from tests.fakes.stack import asked, running_stack
from tests.fakes.upstream import answer
from tests.fakes.worker import FakeWorkers, Reply

QUESTION: Any = [{"role": "user", "content": "6 times 7?"}]
_STREAMS = 20
_PIECE = "0123456789abcdef" * 256
_PIECES = 1_900  # with what surrounds them, a little less than the eight mebibytes that a router lets through
_MIB = 2**20
_MOST_BYTES = 500 * _MIB
"""Held whole, the unread answers took a gibibyte; held back, they take half of this on a busy machine."""


def resident_bytes(pid: int) -> int:
    rows = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    (line,) = [row for row in rows if row.startswith("VmRSS:")]
    return int(line.split()[1]) * 1_024


async def ask_and_leave_unread(port: int, key: str) -> asyncio.StreamWriter:
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    narrow.setblocking(False)
    await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", port))
    _, writer = await asyncio.open_connection(sock=narrow, limit=1_024)
    data = json.dumps(asked(stream=True)).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n"
    writer.write(f"{head}Authorization: {key}\r\n\r\n".encode() + data)
    return writer


async def test_unread_answers_wait_at_their_provider(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        stack.upstream.default = answer(*[_PIECE] * _PIECES)
        async with gateway_process(stack, tls_dir, tmp_path) as (port, pid):
            before = resident_bytes(pid)
            key = stack.session.headers["Authorization"]
            unread = [await ask_and_leave_unread(port, key) for _ in range(_STREAMS)]
            await stack.upstream.seen(_STREAMS)
            held: list[int] = [before]
            while len(held) < 10 or held[-1] > held[-5]:  # until it grows no more
                await asyncio.sleep(0.2)
                held.append(resident_bytes(pid))
            assert max(held) - before < _MOST_BYTES
            for writer in unread:
                writer.transport.abort()


async def test_answers_that_fit_no_more_end_their_own_run_and_no_other() -> None:
    """The bound of all runs together, at its smallest: 48 MiB."""
    long = Reply(pieces=("x" * _MIB,) * 60)
    workers = FakeWorkers({"alpha": long, "beta": Reply("fine")})
    async with (
        running_edge(workers=workers, max_concurrent_bytes=48 * _MIB) as edge,
        AsyncOpenAI(api_key=TOKEN, base_url=f"{edge.url}/v1") as client,
    ):
        with pytest.raises(openai.RateLimitError) as caught:
            await client.chat.completions.create(model="worker/alpha", messages=QUESTION)
        assert caught.value.code == "answer_not_held"
        assert len(workers.calls) == 1, "the client does not try again: it would be paid for again"
        done = await client.chat.completions.create(model="worker/beta", messages=QUESTION)
        assert done.choices[0].message.content == "fine"
        assert edge.edge.admission.count == 0
