"""`podium-fast`: one step by the engine's probabilities, or by card where it has none."""

from dataclasses import replace

import pytest

from podium_conductor.fast import NO_PROBABILITIES, fast_plan
from podium_conductor.ports import EngineDescription
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery, PlanReply, WorkerChance
from tests.fakes.engine import FakeEngine
from tests.fakes.pools import question, worker

WORKERS = (worker("low", skills={"x": 100_000}), worker("high", skills={"x": 900_000}), worker("none"))
QUERY = PlanQuery("run_1", question(), WORKERS, Caps(), "podium-fast", 11, 5.0)


class ChoosingEngine(FakeEngine):
    """Has probabilities, and writes more than it is asked for."""

    def __init__(self, chances: tuple[WorkerChance, ...]) -> None:
        super().__init__()
        self._chances = chances

    async def plan(self, query: PlanQuery, deadline_ns: int) -> PlanReply:
        reply = await super().plan(query, deadline_ns)
        wordy = Plan((Step("none", "Think hard."), Step("low", "", Access((0,)))), PlanSource.MODEL)
        return replace(reply, plan=wordy, chances=(self._chances,) if self._chances else ())

    def describe(self) -> EngineDescription:
        return replace(super().describe(), has_probabilities=True)


async def test_the_likeliest_worker_gets_the_question_as_it_is() -> None:
    engine = ChoosingEngine(
        (WorkerChance("low", 1, 300_000), WorkerChance("none", 1, 350_000), WorkerChance("high", 1, 350_000))
    )
    reply = await fast_plan(engine, QUERY, 10**12)
    assert reply.plan == Plan((Step("high", ""),), PlanSource.FAST)
    assert len(reply.chances[0]) == 3
    assert reply.fallback_reason == ""
    assert (engine.queries[0].tier, engine.queries[0].caps.max_steps) == ("podium-fast", 1)


async def test_an_engine_without_probabilities_is_not_asked() -> None:
    engine = FakeEngine()
    reply = await fast_plan(engine, QUERY, 10**12)
    assert reply.plan == Plan((Step("high", ""),), PlanSource.FAST)
    assert reply.fallback_reason == NO_PROBABILITIES
    assert reply.model_digest == "f" * 64
    assert engine.queries == []


async def test_promised_probabilities_that_do_not_come_are_no_plan() -> None:
    with pytest.raises(PodiumError) as failed:
        await fast_plan(ChoosingEngine(()), QUERY, 10**12)
    assert (failed.value.code, failed.value.reason) == (Code.PLAN_INVALID, NO_PROBABILITIES)
