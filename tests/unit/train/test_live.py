"""Live workers: what is asked once is paid once, what fails is masked, and money, time and places are bounded."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Step
from podium_core.domain.plan_format import render_plan
from podium_core.domain.plan_prompt import PlanPrompt, build_prompt
from podium_core.domain.pool import Worker
from podium_core.domain.run import Caps
from podium_core.domain.usage import Price, Usage, failure_facts
from podium_train.environments.batch import Attempted, BatchRefusedError, score_batch
from podium_train.environments.live import Grade, LiveEnvironment, live_performer
from podium_train.environments.live_cache import AnswerCache
from podium_train.environments.live_limits import LiveLimits, MoneyGuard, TokenBucket
from podium_train.environments.live_workers import GuardedWorkers
from podium_train.environments.performing import question_of
from podium_train.environments.port import Outcome, Task, Verdict
from podium_train.rewards.reward import RewardTerms
from tests.fakes.ids import CountingIds, FakeClock
from tests.fakes.pools import worker
from tests.fakes.worker import FakeWorkers, Reply, WorkerScript

DOLLAR = 1_000_000
LIMITS = LiveLimits(max_cost_usd_micros=DOLLAR, call_timeout_s=30.0, rollout_timeout_s=30.0)
WORKERS = (worker("one"), worker("two"), worker("three"))
FAILED = PodiumError(Code.PROVIDER_FAILED, "the provider failed", reason="PROVIDER_FAILED")
BUSY = PodiumError(Code.RATE_LIMITED, "too many calls", reason="PROVIDER_RATE_LIMITED", retry_after_s=3.0)


async def is_yes(text: str, task: Task) -> bool | None:
    return text == task.reference


@dataclass
class Rig:
    """A live environment over scripted workers, with the time that was slept written down."""

    scripts: Mapping[str, WorkerScript] = field(default_factory=dict)
    limits: LiveLimits = LIMITS
    grade: Grade = is_yes
    pool: tuple[Worker, ...] = WORKERS
    cache: AnswerCache = field(default_factory=AnswerCache)
    terms: RewardTerms = RewardTerms()

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.slept: list[float] = []
        self.traced: list[Mapping[str, object]] = []
        self.real = FakeWorkers(self.scripts, default=Reply("yes"))
        self.guarded = GuardedWorkers(
            self.real, self.pool, self.limits, self.clock, cache=self.cache, sleep=self.sleep
        )
        performer = live_performer(self.limits, self.clock, CountingIds())
        self.environment = LiveEnvironment(
            performer, self.guarded, self.grade, self.limits, self.terms, self.traced.append
        )

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)

    async def play(self, *steps: Step, task: Task | None = None) -> Outcome:
        return await self.environment.score_rounds((steps,), task or the_task())


def the_task(number: int = 1, pool: tuple[Worker, ...] = WORKERS) -> Task:
    return Task(f"task-{number}", f"Is it so, {number}?", "yes", "f", "c", "standard", pool, seed=number)


def solve(name: str) -> Step:
    return Step(name, "")


def compare(name: str, *seen: int) -> Step:
    return Step(name, "Compare the answers.", Access(seen))


def attempted(count: int, plan: Callable[[int], str]) -> list[Attempted]:
    batch = []
    for number in range(count):
        task = the_task(number)
        prompt = build_prompt(question_of(task), task.workers, Caps(), seed=1)
        batch.append(Attempted(prompt, plan(number), task))
    return batch


def prompt_of(task: Task) -> PlanPrompt:
    return build_prompt(question_of(task), task.workers, Caps(), seed=1)


# --- scoring ------------------------------------------------------------------------------------


async def test_a_plan_is_performed_by_real_workers_and_graded() -> None:
    rig = Rig({"two": Reply("no")})
    right = await rig.play(solve("one"))
    assert (right.verdict, right.reward, right.is_right, right.is_exact) == (Verdict.SCORED, 1.0, True, True)
    assert right.steps[0].cost_usd_micros == 7
    wrong = await rig.play(solve("one"), compare("two", 0))
    assert (wrong.reward, [step.worker_id for step in wrong.steps]) == (0.5, ["one", "two"])
    task = the_task()
    invalid = await rig.environment.score(prompt_of(task), "no plan at all", task)
    assert (invalid.verdict, invalid.reward) == (Verdict.INVALID, 0.0)
    valid = await rig.environment.score(prompt_of(task), render_plan([0], [""], [Access()]), task)
    assert valid.verdict is Verdict.SCORED
    assert [fact["verdict"] for fact in rig.traced] == ["scored", "scored", "invalid", "scored"]
    assert not any("Is it so" in str(fact) for fact in rig.traced)


async def test_terms_charge_the_plan_when_they_are_on() -> None:
    rig = Rig(terms=RewardTerms(per_extra_step=0.1))
    assert (await rig.play(solve("one"), compare("two", 0))).reward == pytest.approx(0.9)


# --- asked once, paid once ----------------------------------------------------------------------


async def test_rollouts_that_share_a_step_pay_for_it_once_even_at_the_same_time() -> None:
    gate = asyncio.Event()
    rig = Rig({"one": Reply("draft", gate=gate)})
    first = asyncio.create_task(rig.play(solve("one"), compare("two", 0)))
    second = asyncio.create_task(rig.play(solve("one"), compare("three", 0)))
    await asyncio.sleep(0.01)
    gate.set()
    outcomes = await asyncio.gather(first, second)
    assert len(rig.real.calls_of("one")) == 1
    assert [one.steps[0].cost_usd_micros for one in outcomes] == [7, 7]
    assert rig.guarded.money.spent_usd_micros == 3 * 7
    again = await rig.play(solve("one"), compare("two", 0))  # with another one-time tag in its prompt
    assert again.steps == outcomes[0].steps
    assert rig.guarded.call_count == 3


async def test_another_question_parameter_or_earlier_answer_is_another_call() -> None:
    rig = Rig({"one": lambda call: Reply(f"draft {call.prompt.question.text}")})
    for number in (1, 2):
        await rig.play(solve("one"), compare("two", 0), task=the_task(number))
    assert rig.guarded.call_count == 4


async def test_answers_outlive_the_process_and_broken_files_are_asked_again(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    first = Rig(cache=AnswerCache(folder))
    expected = await first.play(solve("one"), compare("two", 0))
    later = Rig(cache=AnswerCache(folder))
    assert await later.play(solve("one"), compare("two", 0)) == expected
    assert later.guarded.call_count == 0
    files = sorted(folder.iterdir())
    assert len(files) == 2
    for file, text in zip(files, ("{", '{"version": 1, "text": "x"}'), strict=True):
        file.write_text(text)
    broken = Rig(cache=AnswerCache(folder))
    assert await broken.play(solve("one"), compare("two", 0)) == expected
    assert broken.guarded.call_count == 2


async def test_a_full_disk_costs_the_cache_not_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = AnswerCache(folder)
    folder.rmdir()  # nothing can be written any more
    rig = Rig(cache=cache)
    assert (await rig.play(solve("one"))).reward == 1.0
    assert cache.unwritten_count == 1


async def test_failures_are_not_kept() -> None:
    rig = Rig({"one": [Reply(error=FAILED), Reply(error=FAILED), Reply("yes")]})
    assert (await rig.play(solve("one"))).verdict is Verdict.UNSCORABLE
    assert (await rig.play(solve("one"))).reward == 1.0


# --- what fails ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "pause_s"), [(FAILED, 1.0), (BUSY, 3.0)])
async def test_a_failed_call_is_tried_once_more(error: PodiumError, pause_s: float) -> None:
    rig = Rig({"one": [Reply(error=error), Reply("yes")]})
    assert (await rig.play(solve("one"))).reward == 1.0
    assert rig.slept == [pause_s]
    twice = Rig({"one": Reply(error=error)})
    outcome = await twice.play(solve("one"), compare("two", 0))
    assert (outcome.verdict, outcome.reward, outcome.reason) == (Verdict.UNSCORABLE, None, error.reason)
    assert len(twice.real.calls_of("one")) == 2


async def test_what_cannot_be_mended_is_not_tried_again() -> None:
    for error in (
        PodiumError(Code.INVALID_REQUEST, "too long", reason="CONTEXT_LENGTH_EXCEEDED"),
        PodiumError(Code.PROVIDER_FAILED, "gone for good", metadata={"retryable": "false"}),
        PodiumError(Code.RATE_LIMITED, "come back tomorrow", retry_after_s=86_400.0),
    ):
        rig = Rig({"one": Reply(error=error)})
        assert (await rig.play(solve("one"))).verdict is Verdict.UNSCORABLE
        assert len(rig.real.calls_of("one")) == 1


async def test_a_worker_that_always_times_out_is_masked_and_its_batch_refused() -> None:
    limits = replace(LIMITS, call_timeout_s=0.02)
    rig = Rig({"one": Reply(gate=asyncio.Event())}, limits)
    outcome = await rig.play(solve("one"))
    assert (outcome.verdict, outcome.reward, outcome.reason) == (Verdict.UNSCORABLE, None, "STEP_DEADLINE")
    assert [end for end, _ in rig.real.log if end != "begun"] == ["cancelled", "cancelled"]
    ids = prompt_of(the_task()).worker_ids

    def plan(bad: int) -> Callable[[int], str]:
        return lambda number: render_plan([ids.index("one" if number < bad else "two")], [""], [Access()])

    outcomes = await score_batch(rig.environment, attempted(10, plan(2)), timeout_s=30.0)
    assert [one.reward for one in outcomes] == [None, None, *[1.0] * 8]
    with pytest.raises(BatchRefusedError, match="3 of 10 completions") as refusal:
        await score_batch(rig.environment, attempted(10, plan(3)), timeout_s=30.0)
    assert refusal.value.reason == "BATCH_UNSCORABLE"
    assert refusal.value.metadata == {"STEP_DEADLINE": "3"}
    assert len(refusal.value.outcomes) == 10


async def test_a_reward_function_that_raises_blames_no_plan() -> None:
    async def raising(text: str, task: Task) -> bool | None:
        raise ZeroDivisionError(text)

    def raising_at_once(text: str, task: Task) -> "asyncio.Future[bool | None]":
        raise RuntimeError(text)

    async def undecided(text: str, task: Task) -> bool | None:
        return None

    async def endless(text: str, task: Task) -> bool | None:
        await asyncio.Event().wait()
        return True

    limits = replace(LIMITS, grading_timeout_s=0.02)
    for grade, reason in (
        (raising, "GRADER_RAISED"),
        (raising_at_once, "GRADER_RAISED"),
        (undecided, "UNGRADABLE"),
        (endless, "GRADING_DEADLINE"),
    ):
        outcome = await Rig(limits=limits, grade=grade).play(solve("one"))
        assert (outcome.verdict, outcome.reward, outcome.reason) == (Verdict.UNSCORABLE, None, reason)
        assert outcome.steps[0].cost_usd_micros == 7


async def test_an_empty_answer_is_wrong_not_unscorable() -> None:
    outcome = await Rig({"one": Reply("")}).play(solve("one"))
    assert (outcome.verdict, outcome.reward) == (Verdict.SCORED, 0.5)


async def test_an_environment_that_raises_or_hangs_does_not_end_the_batch() -> None:
    class Moody:
        async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
            if completion == "raise":
                raise KeyError(completion)
            if completion == "refuse":
                raise PodiumError(Code.INTERNAL, "no", reason="NO_SUCH_TASK")
            if completion == "hang":
                await asyncio.Event().wait()
            return Outcome(Verdict.SCORED, 1.0, is_right=True)

    words = {0: "raise", 1: "refuse", 2: "hang"}
    batch = attempted(15, lambda number: words.get(number, "fine"))
    outcomes = await score_batch(Moody(), batch, timeout_s=0.1)
    assert [one.reason for one in outcomes[:3]] == ["ENVIRONMENT_RAISED", "NO_SUCH_TASK", "BATCH_DEADLINE"]
    assert all(one.reward == 1.0 for one in outcomes[3:])
    with pytest.raises(BatchRefusedError, match="ENVIRONMENT_RAISED"):
        await score_batch(Moody(), batch[:4], timeout_s=0.1)
    assert await score_batch(Moody(), [], timeout_s=0.1) == []


# --- bounds -------------------------------------------------------------------------------------


async def test_the_money_guard_stops_before_the_cap_and_settles_what_calls_cost() -> None:
    # A call may cost its longest answer: 100 tokens at 2 dollars a million, and its question.
    rig = Rig(limits=replace(LIMITS, max_cost_usd_micros=450))
    assert (await rig.play(solve("one"), task=the_task(1))).reward == 1.0
    assert rig.guarded.money.spent_usd_micros == 7
    for number in range(2, 40):
        await rig.play(solve("one"), task=the_task(number))
    spent = rig.guarded.money.spent_usd_micros
    refused = await rig.play(solve("one"), task=the_task(99))
    assert (refused.verdict, refused.reason) == (Verdict.UNSCORABLE, "MONEY_GUARD")
    assert 200 < spent <= 450
    assert rig.guarded.money.spent_usd_micros == spent
    assert (await rig.play(solve("one"), task=the_task(1))).reward == 1.0  # known answers are free


async def test_what_nobody_can_tell_is_counted_at_its_worst_case_and_what_is_told_as_told() -> None:
    gone = Rig(
        {"one": Reply(error=PodiumError(Code.PROVIDER_FAILED, "cut", metadata={"retryable": "false"}))}
    )
    await gone.play(solve("one"))
    assert gone.guarded.money.spent_usd_micros >= 200
    facts = failure_facts(Usage(3, 4), 11) | {"retryable": "false"}
    told = Rig({"one": Reply(error=PodiumError(Code.PROVIDER_FAILED, "cut", metadata=facts))})
    await told.play(solve("one"))
    assert told.guarded.money.spent_usd_micros == 11


async def test_a_worker_without_a_price_is_not_called() -> None:
    pool = (worker("one", price=None),)
    rig = Rig(pool=pool)
    outcome = await rig.play(solve("one"), task=the_task(pool=pool))
    assert (outcome.verdict, outcome.reason) == (Verdict.UNSCORABLE, "PRICE_UNKNOWN")
    assert rig.real.calls == []


async def test_no_worker_is_asked_more_at_once_than_it_has_places() -> None:
    gate = asyncio.Event()
    pool = (replace(worker("one"), max_concurrency=2), worker("two"))
    rig = Rig({"one": Reply("yes", gate=gate)}, replace(LIMITS, calls_at_once=3), pool=pool)
    plays = [asyncio.create_task(rig.play(solve("one"), task=the_task(n, pool))) for n in range(6)]
    await asyncio.sleep(0.02)
    assert len(rig.real.calls_of("one")) == 2
    gate.set()
    assert all(one.reward == 1.0 for one in await asyncio.gather(*plays))


async def test_calls_are_paced() -> None:
    rig = Rig(limits=replace(LIMITS, calls_per_minute=60.0, burst=2))
    for number in range(5):
        await rig.play(solve("one"), task=the_task(number))
    assert sum(rig.slept) == pytest.approx(3.0, abs=0.01)
    clock = FakeClock()
    bucket = TokenBucket(60.0, 2, clock, rig.sleep)
    clock.advance(3_600)
    before = len(rig.slept)
    await bucket.take()
    await bucket.take()
    assert len(rig.slept) == before  # an idle hour fills no more than the bucket


async def test_a_cancelled_rollout_closes_its_calls_but_not_those_that_others_wait_for() -> None:
    gate = asyncio.Event()
    rig = Rig({"one": Reply("yes", gate=gate)})
    shared = [asyncio.create_task(rig.play(solve("one"))) for _ in range(2)]
    alone = asyncio.create_task(rig.play(solve("one"), task=the_task(2)))
    await asyncio.sleep(0.02)
    shared[0].cancel()
    alone.cancel()
    await asyncio.gather(shared[0], alone, return_exceptions=True)
    assert [end for end, _ in rig.real.log] == ["begun", "begun", "cancelled"]
    gate.set()
    assert (await shared[1]).reward == 1.0
    assert (await rig.play(solve("one"), task=the_task(2))).reward == 1.0
    await rig.guarded.close()


async def test_a_rollout_that_takes_too_long_is_masked_and_its_calls_closed() -> None:
    rig = Rig({"one": Reply(gate=asyncio.Event())}, replace(LIMITS, rollout_timeout_s=0.05))
    outcome = await rig.play(solve("one"))
    assert outcome.verdict is Verdict.UNSCORABLE
    assert outcome.reason in {"ROLLOUT_DEADLINE", "STEP_DEADLINE", "RUN_DEADLINE"}
    assert [end for end, _ in rig.real.log] == ["begun", "cancelled"]


def test_limits_that_make_no_sense_are_refused() -> None:
    for change in ({"calls_at_once": 0}, {"call_timeout_s": 0.0}, {"max_cost_usd_micros": -1}):
        with pytest.raises(PodiumError):
            LiveLimits(**{"max_cost_usd_micros": 1, **change})  # type: ignore[arg-type]


def test_the_guard_knows_when_nothing_is_left() -> None:
    guard = MoneyGuard(10)
    guard.reserve(10)
    with pytest.raises(PodiumError, match="raise the cap"):
        guard.reserve(1)
    guard.settle(10, 10)
    assert guard.is_exhausted
    assert Price(1, 1).cost_usd_micros(1, 1) == 1
