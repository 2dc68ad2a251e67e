"""Planning that makes attempts, rounds that revise or accept, and steps that write for other steps."""

from dataclasses import replace

import pytest

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.gate import GateRow, GateTable
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.run import AttemptKind, AttemptOutcome, Caps, RunKind, RunOutcome
from podium_core.domain.usage import Usage
from podium_core.orchestration.events import Planned, RunFinished
from podium_core.orchestration.ports import AttemptResult, PlanFailedError, PlanQuery, PlanReply, StepCall
from podium_core.orchestration.request import RunRequest
from podium_core.orchestration.runner import Runner
from tests.fakes.ids import CountingIds
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, question, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

ABC = pool(worker("a", skills={"x": 900_000}), worker("b", skills={"x": 800_000}), worker("c"))


def attempt(cost_usd_micros: int = 9) -> AttemptResult:
    return AttemptResult(
        "att_plan", AttemptKind.PLAN, "a", AttemptOutcome.COMPLETED, Usage(100, 20), cost_usd_micros, 5
    )


def paid(plan: Plan) -> PlanReply:
    return PlanReply(plan, usage=Usage(100, 20), attempts=(attempt(),))


def request(**changes: object) -> RunRequest:
    base = RunRequest("run_1", RunKind.CHAT, "t", "k", "podium", "podium", question(), Caps())
    return replace(base, **changes)  # type: ignore[arg-type]


class Bench:
    """A runner over fakes that keeps its last event."""

    def __init__(self, planner: FakePlanner, workers: FakeWorkers | None = None) -> None:
        self.planner, self.workers, self.recorder = planner, workers or FakeWorkers(), FakeRecorder()
        self.runner = Runner(planner, self.workers, self.recorder, SystemClock(), CountingIds())
        self.plans: list[PlanReply] = []

    async def finish(self, asked: RunRequest | None = None) -> RunFinished:
        events = [event async for event in self.runner.run(asked or request(), ABC)]
        self.plans = [event.reply for event in events if isinstance(event, Planned)]
        last = events[-1]
        assert isinstance(last, RunFinished)
        return last


@pytest.mark.parametrize("hinted", [True, False])
async def test_a_planner_that_makes_attempts_gets_an_open_run(hinted: bool) -> None:
    bench = Bench(FakePlanner(paid(plan_of(("b", "", ()))), opens_first=hinted, needs_open_run=True))
    finished = await bench.finish()
    assert finished.outcome is RunOutcome.ANSWERED
    [query] = bench.planner.queries
    assert query.run_is_open
    assert (query.tenant_id, query.pool_digest) == ("t", "pool-digest")
    recorded = bench.recorder.only
    assert recorded.opened.plan is None
    assert [reply.plan.steps[0].worker_id for reply in recorded.plans] == ["b"]


async def test_what_planning_cost_is_orchestration() -> None:
    bench = Bench(FakePlanner(paid(plan_of(("b", "", ()))), opens_first=True))
    finished = await bench.finish()
    assert finished.usage == Usage(10, 5)
    assert finished.other_usage == Usage(100, 20)
    assert finished.cost_usd_micros == 7 + 9
    assert [a.attempt_id for a in finished.planning] == ["att_plan"]


async def test_attempts_made_in_vain_count_and_the_fallback_plan_is_recorded() -> None:
    failed = PlanFailedError(
        Code.PLAN_INVALID, "no", reason="PLAN_NO_TRIPLE", attempts=(attempt(), attempt())
    )
    bench = Bench(FakePlanner(failed, opens_first=True))
    finished = await bench.finish(request(caps=Caps(max_calls=3)))
    assert finished.outcome is RunOutcome.ANSWERED
    [recorded] = bench.recorder.only.plans
    assert (recorded.plan.source, recorded.fallback_reason) == (PlanSource.FALLBACK, "PLAN_NO_TRIPLE")
    assert finished.cost_usd_micros == 2 * 9 + 7


async def test_planning_uses_up_the_runs_calls() -> None:
    bench = Bench(FakePlanner(paid(plan_of(("b", "", ()))), opens_first=True))
    finished = await bench.finish(request(caps=Caps(max_calls=1)))
    assert finished.outcome is RunOutcome.FAILED
    assert finished.error is not None
    assert finished.error.reason == "CAP_MAX_CALLS"
    assert bench.workers.calls == []


async def test_an_open_run_whose_planning_breaks_is_sealed() -> None:
    broken = PodiumError(Code.AUDIT_UNAVAILABLE, "the log is away")
    bench = Bench(FakePlanner(broken, opens_first=True))
    finished = await bench.finish()
    assert finished.outcome is RunOutcome.FAILED
    sealed = bench.recorder.only.sealed
    assert sealed is not None
    assert sealed.error_reason == "AUDIT_UNAVAILABLE"


def later(*steps: Step, round_: int) -> Plan:
    return Plan(steps, PlanSource.MODEL, round_)


async def test_rounds_tell_what_they_did_to_the_answer() -> None:
    sees = Access((), previous_round=True)
    planner = FakePlanner(
        plan_of(("a", "", ())),
        later(Step("b", "check", sees), round_=1),
        later(Step("c", "check again", sees), round_=2),
        later(round_=3),
    )
    workers = FakeWorkers({"a": Reply("41"), "b": Reply("42"), "c": Reply(" 42 ")})
    bench = Bench(planner, workers)
    finished = await bench.finish(request(tier="podium-max", caps=Caps(max_rounds=8)))
    assert [result.effect for result in finished.rounds] == ["kept", "changed", "kept", "accepted"]
    assert finished.flip_count == 1
    assert bench.recorder.only.notes == [
        (
            "rounds",
            {
                "round_count": "4",
                "flip_count": "1",
                "accepted": "yes",
                "round.1": "changed",
                "round.2": "kept",
                "round.3": "accepted",
            },
        )
    ]
    assert [query.previous_answer for query in planner.queries] == ["", "41", "42", " 42 "]
    assert planner.queries[2].previous_plan == bench.recorder.only.plans[1].plan


async def test_one_round_needs_no_note() -> None:
    bench = Bench(FakePlanner())
    finished = await bench.finish()
    assert len(finished.rounds) == 1
    assert bench.recorder.only.notes == []


async def test_a_later_round_is_asked_within_what_is_left() -> None:
    planner = FakePlanner(plan_of(("a", "", ())), later(round_=1))
    caps = Caps(max_rounds=3, max_calls=4, max_tokens=10_000, max_cost_usd_micros=10_000)
    await Bench(planner).finish(request(caps=caps))
    first, second = planner.queries
    assert first.caps == caps
    assert (second.caps.max_calls, second.caps.max_tokens, second.caps.max_cost_usd_micros) == (
        3,
        10_000 - 15,
        10_000 - 7,
    )


async def test_without_a_call_left_there_is_no_later_round() -> None:
    planner = FakePlanner(plan_of(("a", "", ())), later(round_=1))
    finished = await Bench(planner).finish(request(caps=Caps(max_rounds=3, max_calls=1)))
    assert finished.outcome is RunOutcome.ANSWERED
    assert len(planner.queries) == 1


WRITTEN = "To model b: factor the number. To model c: verify the factors."


async def test_abdication_a_step_writes_subtasks_and_the_recorded_plan_stays() -> None:
    """A worker is asked to write what the next steps should do.

    What it writes reaches them as text through their access lists. It changes neither the plan that is
    recorded nor who does which step.
    """

    def obedient(call: StepCall) -> Reply:
        told = "".join(piece.text for piece in call.prompt.pieces)
        assert WRITTEN in told
        return Reply(f"{call.worker_id} did as the planner wrote")

    plan = plan_of(
        ("a", "Write one subtask each for the two models after you.", ()),
        ("b", "Do what the step before wrote for you.", (0,)),
        ("c", "Do what the first step wrote for you; answer the user.", (0, 1)),
    )
    workers = FakeWorkers({"a": Reply(WRITTEN + "\nmodel_id = [0]\nsubtasks = ['x']\naccess_list = [[]]")})
    workers.scripts = {**workers.scripts, "b": obedient, "c": obedient}
    bench = Bench(FakePlanner(plan), workers)
    finished = await bench.finish()
    assert finished.answer is not None
    assert finished.answer.text == "c did as the planner wrote"
    [recorded] = bench.recorder.only.plans
    assert [(s.worker_id, s.subtask, s.access) for s in recorded.plan.steps] == [
        (s.worker_id, s.subtask, s.access) for s in plan.steps
    ]
    assert [call.worker_id for call in workers.calls] == ["a", "b", "c"]
    assert len(bench.planner.queries) == 1


async def test_a_query_asks_for_no_prompt_by_default() -> None:
    planner = FakePlanner()
    await Bench(planner).finish()
    [query] = planner.queries
    assert isinstance(query, PlanQuery)
    assert not query.explain


# --- the gate ----------------------------------------------------------------------------------------


TWO_STEPS = plan_of(("b", "first", ()), ("c", "second", (0,)))


def gate(difference_low_ppm: int) -> GateTable:
    return GateTable((GateRow("podium", 2, difference_low_ppm, 400, "2026-11-30"),), "digest")


@pytest.mark.parametrize(
    ("table", "kept"), [(gate(1), True), (gate(0), False), (gate(-5), False), (GateTable(), False)]
)
@pytest.mark.parametrize("opens_first", [True, False])
async def test_the_gate_lets_only_plans_through_that_are_expected_to_win(
    table: GateTable,
    kept: bool,
    opens_first: bool,
) -> None:
    bench = Bench(FakePlanner(TWO_STEPS, opens_first=opens_first))
    finished = await bench.finish(request(gate=table))
    assert finished.outcome is RunOutcome.ANSWERED
    [reply] = bench.plans
    assert [call.worker_id for call in bench.workers.calls] == (["b", "c"] if kept else ["a"])
    assert reply.fallback_reason == ("" if kept else "GATE_ONE_WORKER")
    assert reply.plan.source is (PlanSource.RULES if kept else PlanSource.FALLBACK)
    assert reply.raw_text == "scripted"
    assert bench.recorder.only.plans == [reply]
    [(kind, facts)] = bench.recorder.only.notes
    assert kind == "gate"
    assert facts["decision"] == ("plan" if kept else "one_worker")
    assert facts["step_count"] == "2"
    assert facts.get("difference_low_ppm") == (str(table.rows[0].difference_low_ppm) if table.rows else None)


async def test_one_step_needs_no_gate_and_no_gate_decides_nothing() -> None:
    one = Bench(FakePlanner())
    await one.finish(request(gate=GateTable()))
    assert one.recorder.only.notes == []
    off = Bench(FakePlanner(TWO_STEPS))
    await off.finish()
    assert off.recorder.only.notes == []
    assert len(off.workers.calls) == 2


async def test_a_later_round_without_a_plan_says_why() -> None:
    planner = FakePlanner(plan_of(("a", "", ())), PodiumError(Code.DEADLINE, "late", reason="PLAN_DEADLINE"))
    bench = Bench(planner)
    finished = await bench.finish(request(caps=Caps(max_rounds=3)))
    assert finished.outcome is RunOutcome.ANSWERED
    assert finished.rounds[1].effect == "unplanned"
    [(_, facts)] = bench.recorder.only.notes
    assert facts["round.1"] == "unplanned PLAN_DEADLINE"


async def test_the_clients_seed_decides_the_seed_of_every_round() -> None:
    async def seeds(**parameters: object) -> list[int]:
        sees = Access((), previous_round=True)
        planner = FakePlanner(
            plan_of(("a", "", ())), later(Step("b", "check", sees), round_=1), later(round_=2)
        )
        await Bench(planner).finish(
            request(tier="podium-max", caps=Caps(max_rounds=3), parameters=parameters)
        )
        return [query.seed for query in planner.queries]

    assert await seeds(seed=7) == await seeds(seed=7)
    assert len(set(await seeds(seed=7)) | set(await seeds(seed=-7))) == 6
    assert all(0 <= seed < 2**63 for seed in await seeds(seed=-(2**63)))
    assert set(await seeds()).isdisjoint(await seeds(seed=7))
