"""When the caller goes away, the provider's connection goes too, and the log hears what was used."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from podium.audit.v1 import audit_service_pb2
from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_router.lanes import LaneLimits
from podium_router.providers.exchange import ProviderLimits
from tests.fakes.router_rig import Rig, router_rig
from tests.fakes.upstream import answer
from tests.fakes.waiting import SOON_S, STALL_S, until

CANCELLED = plan_pb2.ATTEMPT_OUTCOME_CANCELLED


async def hang_up(rig: Rig, request: pb.CompleteRequest, *, after: int) -> float:
    """Read that many messages, hang up, and return when."""
    call: Any = rig.stub().Complete(request, timeout=60)
    for _ in range(after):
        await call.read()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.read()
    return asyncio.get_running_loop().time()


async def closed_after(rig: Rig, since_s: float) -> float:
    """Return how long the provider's connection lived on."""
    (seen,) = rig.upstream.requests
    await until(lambda: seen.ended_s is not None)
    assert seen.was_hung_up
    assert seen.ended_s is not None
    return seen.ended_s - since_s


async def test_hanging_up_on_a_stream(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer(*["word "] * 600).but(gap_s=0.05)
        gone_s = await hang_up(rig, rig.request(stream=True), after=4)
        assert await closed_after(rig, gone_s) < SOON_S
        end = await rig.audit.end_of("att_1")
        assert (end.outcome, end.error_reason, end.dispatched) == (CANCELLED, "CANCELLED", True)
        assert end.usage.source == plan_pb2.USAGE_SOURCE_ESTIMATED
        assert 0 < end.usage.output_tokens < 100
        assert 0 < end.cost_usd_micros < rig.audit.begun["att_1"].max_cost_usd_micros
        assert end.contents[0].data.startswith(b"word word")


async def test_hanging_up_on_a_whole_answer(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer("late").but(delay_s=STALL_S)
        call: Any = rig.stub().Complete(rig.request(), timeout=60)
        await call.read()
        await rig.upstream.seen()
        call.cancel()
        assert await closed_after(rig, asyncio.get_running_loop().time()) < SOON_S
        end = await rig.audit.end_of("att_1")
        assert (end.outcome, end.usage.source) == (CANCELLED, plan_pb2.USAGE_SOURCE_UNKNOWN)
        assert end.cost_usd_micros == rig.audit.begun["att_1"].max_cost_usd_micros


async def test_a_deadline_of_the_caller_is_a_timeout(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer("late").but(delay_s=STALL_S)
        with pytest.raises(PodiumError) as failed:
            await rig.complete(timeout_s=1.0)
        assert failed.value.code is Code.DEADLINE
        assert await closed_after(rig, asyncio.get_running_loop().time()) < SOON_S
        end = await rig.audit.end_of("att_1")
        assert end.outcome == plan_pb2.ATTEMPT_OUTCOME_TIMED_OUT


async def test_hanging_up_before_the_permit_comes(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.audit.begin_gate = asyncio.Event()
        call: Any = rig.stub().Complete(rig.request(), timeout=60)
        await until(lambda: rig.audit.begin_calls)
        call.cancel()
        await until(lambda: rig.endings.pending)
        rig.audit.begin_gate.set()
        end = await rig.audit.end_of("att_1")
        assert (end.outcome, end.dispatched, end.cost_usd_micros) == (CANCELLED, False, 0)
        assert rig.upstream.requests == []


async def test_hanging_up_in_the_queue_asks_for_nothing(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker={"limits": {"max_concurrency": 1}}) as rig:
        rig.upstream.default = answer("slow").but(delay_s=1.0)
        first = asyncio.create_task(rig.complete(rig.request()))
        await rig.upstream.seen()
        call: Any = rig.stub().Complete(rig.request(), timeout=60)
        await asyncio.sleep(0.05)
        call.cancel()
        await first
        rig.upstream.default = answer("next")
        assert (await rig.complete(rig.request())).text == "next"
        assert set(rig.audit.begun) == {"att_1", "att_3"}


async def test_a_full_queue_is_a_rate_limit(tls_dir: Path, tmp_path: Path) -> None:
    worker = {"limits": {"max_concurrency": 1}}
    async with router_rig(tls_dir, tmp_path, worker=worker, lane_limits=LaneLimits(1, 0.1)) as rig:
        rig.upstream.default = answer("slow").but(delay_s=1.0)
        requests = [rig.request() for _ in range(3)]
        results = await asyncio.gather(
            *[rig.complete(request) for request in requests], return_exceptions=True
        )
        errors = [error for error in results if isinstance(error, PodiumError)]
        assert [(error.code, error.reason) for error in errors] == [(Code.RATE_LIMITED, "WORKER_BUSY")] * 2
        assert len(rig.upstream.requests) == 1


async def test_a_stopping_router_ends_what_it_began(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer(*["word "] * 100).but(gap_s=0.05)
        running = asyncio.create_task(rig.complete(rig.request(stream=True)))
        await rig.upstream.seen()
        await rig.dispatcher.drain(timeout_s=0.2)
        with pytest.raises(PodiumError) as stopped:
            await running
        assert stopped.value.code is Code.UNAVAILABLE
        assert await rig.endings.drain(2) == 0
        assert rig.audit.ended["att_1"].outcome == CANCELLED


async def test_a_slow_reader_slows_the_provider_and_loses_nothing(tls_dir: Path, tmp_path: Path) -> None:
    texts = [f"{number:06d} " + "x" * 9_000 for number in range(2_500)]
    limits = ProviderLimits(max_answer_bytes=64 * 1024 * 1024)
    async with router_rig(tls_dir, tmp_path, provider_limits=limits) as rig:
        rig.upstream.default = answer(*texts)
        call: Any = rig.stub().Complete(rig.request(stream=True), timeout=60)
        got: list[str] = []
        while True:
            event = await call.read()
            if event is grpc.aio.EOF:
                break
            got.append(event.delta.text)
            if len(got) == 2:
                await asyncio.sleep(0.3)
                (seen,) = rig.upstream.requests
                assert seen.ended_s is None, "the provider is held back"
        assert "".join(got) == "".join(texts)


async def test_two_hundred_streams_all_end(tls_dir: Path, tmp_path: Path) -> None:
    texts = [f"{number} " for number in range(20)]
    limits = {"max_concurrency": 1000, "timeout_s": 120}
    async with router_rig(tls_dir, tmp_path, worker={"limits": limits}) as rig:
        rig.upstream.default = answer(*texts).but(gap_s=0.05)
        requests = [rig.request(stream=True) for _ in range(200)]
        outcomes = await asyncio.gather(*[rig.complete(request, timeout_s=120) for request in requests])
        assert {outcome.text for outcome in outcomes} == {"".join(texts)}
        assert {outcome.done.finish_reason for outcome in outcomes} == {"stop"}
        ends: dict[str, audit_service_pb2.EndAttemptRequest] = await rig.audit.all_ended(200)
        assert {end.outcome for end in ends.values()} == {plan_pb2.ATTEMPT_OUTCOME_COMPLETED}
        await until(lambda: not rig.endings.pending)  # the last acknowledgements are on their way back
