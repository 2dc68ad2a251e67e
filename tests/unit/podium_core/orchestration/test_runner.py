"""What a run does, seen from its events, its calls and its record."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

import pytest

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.policy import Reach, WorkerFilter
from podium_core.domain.pool import Health, Pool
from podium_core.domain.run import Caps, Message, Question, RunKind, RunOutcome
from podium_core.domain.usage import Usage, UsageSource, failure_facts
from podium_core.orchestration.events import (
    AnswerDelta,
    Planned,
    RunEvent,
    RunFinished,
    StepEnded,
    StepStarted,
)
from podium_core.orchestration.limits import RunnerLimits
from podium_core.orchestration.ports import StepCall
from podium_core.orchestration.request import RunRequest
from podium_core.orchestration.runner import Runner
from tests.fakes.ids import CountingIds
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, question, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

LIMITS = RunnerLimits(
    retry_base_s=0.001, retry_max_s=0.05, step_timeout_s=5, plan_timeout_s=5, seal_timeout_s=1
)
ABC = pool(
    worker("a", skills={"x": 900_000}), worker("b", skills={"x": 800_000}), worker("c", skills={"y": 1})
)
DOWN = PodiumError(Code.PROVIDER_FAILED, "the provider failed")


def request(**changes: object) -> RunRequest:
    base = RunRequest("run_1", RunKind.CHAT, "t", "k", "podium", "podium", question(), Caps())
    return replace(base, **changes)  # type: ignore[arg-type]


class Bench:
    """A runner over fakes."""

    def __init__(self, planner: FakePlanner, workers: FakeWorkers, limits: RunnerLimits = LIMITS) -> None:
        self.planner, self.workers, self.recorder = planner, workers, FakeRecorder()
        self.runner = Runner(planner, workers, self.recorder, SystemClock(), CountingIds(), limits)

    async def events(self, asked: RunRequest, of: Pool = ABC) -> list[RunEvent]:
        return [event async for event in self.runner.run(asked, of)]

    async def finish(self, asked: RunRequest, of: Pool = ABC) -> RunFinished:
        last = (await self.events(asked, of))[-1]
        assert isinstance(last, RunFinished)
        return last


def text_of(call: StepCall) -> str:
    return "".join(piece.text for piece in call.prompt.pieces) or call.prompt.question.text


async def test_a_chain_passes_each_answer_on_and_seals_what_it_answered() -> None:
    plan = plan_of(("a", "first", ()), ("b", "second", (0,)))
    bench = Bench(FakePlanner(plan), FakeWorkers({"a": Reply("from a"), "b": Reply("from b")}))
    events = await bench.events(request())
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    assert isinstance(events[0], Planned)
    assert finished.answer is not None
    assert finished.answer.text == "from b"
    assert finished.outcome is RunOutcome.ANSWERED
    assert "from a" in text_of(bench.workers.calls[1])
    assert question().last.text in text_of(bench.workers.calls[1])
    assert bench.recorder.only.sealed is not None
    assert bench.recorder.only.sealed.answer == "from b"
    assert finished.receipt is not None
    assert finished.usage == Usage(10, 5)
    assert finished.other_usage == Usage(10, 5)
    assert finished.cost_usd_micros == 14


async def test_independent_steps_run_at_once_and_each_waits_only_for_what_it_sees() -> None:
    gate = asyncio.Event()
    plan = plan_of(("a", "slow", ()), ("b", "free", ()), ("c", "needs only b", (1,)), ("a", "all", (0, 2)))
    workers = FakeWorkers({"a": [Reply("A", gate=gate), Reply("end")], "b": Reply("B"), "c": Reply("C")})
    bench = Bench(FakePlanner(plan), workers)
    seen: list[str] = []
    async for event in bench.runner.run(request(), ABC):
        if isinstance(event, StepStarted):
            seen.append(f"start {event.step_index}")
        if isinstance(event, StepEnded):
            seen.append(f"end {event.result.step_index}")
            if event.result.step_index == 2:
                gate.set()
    assert seen.index("end 2") < seen.index("end 0") < seen.index("start 3")
    assert "A" not in [piece.text for piece in workers.calls_of("c")[0].prompt.pieces]
    assert "B" in text_of(workers.calls_of("c")[0])


async def test_only_the_answering_step_is_streamed() -> None:
    plan = plan_of(("a", "inner", ()), ("b", "last", (0,)))
    bench = Bench(FakePlanner(plan), FakeWorkers({"b": Reply("one two three")}))
    events = await bench.events(request(stream=True))
    assert "".join(e.delta.text for e in events if isinstance(e, AnswerDelta)) == "one two three"
    assert [call.stream for call in bench.workers.calls] == [False, True]


async def test_answer_parameters_reach_only_the_last_step_and_sampling_reaches_all() -> None:
    plan = plan_of(("a", "inner", ()), ("b", "last", (0,)))
    bench = Bench(FakePlanner(plan), FakeWorkers())
    await bench.finish(request(parameters={"temperature": 0.5, "stop": ["x"]}, max_output_tokens=9))
    inner, last = bench.workers.calls
    assert dict(inner.parameters) == {"temperature": 0.5}
    assert dict(last.parameters) == {"temperature": 0.5, "stop": ["x"]}
    assert last.max_output_tokens == 9


async def test_a_failing_worker_is_retried_then_replaced_by_the_recorded_fallback() -> None:
    bench = Bench(
        FakePlanner(plan_of(("a", "", ()))), FakeWorkers({"a": Reply(error=DOWN), "b": Reply("rescued")})
    )
    finished = await bench.finish(request())
    assert [call.worker_id for call in bench.workers.calls] == ["a", "a", "b"]
    assert len({call.attempt_id for call in bench.workers.calls}) == 3
    assert finished.answer is not None
    assert finished.answer.text == "rescued"
    recorded = bench.recorder.only.opened.plan
    assert recorded is not None
    assert recorded.plan.steps[0].fallback_worker_id == "b"


async def test_a_refusal_by_the_provider_is_not_repeated_on_the_same_worker() -> None:
    refused = PodiumError(Code.PROVIDER_FAILED, "refused", metadata={"retryable": "false"})
    bench = Bench(FakePlanner(plan_of(("a", "", ()))), FakeWorkers({"a": Reply(error=refused)}))
    await bench.finish(request())
    assert [call.worker_id for call in bench.workers.calls] == ["a", "b"]


async def test_nothing_is_retried_once_a_byte_is_out() -> None:
    workers = FakeWorkers({"a": Reply("one two", error=DOWN, pieces_before_error=1)})
    bench = Bench(FakePlanner(plan_of(("a", "", ()))), workers)
    finished = await bench.finish(request(stream=True))
    assert len(workers.calls) == 1
    assert finished.outcome is RunOutcome.FAILED
    assert finished.error is DOWN
    assert bench.recorder.only.sealed is not None
    assert bench.recorder.only.sealed.outcome is RunOutcome.FAILED


async def test_a_failed_inner_step_is_data_for_the_next_one() -> None:
    plan = plan_of(("c", "inner", ()), ("a", "last", (0,)))
    bench = Bench(FakePlanner(plan), FakeWorkers({"c": Reply(error=DOWN), "a": Reply("anyway")}))
    finished = await bench.finish(request())
    assert finished.outcome is RunOutcome.ANSWERED
    assert [step.ok for step in finished.steps] == [False, True]
    assert "(no response)" in text_of(bench.workers.calls_of("a")[0])


async def test_an_empty_last_response_walks_back_to_the_last_that_is_not() -> None:
    plan = plan_of(("a", "inner", ()), ("b", "last", (0,)))
    for stream in (False, True):
        bench = Bench(FakePlanner(plan), FakeWorkers({"a": Reply("inner text"), "b": Reply("")}))
        events = await bench.events(request(stream=stream))
        finished = events[-1]
        assert isinstance(finished, RunFinished)
        assert finished.answer is not None
        assert finished.answer.text == "inner text"
        streamed = "".join(e.delta.text for e in events if isinstance(e, AnswerDelta))
        assert streamed == ("inner text" if stream else "")


async def test_audit_down_dooms_the_run_without_trying_later_steps() -> None:
    lost = PodiumError(Code.AUDIT_UNAVAILABLE, "no permit")
    plan = plan_of(("a", "inner", ()), ("b", "last", (0,)))
    bench = Bench(FakePlanner(plan), FakeWorkers({"a": Reply(error=lost, permitted=False)}))
    finished = await bench.finish(request())
    assert finished.error is lost
    assert len(bench.workers.calls) == 1


async def test_nothing_is_dispatched_when_the_run_cannot_be_recorded() -> None:
    bench = Bench(FakePlanner(), FakeWorkers())
    bench.recorder.open_errors.append(PodiumError(Code.AUDIT_UNAVAILABLE, "down"))
    with pytest.raises(PodiumError) as caught:
        await bench.events(request())
    assert caught.value.code is Code.AUDIT_UNAVAILABLE
    assert bench.workers.calls == []


@pytest.mark.parametrize(
    "trouble",
    [
        PodiumError(Code.PLAN_INVALID, "no", reason="PLAN_NO_TRIPLE"),
        PodiumError(Code.UNAVAILABLE, "gone"),
        plan_of(("elsewhere", "", ())),
        plan_of(*[("a", "s", ())] * 6),
    ],
)
async def test_without_a_valid_plan_the_best_worker_answers_alone_and_the_record_says_so(
    trouble: object,
) -> None:
    bench = Bench(FakePlanner(trouble), FakeWorkers())  # type: ignore[arg-type]
    finished = await bench.finish(request())
    assert finished.outcome is RunOutcome.ANSWERED
    recorded = bench.recorder.only.opened.plan
    assert recorded is not None
    assert recorded.plan.source is PlanSource.FALLBACK
    assert recorded.fallback_reason
    assert recorded.plan.steps[0].worker_id == "a"


async def test_a_named_worker_is_asked_alone_and_never_replaced() -> None:
    bench = Bench(FakePlanner(), FakeWorkers({"b": Reply(error=DOWN)}))
    finished = await bench.finish(request(named_worker_id="b"))
    assert bench.planner.queries == []
    assert {call.worker_id for call in bench.workers.calls} == {"b"}
    assert len(bench.workers.calls) == 3
    assert finished.outcome is RunOutcome.FAILED
    assert bench.workers.calls[0].prompt.pieces == ()


async def test_an_empty_eligible_pool_is_refused_on_record_with_every_rule() -> None:
    bench = Bench(FakePlanner(), FakeWorkers())
    asked = request(
        client_filter=WorkerFilter(frozenset({"c"})),
        reach=(Reach("tenant", WorkerFilter(excluded=frozenset({"c"}))),),
    )
    with pytest.raises(PodiumError) as caught:
        await bench.events(asked)
    assert caught.value.code is Code.POLICY_DENIED
    assert caught.value.metadata["run_id"] == "run_1"
    assert "a: client.only, b: client.only, 1 out of reach: tenant.workers.except" in caught.value.message
    assert bench.recorder.only.opened.refusal_reason == "NO_ELIGIBLE_WORKER"
    assert [v.rule_id for v in bench.recorder.only.opened.verdicts] == [
        "client.only",
        "client.only",
        "tenant.workers.except",
    ]


async def test_closing_the_events_early_cancels_the_call_and_seals_cancelled() -> None:
    bench = Bench(FakePlanner(plan_of(("a", "", ()))), FakeWorkers({"a": Reply(gate=asyncio.Event())}))
    async with aclosing(bench.runner.run(request(), ABC)) as events:
        async for event in events:
            if isinstance(event, StepStarted):
                await asyncio.sleep(0)
                break
    assert bench.recorder.only.sealed is not None
    assert bench.recorder.only.sealed.outcome is RunOutcome.CANCELLED
    assert [entry[0] for entry in bench.workers.log] in ([], ["begun", "cancelled"])


async def test_a_cancelled_task_seals_even_when_it_is_cancelled_twice() -> None:
    bench = Bench(FakePlanner(plan_of(("a", "", ()))), FakeWorkers({"a": Reply(gate=asyncio.Event())}))
    bench.recorder.seal_gate = asyncio.Event()
    task = asyncio.create_task(bench.finish(request()))
    while not bench.workers.calls:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0.01)
    task.cancel()
    bench.recorder.seal_gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(10):
        await asyncio.sleep(0)
    assert bench.recorder.only.sealed is not None
    assert bench.recorder.only.sealed.outcome is RunOutcome.CANCELLED
    assert bench.workers.log[-1][0] == "cancelled"


async def test_leaving_while_the_run_is_being_opened_still_closes_it() -> None:
    bench = Bench(FakePlanner(), FakeWorkers())
    bench.recorder.open_gate = asyncio.Event()
    task = asyncio.create_task(bench.finish(request()))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0.01)
    bench.recorder.open_gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.recorder.only.sealed is not None
    assert bench.workers.calls == []


async def test_a_seal_that_fails_is_an_error_without_a_receipt() -> None:
    bench = Bench(FakePlanner(), FakeWorkers())
    bench.recorder.seal_errors.append(PodiumError(Code.AUDIT_UNAVAILABLE, "down"))
    finished = await bench.finish(request())
    assert finished.receipt is None
    assert finished.error is not None
    assert finished.error.code is Code.AUDIT_UNAVAILABLE


async def test_a_defect_in_a_port_fails_the_run_on_record() -> None:
    def broken(call: StepCall) -> Reply:
        raise ZeroDivisionError(call.attempt_id)

    bench = Bench(FakePlanner(), FakeWorkers({"a": broken}))
    with pytest.raises(ZeroDivisionError):
        await bench.events(request())
    assert bench.recorder.only.sealed is not None
    assert bench.recorder.only.sealed.outcome is RunOutcome.FAILED
    assert bench.recorder.only.sealed.error_reason == "INTERNAL"


# --- caps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caps", "reason", "calls"),
    [
        (Caps(max_calls=1), "CAP_MAX_CALLS", 1),
        (Caps(max_tokens=1), "CAP_MAX_TOKENS", 0),
        (Caps(max_cost_usd_micros=1_000), "CAP_MAX_USD", 1),
    ],
)
async def test_a_cap_stops_the_run_before_the_call_that_would_break_it(
    caps: Caps, reason: str, calls: int
) -> None:
    plan = plan_of(("a", "inner", ()), ("b", "last", (0,)))
    bench = Bench(FakePlanner(plan), FakeWorkers({"a": Reply(cost_usd_micros=500)}))
    finished = await bench.finish(request(caps=caps, question=question("hi")))
    assert finished.error is not None
    assert finished.error.code is Code.BUDGET_EXHAUSTED
    assert finished.error.reason == reason
    assert len(bench.workers.calls) == calls


async def test_retries_count_against_the_call_cap() -> None:
    bench = Bench(
        FakePlanner(plan_of(("a", "", ()))), FakeWorkers({"a": Reply(error=DOWN), "b": Reply(error=DOWN)})
    )
    finished = await bench.finish(request(caps=Caps(max_calls=2)))
    assert len(bench.workers.calls) == 2
    assert finished.error is not None


async def test_a_failed_attempt_costs_the_run_what_the_log_says() -> None:
    free = PodiumError(
        DOWN.code, "unreachable", metadata=failure_facts(Usage(source=UsageSource.ESTIMATED), 0)
    )
    half = PodiumError(
        DOWN.code, "cut off", metadata=failure_facts(Usage(4, 1, source=UsageSource.ESTIMATED), 3)
    )
    bench = Bench(
        FakePlanner(plan_of(("a", "", ()))),
        FakeWorkers({"a": (Reply(error=free), Reply(error=half), Reply(cost_usd_micros=7))}),
    )
    finished = await bench.finish(request(caps=Caps(max_cost_usd_micros=10**9)))
    (step,) = finished.steps
    assert [attempt.cost_usd_micros for attempt in step.attempts] == [0, 3, 7]
    assert finished.cost_usd_micros == 10
    assert (finished.usage + finished.other_usage).source is UsageSource.ESTIMATED


async def test_an_attempt_that_nobody_accounts_for_costs_its_worst_case() -> None:
    bench = Bench(FakePlanner(plan_of(("a", "", ()))), FakeWorkers({"a": Reply(error=DOWN)}))
    finished = await bench.finish(request())
    assert finished.steps[0].attempts[0].cost_usd_micros > 0
    assert finished.other_usage.source is UsageSource.UNKNOWN


async def test_the_output_limit_shrinks_to_what_the_caps_leave() -> None:
    bench = Bench(FakePlanner(plan_of(("a", "", ()))), FakeWorkers())
    bound = len("hi") + 16 + len("{}")
    await bench.finish(request(caps=Caps(max_tokens=bound + 7), question=question("hi")))
    assert bench.workers.calls[0].max_output_tokens == 7


async def test_the_run_deadline_ends_the_run_and_names_the_cap() -> None:
    bench = Bench(FakePlanner(plan_of(("a", "", ()))), FakeWorkers({"a": Reply(gate=asyncio.Event())}))
    finished = await bench.finish(request(caps=Caps(max_duration_s=0.05)))
    assert finished.error is not None
    assert finished.error.reason == "RUN_DEADLINE"
    assert [call.timeout_s <= 0.05 for call in bench.workers.calls] == [True]
    assert bench.workers.log[-1][0] == "cancelled"
    assert finished.other_usage.source is UsageSource.UNKNOWN


async def test_a_slow_worker_is_replaced_at_the_step_deadline() -> None:
    limits = replace(LIMITS, step_timeout_s=0.05)
    bench = Bench(
        FakePlanner(plan_of(("a", "", ()))), FakeWorkers({"a": Reply(gate=asyncio.Event())}), limits
    )
    finished = await bench.finish(request())
    assert [call.worker_id for call in bench.workers.calls] == ["a", "b"]
    assert finished.outcome is RunOutcome.ANSWERED


async def test_a_slow_conductor_is_replaced_by_the_fallback_plan() -> None:
    planner = FakePlanner(gate=asyncio.Event())
    bench = Bench(planner, FakeWorkers(), replace(LIMITS, plan_timeout_s=0.02))
    await bench.finish(request())
    assert planner.cancelled == 1
    recorded = bench.recorder.only.opened.plan
    assert recorded is not None
    assert recorded.fallback_reason == "DEADLINE"


async def test_a_long_retry_after_goes_straight_to_the_fallback() -> None:
    busy = PodiumError(Code.RATE_LIMITED, "busy", retry_after_s=60)
    bench = Bench(FakePlanner(plan_of(("a", "", ()))), FakeWorkers({"a": Reply(error=busy)}))
    await bench.finish(request())
    assert [call.worker_id for call in bench.workers.calls] == ["a", "b"]


# --- rounds ----------------------------------------------------------------------------------------


def again(*steps: tuple[str, str, bool], round_: int) -> Plan:
    made = tuple(Step(w, s, Access((), previous_round=p)) for w, s, p in steps)
    return Plan(made, PlanSource.RULES, round_)


async def test_a_later_round_sees_the_previous_answer_and_replaces_it() -> None:
    planner = FakePlanner(plan_of(("a", "", ())), again(("b", "check it", True), round_=1))
    bench = Bench(planner, FakeWorkers({"a": Reply("draft"), "b": Reply("better")}))
    events = await bench.events(request(caps=Caps(max_rounds=2), stream=True))
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    assert finished.answer is not None
    assert finished.answer.text == "better"
    assert [e.delta.text for e in events if isinstance(e, AnswerDelta)] == ["better"]
    assert planner.queries[1].previous_answer == "draft"
    assert "draft" in text_of(bench.workers.calls_of("b")[0])
    assert len(bench.recorder.only.plans) == 2


async def test_three_empty_lists_accept_the_answer() -> None:
    bench = Bench(FakePlanner(plan_of(("a", "", ())), again(round_=1)), FakeWorkers({"a": Reply("draft")}))
    finished = await bench.finish(request(caps=Caps(max_rounds=5)))
    assert finished.answer is not None
    assert finished.answer.text == "draft"
    assert len(bench.workers.calls) == 1
    assert len(bench.recorder.only.plans) == 2


@pytest.mark.parametrize("spoil", ["plan", "worker"])
async def test_a_failed_later_round_leaves_the_earlier_answer(spoil: str) -> None:
    second: object = again(("b", "check", True), round_=1)
    if spoil == "plan":
        second = PodiumError(Code.PLAN_INVALID, "no")
    workers = FakeWorkers({"a": [Reply("draft"), Reply(error=DOWN)], "b": Reply(error=DOWN)})
    bench = Bench(FakePlanner(plan_of(("a", "", ())), second), workers)  # type: ignore[arg-type]
    finished = await bench.finish(request(caps=Caps(max_rounds=2)))
    assert finished.outcome is RunOutcome.ANSWERED
    assert finished.answer is not None
    assert finished.answer.text == "draft"


KINDS = {
    "health.down": (Code.UNAVAILABLE, "WORKERS_DOWN"),
    "health.paused": (Code.UNAVAILABLE, "WORKERS_DOWN"),
    "health.unconfigured": (Code.UNAVAILABLE, "WORKERS_DOWN"),
    "capability.context": (Code.INVALID_REQUEST, "CONTEXT_LENGTH_EXCEEDED"),
    **dict.fromkeys(
        ["capability.tools", "capability.verbosity", "capability.image", "capability.image_urls"],
        (Code.INVALID_REQUEST, "NO_CAPABLE_WORKER"),
    ),
    "capability.audio": (Code.INVALID_REQUEST, "NO_CAPABLE_WORKER"),
}


def asked_with(kind: str, **part: str) -> Question:
    content = [{"type": "text", "text": "what is this?"}, {"type": kind, kind: part}]
    return Question((Message("user", "what is this?", {"role": "user", "content": content}),))


# --- eligibility -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "asked", "rule"),
    [
        (lambda w: replace(w, health=Health.DOWN), {}, "health.down"),
        (lambda w: replace(w, health=Health.PAUSED), {}, "health.paused"),
        (lambda w: replace(w, health=Health.UNCONFIGURED), {}, "health.unconfigured"),
        (lambda w: replace(w, price=None), {"caps": Caps(max_cost_usd_micros=10**9)}, "price.unknown"),
        (lambda w: w, {"caps": Caps(max_cost_usd_micros=1)}, "budget.unaffordable"),
        (lambda w: w, {"parameters": {"tools": []}}, "capability.tools"),
        (lambda w: w, {"parameters": {"verbosity": "low"}}, "capability.verbosity"),
        (
            lambda w: w,
            {"question": asked_with("image_url", url="data:image/png;base64,AA")},
            "capability.image",
        ),
        (
            lambda w: replace(w, card=replace(w.card, modalities=frozenset({"text", "image"}))),
            {"question": asked_with("image_url", url="https://x/y.png")},
            "capability.image_urls",
        ),
        (lambda w: w, {"question": asked_with("input_audio", data="AA", format="wav")}, "capability.audio"),
        (lambda w: w, {"client_filter": WorkerFilter(excluded=frozenset({"a"}))}, "client.except"),
        (
            lambda w: replace(w, card=replace(w.card, context_tokens=3)),
            {"question": question("x" * 99)},
            "capability.context",
        ),
    ],
)
async def test_every_exclusion_names_its_rule(
    changed: Callable[..., object], asked: dict[str, object], rule: str
) -> None:
    bench = Bench(FakePlanner(), FakeWorkers())
    with pytest.raises(PodiumError) as caught:
        await bench.events(request(**asked), pool(changed(worker("a"))))  # type: ignore[arg-type]
    assert f"a: {rule}" in caught.value.message
    assert ("try again later" in caught.value.message) == (rule in ("health.down", "health.paused"))
    code, reason = KINDS.get(rule, (Code.POLICY_DENIED, "NO_ELIGIBLE_WORKER"))
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert bench.recorder.only.opened.refusal_reason == reason


async def test_an_unknown_worker_is_named_before_anything_is_recorded() -> None:
    bench = Bench(FakePlanner(), FakeWorkers())
    with pytest.raises(PodiumError) as caught:
        await bench.events(request(client_filter=WorkerFilter(frozenset({"nope"}))))
    assert caught.value.param == "podium.workers"
    with pytest.raises(PodiumError) as caught:
        await bench.events(request(named_worker_id="nope"))
    assert caught.value.code is Code.NOT_FOUND
    assert bench.recorder.runs == {}
