"""Quorum and straggler wait: a step goes on without the slowest, which is cancelled, billed and told."""

import asyncio

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import AttemptOutcome, Caps, RunOutcome
from podium_core.domain.usage import UsageSource
from podium_core.orchestration.events import RunFinished, StepEnded, StepResult
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.worker import FakeWorkers, Reply
from tests.unit.podium_core.orchestration.test_runner import Bench, request, text_of

FAN = plan_of(("a", "first", ()), ("b", "second", ()), ("c", "third", ()), ("a", "join", (0, 1, 2)))


def never() -> asyncio.Event:
    return asyncio.Event()


async def performed(workers: FakeWorkers, caps: Caps) -> tuple[Bench, RunFinished, dict[int, StepResult]]:
    bench = Bench(FakePlanner(FAN), workers)
    events = await bench.events(request(caps=caps))
    last = events[-1]
    assert isinstance(last, RunFinished)
    return bench, last, {e.result.step_index: e.result for e in events if isinstance(e, StepEnded)}


def workers_with(b: Reply, c: Reply) -> FakeWorkers:
    return FakeWorkers({"a": [Reply("A"), Reply("joined")], "b": b, "c": c})


async def test_two_of_three_are_enough_and_the_third_is_cancelled_and_billed() -> None:
    workers = workers_with(Reply("B"), Reply("C", gate=never()))
    bench, finished, steps = await performed(workers, Caps(quorum=2))
    assert finished.outcome is RunOutcome.ANSWERED
    assert finished.answer is not None
    assert finished.answer.text == "joined"
    join = bench.workers.calls[-1]
    assert join.access.steps == (0, 1)
    assert "third" not in text_of(join)
    late = steps[2]
    assert (late.ok, late.error and late.error.reason) == (False, "STEP_STRAGGLED")
    (attempt,) = late.attempts
    assert attempt.outcome is AttemptOutcome.CANCELLED
    assert attempt.usage.source is UsageSource.UNKNOWN
    assert attempt.cost_usd_micros > 0, "nobody knows what it used: its worst case counts"
    assert finished.cost_usd_micros > attempt.cost_usd_micros
    assert ("cancelled", bench.workers.calls_of("c")[0].attempt_id) in bench.workers.log


async def test_a_failure_does_not_count_towards_the_quorum() -> None:
    gate = asyncio.Event()
    failed = Reply(error=PodiumError(Code.PROVIDER_FAILED, "no", metadata={"retryable": "false"}))
    workers = FakeWorkers(
        {"a": [Reply("A"), failed, Reply("joined")], "b": failed, "c": Reply("C", gate=gate)}
    )
    asyncio.get_running_loop().call_later(0.05, gate.set)
    bench, finished, _ = await performed(workers, Caps(quorum=2))
    assert finished.outcome is RunOutcome.ANSWERED
    assert 2 in bench.workers.calls[-1].access.steps, "it waited for the third"


async def test_after_the_straggler_wait_it_goes_on_with_what_there_is() -> None:
    workers = workers_with(Reply("B", gate=never()), Reply("C", gate=never()))
    bench, finished, steps = await performed(workers, Caps(straggler_wait_s=0.1))
    assert finished.outcome is RunOutcome.ANSWERED
    assert finished.duration_us > 100_000
    assert bench.workers.calls[-1].access.steps == (0,)
    assert {index for index, step in steps.items() if not step.ok} == {1, 2}


async def test_with_nothing_to_go_on_with_it_waits() -> None:
    gate = asyncio.Event()
    slow = Reply("slow", gate=gate)
    workers = FakeWorkers({"a": [slow, Reply("joined")], "b": slow, "c": slow})
    asyncio.get_running_loop().call_later(0.15, gate.set)
    bench, finished, _ = await performed(workers, Caps(straggler_wait_s=0.05))
    assert finished.outcome is RunOutcome.ANSWERED
    assert finished.duration_us > 150_000
    assert len(bench.workers.calls[-1].access.steps) >= 1


async def test_a_step_that_another_still_waits_for_is_left_alone() -> None:
    gate = asyncio.Event()
    plan = plan_of(("a", "quick", ()), ("c", "slow", ()), ("b", "impatient", (0, 1)), ("a", "needs c", (1,)))
    workers = FakeWorkers({"a": [Reply("A"), Reply("end")], "b": Reply("B"), "c": Reply("C", gate=gate)})
    bench = Bench(FakePlanner(plan), workers)
    asyncio.get_running_loop().call_later(0.1, gate.set)
    finished = await bench.finish(request(caps=Caps(quorum=1)))
    assert finished.answer is not None
    assert finished.answer.text == "end"
    assert "C" in text_of(bench.workers.calls[-1])
    assert bench.workers.calls_of("b")[0].access.steps == (0,)


@pytest.mark.parametrize("caps", [Caps(), Caps(quorum=3), Caps(quorum=5)])
async def test_without_a_smaller_quorum_all_are_waited_for(caps: Caps) -> None:
    gate = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, gate.set)
    bench, _, _ = await performed(workers_with(Reply("B"), Reply("C", gate=gate)), caps)
    assert bench.workers.calls[-1].access.steps == (0, 1, 2)


async def test_the_rule_is_on_record_before_anything_is_sent() -> None:
    bench, _, _ = await performed(workers_with(Reply("B"), Reply("C")), Caps(quorum=2, straggler_wait_s=3.0))
    recorded = bench.recorder.only.opened.caps
    assert (recorded.quorum, recorded.straggler_wait_s) == (2, 3.0)
