"""Attempts over the one stream between gateway and router: each goes its own way, as its own call would."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import rpc_errors
from podium_gateway.adapters.router_stream import AttemptEvents, RouterStream
from podium_router.outbox import BatchLimits
from tests.fakes.router_rig import Rig, router_rig
from tests.fakes.upstream import answer
from tests.fakes.waiting import PATIENCE_S, until


@asynccontextmanager
async def streaming(tls_dir: Path, tmp_path: Path, **options: Any) -> AsyncIterator[tuple[Rig, RouterStream]]:
    async with router_rig(tls_dir, tmp_path, **options) as rig:
        stream = RouterStream(rig.channels["gateway"])
        try:
            yield rig, stream
        finally:
            await stream.close()


async def told(events: AttemptEvents) -> list[pb.CompleteResponse]:
    async with asyncio.timeout(PATIENCE_S):
        return [event async for event in events]


async def refusal(events: AttemptEvents) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        await told(events)
    return caught.value


async def test_an_attempt_tells_its_permit_its_text_and_its_end(tls_dir: Path, tmp_path: Path) -> None:
    async with streaming(tls_dir, tmp_path) as (rig, stream):
        rig.upstream.default = answer("for", "ty", "-two")
        events = await told(stream.complete(rig.request(stream=True), 60, ""))
        called = await rig.complete(rig.request(stream=True))
    kinds = [event.WhichOneof("event") for event in events]
    assert (kinds[0], kinds[-1], set(kinds[1:-1])) == ("permitted", "completed", {"delta"})
    assert "".join(event.delta.text for event in events) == called.text == "forty-two"
    assert events[-1].completed.usage == called.done.usage


async def test_hundreds_at_once_each_hear_their_own_answer(tls_dir: Path, tmp_path: Path) -> None:
    async with streaming(tls_dir, tmp_path) as (rig, stream):
        names = [f"m{number}" for number in range(40)]
        rig.write_pool(**{name: {} for name in names})
        rig.upstream.by_model = {f"{name}-model": answer(f"I am {name}") for name in names}
        asked = [stream.complete(rig.request(worker_id=name), 60, "") for name in names * 5]
        answers = [events[-1].completed.message.text for events in await asyncio.gather(*map(told, asked))]
    assert answers == [f"I am {name}" for name in names * 5]


async def test_refusals_keep_their_code_reason_and_parameter(tls_dir: Path, tmp_path: Path) -> None:
    async with streaming(tls_dir, tmp_path) as (rig, stream):
        wrong = {"run_id": "no run!"}
        good = stream.complete(rig.request(), 60, "")
        streamed = await refusal(stream.complete(rig.request(**wrong), 60, ""))
        with pytest.raises(PodiumError) as called:
            await rig.complete(rig.request(**wrong))
        stale = await refusal(stream.complete(rig.request(pool_digest="old"), 60, ""))
        assert (await told(good))[-1].HasField("completed"), "one refusal spoils no other attempt"
    expected = called.value
    assert (streamed.code, streamed.reason, streamed.param) == (expected.code, expected.reason, "run_id")
    assert streamed.message == expected.message
    assert stale.code is Code.CONFLICT


@pytest.mark.parametrize("caller", ["conductor", "cli", "audit"])
async def test_only_the_gateway_may_perform(tls_dir: Path, tmp_path: Path, caller: str) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        call = rig.stub(caller).Perform(timeout=60)
        with pytest.raises(PodiumError) as caught, rpc_errors("router"):
            await call.read()
    assert caught.value.reason == "CALLER_NOT_ALLOWED"


async def test_a_cancelled_attempt_is_stopped_and_its_neighbour_goes_on(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with streaming(tls_dir, tmp_path) as (rig, stream):
        rig.write_pool(w={}, other={})
        rig.upstream.by_model = {
            "w-model": answer(*["word "] * 600).but(gap_s=0.05),
            "other-model": answer("a", "b", "c").but(gap_s=0.2),
        }
        left = stream.complete(rig.request(stream=True), 60, "")
        neighbour = asyncio.create_task(
            told(stream.complete(rig.request(stream=True, worker_id="other"), 60, ""))
        )
        await anext(left)
        await rig.upstream.seen(2)
        left.cancel()
        end = await rig.audit.end_of("att_1")
        seen = next(request for request in rig.upstream.requests if request.fields["model"] == "w-model")
        await until(lambda: seen.ended_s is not None)
        assert seen.was_hung_up
        assert "".join(event.delta.text for event in await neighbour) == "abc"
    assert end.error_reason == "CANCELLED"


async def test_an_attempts_time_is_over_although_the_stream_lives(tls_dir: Path, tmp_path: Path) -> None:
    async with streaming(tls_dir, tmp_path) as (rig, stream):
        rig.upstream.default = answer("late").but(delay_s=30)
        error = await refusal(stream.complete(rig.request(), 0.3, ""))
        rig.upstream.default = answer("in time")
        after = await told(stream.complete(rig.request(), 60, ""))
    assert error.code is Code.DEADLINE
    assert after[-1].completed.message.text == "in time"


async def test_a_reader_that_stands_still_holds_up_nobody_and_loses_nothing(
    tls_dir: Path, tmp_path: Path
) -> None:
    limits = BatchLimits(interval_s=0, size=1)
    async with streaming(tls_dir, tmp_path, batch_limits=limits) as (rig, stream):
        rig.write_pool(w={}, other={})
        long = ["x" * 40] * 3_000
        rig.upstream.by_model = {"w-model": answer(*long), "other-model": answer("quick")}
        stalled = stream.complete(rig.request(stream=True), 60, "")
        await anext(stalled)
        await rig.upstream.seen(1)
        quick = await told(stream.complete(rig.request(worker_id="other"), 60, ""))
        assert quick[-1].completed.message.text == "quick"
        rest = await told(stalled)
        assert "".join(event.delta.text for event in rest) == "".join(long), "all of it, once it is read"


async def test_a_stopping_router_ends_what_it_took(tls_dir: Path, tmp_path: Path) -> None:
    async with streaming(tls_dir, tmp_path) as (rig, stream):
        rig.upstream.default = answer("slow").but(delay_s=0.3)
        taken = stream.complete(rig.request(), 60, "")
        await anext(taken)
        rig.servicer.close()
        assert (await told(taken))[-1].completed.message.text == "slow"


async def test_a_stream_that_breaks_fails_what_is_under_way_and_stops_it(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with streaming(tls_dir, tmp_path) as (rig, stream):
        rig.upstream.default = answer("late").but(delay_s=30)
        waiting = stream.complete(rig.request(), 60, "")
        await anext(waiting)
        await rig.upstream.seen(1)
        await stream.close()
        assert (await refusal(waiting)).code is Code.UNAVAILABLE
        assert (await rig.audit.end_of("att_1")).error_reason == "CANCELLED"
        rig.upstream.default = answer("again")
        again = await told(stream.complete(rig.request(), 60, ""))
    assert again[-1].completed.message.text == "again"
