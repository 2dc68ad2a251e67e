"""The demo provider over real HTTP: the protocol, the official client, the request log and the faults."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen

import aiohttp
import openai
import pytest

from podium_core.domain.clock import SystemClock
from podium_demo.server import DemoServer
from tests.fakes.ids import CountingIds
from tests.fakes.waiting import PATIENCE_S, SOON_S, until


@asynccontextmanager
async def running(
    log: Path | None = None, *, faults: bool = True
) -> AsyncIterator[tuple[DemoServer, aiohttp.ClientSession]]:
    server = await DemoServer(SystemClock(), CountingIds(), request_log=log, allow_faults=faults).start()
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
            yield server, session
    finally:
        await server.stop()


def body(
    text: str = "uppercase one two three", *, stream: bool = False, model: str = "demo-text"
) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": text}], "stream": stream}


async def fault(server: DemoServer, session: aiohttp.ClientSession, **fields: object) -> None:
    async with session.post(
        f"{server.base_url.removesuffix('/v1')}/faults", json={"model": "*", **fields}
    ) as answer:
        assert answer.status == 201


async def test_the_official_client_works_streaming_and_not() -> None:
    async with (
        running() as (server, _),
        openai.AsyncOpenAI(api_key="none", base_url=server.base_url) as client,
    ):
        whole = await client.chat.completions.create(
            model="demo-arithmetic", messages=[{"role": "user", "content": "Multiply 17 by 23"}]
        )
        assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("391", "stop")
        assert whole.system_fingerprint == "demo"
        stream = await client.chat.completions.create(
            model="demo-text",
            messages=[{"role": "user", "content": "uppercase one two"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "ONE TWO"
        assert chunks[-1].usage is not None
        models = await client.models.list()
        assert {model.owned_by for model in models.data} == {"podium-demo"}
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(model="gpt-9", messages=[{"role": "user", "content": "hi"}])
        assert caught.value.code == "model_not_found"


async def test_every_request_is_logged_when_it_arrives(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    async with running(log) as (server, session):
        await fault(server, session, kind="hang")
        sent = json.dumps(body(stream=True)).encode()
        before_ns = time.time_ns()
        request = asyncio.create_task(
            session.post(
                f"{server.base_url}/chat/completions", data=sent, headers={"X-Client-Request-Id": "att_1"}
            )
        )
        await until(log.read_text)
        assert not request.done(), "the line is there although no answer was begun"
        request.cancel()
        async with session.post(f"{server.base_url}/chat/completions", data=b"{") as answer:
            assert answer.status == 400
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {k: v for k, v in lines[0].items() if k != "time_ns"} == {
        "attempt_id": "att_1",
        "model": "demo-text",
        "stream": True,
        "body_sha256": sha256(sent).hexdigest(),
    }
    assert before_ns <= lines[0]["time_ns"] <= time.time_ns()
    assert (lines[1]["attempt_id"], lines[1]["model"]) == ("", "")


async def test_faults_exist_only_when_allowed() -> None:
    async with (
        running(faults=False) as (server, session),
        session.post(f"{server.base_url.removesuffix('/v1')}/faults", json={}) as answer,
    ):
        assert answer.status == 404


async def test_a_status_fault_answers_in_the_providers_words() -> None:
    async with running() as (server, session):
        await fault(server, session, kind="status", status=429, retry_after_seconds=2, code="slow_down")
        async with session.post(f"{server.base_url}/chat/completions", json=body()) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "2")
            error = (await answer.json())["error"]
            assert (error["type"], error["code"]) == ("rate_limit_error", "slow_down")
        async with session.post(f"{server.base_url}/chat/completions", json=body()) as answer:
            assert answer.status == 200, "the fault was for one request"


_AFTER_ONE = b'"content":"ONE"},"logprobs":null,"finish_reason":null}]}\n\n'


@pytest.mark.parametrize(
    ("kind", "fields", "ending"),
    [
        ("cut", {"after_deltas": 1}, _AFTER_ONE),
        ("cut", {"after_bytes": 100}, b""),
        ("cut", {}, b""),
        ("hang", {"after_deltas": 1}, _AFTER_ONE),
        ("hang", {}, b""),
    ],
)
async def test_streams_break_where_they_should(kind: str, fields: dict[str, object], ending: bytes) -> None:
    async with running() as (server, session):
        await fault(server, session, kind=kind, **fields)
        got = await _read_until_it_breaks(server, session, 0.3 if kind == "hang" else 5)
        assert got.endswith(ending)
        assert len(got) == fields.get("after_bytes", len(got))
        if kind == "hang":
            await _until_nobody_hangs(server, session)


async def _read_until_it_breaks(
    server: DemoServer, session: aiohttp.ClientSession, patience_s: float
) -> bytes:
    got = b""
    try:
        async with (
            asyncio.timeout(patience_s),
            session.post(f"{server.base_url}/chat/completions", json=body(stream=True)) as answer,
        ):
            async for piece in answer.content.iter_any():
                got += piece
    except (aiohttp.ClientError, TimeoutError):
        return got
    raise AssertionError("the stream ended well")


async def _until_nobody_hangs(server: DemoServer, session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with session.get(f"{server.base_url.removesuffix('/v1')}/faults") as answer:
                if (await answer.json())["open_requests"] == 0:
                    return
            await asyncio.sleep(0.01)


async def test_a_whole_body_can_be_cut() -> None:
    async with running() as (server, session):
        await fault(server, session, kind="cut", after_bytes=20)
        with pytest.raises(aiohttp.ClientPayloadError):
            async with session.post(f"{server.base_url}/chat/completions", json=body()) as answer:
                await answer.read()


async def test_a_split_body_arrives_in_pieces_and_whole() -> None:
    async with running() as (server, session):
        await fault(server, session, kind="split", chunk_bytes=3, between_seconds=0.0005)
        request = body(
            "uppercase '\N{LATIN SMALL LETTER U WITH DIAERESIS}\N{EURO SIGN}\U0001f600'", stream=True
        )
        async with session.post(f"{server.base_url}/chat/completions", json=request) as answer:
            pieces = [piece async for piece in answer.content.iter_any()]
        assert len(pieces) > 50
        assert "\N{LATIN CAPITAL LETTER U WITH DIAERESIS}\N{EURO SIGN}\U0001f600" in b"".join(pieces).decode()
        assert b"".join(pieces).endswith(b"data: [DONE]\n\n")


async def test_delays_delay_and_can_be_deleted() -> None:
    async with running() as (server, session):
        await fault(server, session, kind="delay", seconds=0.1, between_seconds=0.05)
        started = time.monotonic()
        async with session.post(f"{server.base_url}/chat/completions", json=body(stream=True)) as answer:
            await answer.read()
        assert time.monotonic() - started >= 0.25
        await fault(server, session, kind="delay", seconds=60, count=5)
        async with session.delete(f"{server.base_url.removesuffix('/v1')}/faults") as answer:
            assert answer.status == 204
        async with session.post(f"{server.base_url}/chat/completions", json=body()) as answer:
            assert answer.status == 200


async def test_errors_have_a_body() -> None:
    async with running() as (server, session):
        for method, path, status in [
            ("GET", "/nope", 404),
            ("PUT", "/models", 405),
            ("GET", "/models/x", 404),
        ]:
            async with session.request(method, f"{server.base_url}{path}") as answer:
                assert answer.status == status
                assert (await answer.json())["error"]["message"]
        async with session.post(
            f"{server.base_url}/chat/completions", data=BytesIO(b" " * (33 << 20))
        ) as answer:
            assert (answer.status, bool((await answer.json())["error"]["message"])) == (413, True)


async def test_a_huge_question_is_declined_quickly() -> None:
    async with running() as (server, session):
        started = time.monotonic()
        request = BytesIO(json.dumps(body("1" * 10_000_000, model="demo-arithmetic")).encode())
        async with session.post(f"{server.base_url}/chat/completions", data=request) as answer:
            said = (await answer.json())["choices"][0]["message"]["content"]
        assert "longer than 2000 characters" in said
        assert time.monotonic() - started < SOON_S, "reading it as a number would take minutes"


def test_the_command_serves_says_demo_and_stops(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "podium_demo",
        "--listen",
        "127.0.0.1:0",
        "--request-log",
        str(tmp_path / "log"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said, _, url = process.stdout.readline().rpartition(" ")
        assert said == "demo provider (specialist programs, not language models):"
        with urlopen(f"{url.strip()}/models", timeout=60) as answer:
            assert len(json.load(answer)["data"]) == 4
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--listen", "0.0.0.0:7070"], "loopback"),
        (["--listen", "127.0.0.1:99999"], "port"),
        (["--request-log", "/nonexistent/log"], "cannot be written"),
    ],
)
def test_the_command_refuses_bad_options(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from podium_demo.__main__ import main

    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err
