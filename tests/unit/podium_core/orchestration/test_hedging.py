"""Hedging: a second attempt races one that says nothing; the first to speak counts, both are billed."""

import asyncio
from dataclasses import replace

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import LiveEstimate, Pool
from podium_core.domain.run import AttemptOutcome, Caps, RunOutcome
from podium_core.orchestration.events import AnswerDelta, RunFinished
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.waiting import until
from tests.fakes.worker import FakeWorkers, Reply
from tests.unit.podium_core.orchestration.test_runner import Bench, request

NO_CAPS = Caps()
ONE = plan_of(("a", "", ()))
HEDGED = pool(replace(worker("a"), hedge_after_s=0.05))


async def performed(
    *replies: Reply, stream: bool = False, caps: Caps = NO_CAPS, of: Pool = HEDGED
) -> tuple[Bench, RunFinished, str]:
    bench = Bench(FakePlanner(ONE), FakeWorkers({"a": replies}))
    events = await bench.events(request(stream=stream, caps=caps), of)
    last = events[-1]
    assert isinstance(last, RunFinished)
    text = "".join(event.delta.text for event in events if isinstance(event, AnswerDelta))
    return bench, last, text


async def test_off_by_default() -> None:
    slow = asyncio.Event()
    asyncio.get_running_loop().call_later(0.1, slow.set)
    bench, finished, _ = await performed(Reply("slow", gate=slow), Reply("fast"), of=pool(worker("a")))
    assert len(bench.workers.calls) == 1
    assert finished.answer is not None
    assert finished.answer.text == "slow"


async def test_a_quick_answer_is_not_raced() -> None:
    bench, finished, _ = await performed(Reply("quick"))
    assert len(bench.workers.calls) == 1
    assert finished.outcome is RunOutcome.ANSWERED


async def test_a_silent_attempt_is_raced_and_the_loser_is_cancelled_and_billed() -> None:
    bench, finished, _ = await performed(Reply("never", gate=asyncio.Event()), Reply("second"))
    assert finished.answer is not None
    assert finished.answer.text == "second"
    lost, won = finished.answer.attempts
    assert (lost.outcome, won.outcome) == (AttemptOutcome.CANCELLED, AttemptOutcome.COMPLETED)
    assert lost.cost_usd_micros > 0
    assert finished.cost_usd_micros == lost.cost_usd_micros + won.cost_usd_micros
    assert finished.usage == won.usage, "the answer's usage is the winner's"
    assert [end for end, _ in bench.workers.log].count("cancelled") == 1


async def test_streamed_text_comes_from_one_attempt_only() -> None:
    bench, finished, text = await performed(
        Reply("first words", gate=asyncio.Event()), Reply("second words"), stream=True
    )
    assert text == "second words"
    assert finished.outcome is RunOutcome.ANSWERED
    assert len(bench.workers.calls) == 2


async def test_both_may_speak_at_once_and_only_one_is_heard() -> None:
    gate = asyncio.Event()
    asyncio.get_running_loop().call_later(0.15, gate.set)
    _, finished, text = await performed(
        Reply("one one one", gate=gate), Reply("two two two", gate=gate), stream=True
    )
    assert text in ("one one one", "two two two")
    assert finished.answer is not None
    assert finished.answer.text == text


async def test_it_counts_against_the_attempts_of_the_step() -> None:
    waits = Reply("never", gate=asyncio.Event())
    bench, _, _ = await performed(waits, Reply("x"), caps=Caps(max_attempts_per_step=1, max_duration_s=0.3))
    assert len(bench.workers.calls) == 1


async def test_it_counts_against_the_calls_of_the_run() -> None:
    waits = Reply("never", gate=asyncio.Event())
    bench, finished, _ = await performed(waits, Reply("x"), caps=Caps(max_calls=1, max_duration_s=0.3))
    assert len(bench.workers.calls) == 1
    assert finished.error is not None
    assert finished.error.reason == "RUN_DEADLINE"


async def test_the_second_failing_leaves_the_first_its_chance() -> None:
    gate = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, gate.set)
    failed = Reply(error=PodiumError(Code.PROVIDER_FAILED, "no"))
    bench, finished, _ = await performed(Reply("first", gate=gate), failed)
    assert finished.answer is not None
    assert finished.answer.text == "first"
    assert len(bench.workers.calls) == 2


async def test_hanging_up_ends_both() -> None:
    bench = Bench(FakePlanner(ONE), FakeWorkers({"a": Reply("never", gate=asyncio.Event())}))
    running = asyncio.create_task(bench.events(request(), HEDGED))
    await until(lambda: len(bench.workers.calls) >= 2)
    running.cancel()
    await asyncio.wait([running])
    assert sorted(end for end, _ in bench.workers.log) == ["begun", "begun", "cancelled", "cancelled"]


@pytest.mark.parametrize(
    ("live", "stream", "calls"),
    [
        (LiveEstimate(50, 10, 10, answer_p95_ms=50), False, 2),
        (LiveEstimate(50, 10, 10, first_output_p95_ms=50), True, 2),
        (LiveEstimate(50, 10, 10, answer_p95_ms=50), True, 1),
        (LiveEstimate(50, 10, 10, first_output_p95_ms=50), False, 1),
        (LiveEstimate(5, 10, 10), False, 1),
        (None, True, 1),
    ],
)
async def test_a_learned_delay_is_that_of_its_own_recent_answers(
    live: LiveEstimate | None, stream: bool, calls: int
) -> None:
    slow = asyncio.Event()
    asyncio.get_running_loop().call_later(0.3, slow.set)
    learned = pool(replace(worker("a"), hedge_is_learned=True, live=live))
    bench, finished, _ = await performed(Reply("slow", gate=slow), Reply("second"), stream=stream, of=learned)
    assert len(bench.workers.calls) == calls
    assert finished.answer is not None
    assert finished.answer.text == ("second" if calls > 1 else "slow")
