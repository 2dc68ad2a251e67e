"""Each way in which a provider can be too slow has a name, a limit of its own and an error that says which."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from podium.plan.v1 import plan_pb2
from podium_core.domain.errors import Code, PodiumError
from podium_router.calls import CallTimeouts
from tests.fakes.router_rig import Rig, router_rig
from tests.fakes.upstream import Reply, answer, chunk, event
from tests.fakes.waiting import STALL_S

EMPTY = event(chunk({"role": "assistant", "content": ""}))


async def failure(rig: Rig, reply: Reply, *, stream: bool) -> tuple[PodiumError, float]:
    """Return how an attempt fails, and after how many seconds."""
    rig.upstream.script.append(reply)
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(PodiumError) as failed:
        await rig.complete(rig.request(stream=stream))
    return failed.value, asyncio.get_running_loop().time() - began_s


@contextmanager
def deaf_address() -> Iterator[str]:
    """Return an address whose backlog is full: connections are neither taken nor refused."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
            waiting.append(one)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            for one in waiting:
                one.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_connect(stream: bool, tls_dir: Path, tmp_path: Path) -> None:
    with deaf_address() as address:
        worker = {"base_url": address, "limits": {"connect_timeout_s": 0.2}}
        timeouts = CallTimeouts(connect_s=STALL_S)  # were this the one that counts, the caller's would end it
        async with router_rig(tls_dir, tmp_path, worker=worker, timeouts=timeouts) as rig:
            error, _ = await failure(rig, answer("x"), stream=stream)
            assert (error.code, error.reason) == (Code.PROVIDER_FAILED, "PROVIDER_CONNECT_TIMEOUT")
            assert error.metadata["retryable"] == "true"
            end = await rig.audit.end_of("att_1")
            assert (end.dispatched, end.cost_usd_micros) == (False, 0), "nothing was sent"


@pytest.mark.parametrize(
    "late",
    [
        answer("late").but(delay_s=STALL_S),
        answer("late").but(events=(b": ping\n\n",) * 40 + answer("late").events, gap_s=0.05),
        answer("late").but(
            events=(EMPTY, *[event({"choices": []})] * 40, *answer("late").events), gap_s=0.05
        ),
    ],
    ids=["headers", "comments", "empty deltas"],
)
async def test_first_token(late: Reply, tls_dir: Path, tmp_path: Path) -> None:
    worker = {"limits": {"first_token_timeout_s": 0.3, "idle_timeout_s": 10}}
    async with router_rig(tls_dir, tmp_path, worker=worker) as rig:
        error, after_s = await failure(rig, late, stream=True)
        assert (error.code, error.reason) == (Code.DEADLINE, "PROVIDER_FIRST_TOKEN_TIMEOUT")
        assert after_s > 0.25
        end = await rig.audit.end_of("att_1")
        assert end.outcome == plan_pb2.ATTEMPT_OUTCOME_TIMED_OUT
        rig.write_pool(w={})
        assert (await rig.complete(rig.request(stream=True))).text == "hello"


async def test_idle_gap(tls_dir: Path, tmp_path: Path) -> None:
    worker = {"limits": {"idle_timeout_s": 0.8, "first_token_timeout_s": 60}}
    async with router_rig(tls_dir, tmp_path, worker=worker) as rig:
        slow_start = answer("a").but(delay_s=1.2)
        rig.upstream.script.append(slow_start)
        assert (await rig.complete(rig.request(stream=True))).text == "a", "no gap before the first token"
        two = answer("a", "b")
        paused = two.but(events=(two.events[0] + two.events[1], *two.events[2:]), gap_s=STALL_S)
        error, _ = await failure(rig, paused, stream=True)
        assert (error.code, error.reason) == (Code.DEADLINE, "PROVIDER_IDLE_TIMEOUT")
        end = await rig.audit.end_of("att_2")
        assert end.usage.output_tokens > 0, "what came is counted"


@pytest.mark.parametrize("stream", [False, True])
async def test_total(stream: bool, tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker={"limits": {"timeout_s": 0.4}}) as rig:
        steady = answer(*["word "] * 40).but(gap_s=0.05, delay_s=0 if stream else STALL_S)
        error, after_s = await failure(rig, steady, stream=stream)
        assert (error.code, error.reason) == (Code.DEADLINE, "WORKER_TIMEOUT")
        assert after_s > 0.3


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_worker_says_nothing_of_is_the_routers_setting(
    stream: bool, tls_dir: Path, tmp_path: Path
) -> None:
    timeouts = CallTimeouts(first_token_s=0.2, idle_s=0.2)
    async with router_rig(tls_dir, tmp_path, timeouts=timeouts) as rig:
        rig.upstream.default = answer("late").but(delay_s=0.5)
        if stream:
            with pytest.raises(PodiumError) as failed:
                await rig.complete(rig.request(stream=True))
            assert failed.value.reason == "PROVIDER_FIRST_TOKEN_TIMEOUT"
        else:
            assert (await rig.complete(rig.request())).text == "late", "a whole answer has no first token"


async def test_a_reader_that_is_slow_is_not_the_providers_silence(tls_dir: Path, tmp_path: Path) -> None:
    worker = {"limits": {"idle_timeout_s": 1.0}}
    texts = ["x" * 9_000 for _ in range(1_500)]
    async with router_rig(tls_dir, tmp_path, worker=worker) as rig:
        rig.upstream.default = answer(*texts)
        call: Any = rig.stub().Complete(rig.request(stream=True), timeout=60)
        await call.read()
        await call.read()
        await asyncio.sleep(2.0)
        finish_reason = ""
        while (message := await call.read()) is not grpc.aio.EOF:
            finish_reason = message.completed.finish_reason or finish_reason
        assert finish_reason == "stop"


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
async def test_a_healthy_worker_may_take_45_seconds_by_default(
    stream: bool, tls_dir: Path, tmp_path: Path
) -> None:
    worker = {"limits": {"max_concurrency": 8}}
    async with router_rig(tls_dir, tmp_path, worker=worker) as rig:
        rig.upstream.default = answer("late").but(delay_s=45)
        assert (await rig.complete(rig.request(stream=stream), timeout_s=60)).text == "late"
