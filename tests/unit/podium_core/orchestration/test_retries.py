"""When a worker is asked again, when the fallback is asked instead, and what a client hears of it."""

from dataclasses import replace

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import Caps, RunOutcome
from podium_core.orchestration.events import AnswerDelta, RunFinished
from podium_core.orchestration.retry_budget import RetryBudget
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.worker import FakeWorkers, Reply
from tests.unit.podium_core.orchestration.test_runner import LIMITS, Bench, request

ONE = plan_of(("a", "", ()))
ALONE = pool(worker("a"))


def busy(retry_after_s: float | None) -> Reply:
    error = PodiumError(
        Code.RATE_LIMITED, "the provider is busy", reason="PROVIDER_RATE_LIMITED", retry_after_s=retry_after_s
    )
    return Reply(error=error)


def broken(**metadata: str) -> Reply:
    return Reply(error=PodiumError(Code.PROVIDER_FAILED, "it failed", metadata=metadata))


async def test_a_provider_that_says_when_is_not_asked_sooner() -> None:
    bench = Bench(
        FakePlanner(ONE), FakeWorkers({"a": [busy(0.2), Reply("fine")]}), replace(LIMITS, retry_max_s=1)
    )
    finished = await bench.finish(request(), ALONE)
    assert finished.outcome is RunOutcome.ANSWERED
    assert finished.duration_us > 200_000
    assert finished.answer is not None
    assert [attempt.error_reason for attempt in finished.answer.attempts] == ["PROVIDER_RATE_LIMITED", ""]


async def test_429_then_500s_ends_at_the_fallback_that_the_plan_names_and_every_attempt_is_told() -> None:
    workers = FakeWorkers({"a": [busy(0.02), broken()], "b": Reply("from b")})
    bench = Bench(FakePlanner(ONE), workers)
    finished = await bench.finish(request())
    opened = bench.recorder.only.opened
    assert opened.plan is not None
    assert opened.plan.plan.steps[0].fallback_worker_id == "b"
    assert finished.answer is not None
    assert (finished.answer.text, finished.answer.worker_id) == ("from b", "b")
    assert [(attempt.worker_id, attempt.error_reason) for attempt in finished.answer.attempts] == [
        ("a", "PROVIDER_RATE_LIMITED"),
        ("a", "PROVIDER_FAILED"),
        ("b", ""),
    ]


async def test_a_wait_beyond_the_runs_patience_is_given_up_at_once_and_says_so() -> None:
    bench = Bench(FakePlanner(ONE), FakeWorkers({"a": busy(7)}), replace(LIMITS, retry_max_s=5))
    finished = await bench.finish(request(), ALONE)
    assert len(bench.workers.calls) == 1
    assert finished.duration_us < 1_000_000
    assert finished.error is not None
    assert (finished.error.code, finished.error.retry_after_s) == (Code.RATE_LIMITED, 7)
    assert finished.error.message.endswith("it asks for 7 s, and this run waits for at most 5 s")


async def test_a_wait_beyond_the_runs_time_is_given_up_at_once() -> None:
    limits = replace(LIMITS, retry_max_s=60)
    bench = Bench(FakePlanner(ONE), FakeWorkers({"a": busy(7)}), limits)
    finished = await bench.finish(request(caps=Caps(max_duration_s=2.0)), ALONE)
    assert len(bench.workers.calls) == 1
    assert finished.error is not None
    assert "this run waits for at most" in finished.error.message


@pytest.mark.parametrize("how", [broken(retryable="false"), Reply(error=PodiumError(Code.DEADLINE, "late"))])
async def test_what_will_not_help_is_not_tried_again(how: Reply) -> None:
    bench = Bench(FakePlanner(ONE), FakeWorkers({"a": how}))
    await bench.finish(request(), ALONE)
    assert len(bench.workers.calls) == 1


async def test_once_a_byte_is_out_nobody_else_is_asked() -> None:
    cut = Reply("one two three", error=PodiumError(Code.PROVIDER_FAILED, "cut"), pieces_before_error=2)
    bench = Bench(FakePlanner(ONE), FakeWorkers({"a": cut, "b": Reply("other")}))
    events = await bench.events(request(stream=True))
    assert "".join(e.delta.text for e in events if isinstance(e, AnswerDelta)) == "one two "
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.outcome is RunOutcome.FAILED
    assert len(bench.workers.calls) == 1


async def test_a_failure_before_the_first_byte_repeats_no_text() -> None:
    cut = Reply("one two", error=PodiumError(Code.PROVIDER_FAILED, "cut"), pieces_before_error=0)
    bench = Bench(FakePlanner(ONE), FakeWorkers({"a": cut, "b": Reply("one two")}))
    events = await bench.events(request(stream=True))
    assert "".join(e.delta.text for e in events if isinstance(e, AnswerDelta)) == "one two"


async def test_a_worker_that_keeps_failing_uses_up_its_second_calls() -> None:
    bench = Bench(FakePlanner(ONE), FakeWorkers({"a": broken()}))
    for number in range(20):
        await bench.finish(request(run_id=f"run_{number}"), ALONE)
    second_calls = len(bench.workers.calls) - 20
    assert 10 <= second_calls <= 14, "ten at first, then one in five"


def test_first_calls_earn_second_ones_up_to_a_bound() -> None:
    budget = RetryBudget()
    for _ in range(1_000):
        budget.earn("w")
    assert sum(budget.spend("w") for _ in range(1_000)) == 100
    assert budget.spend("other"), "each worker has its own"
