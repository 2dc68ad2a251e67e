"""A pool that changed between a plan and its first call: planned once more, on record, and only then given up."""

from dataclasses import replace

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Plan, PlanSource, StaticPlan, Step
from podium_core.domain.pool import Pool
from podium_core.domain.run import Caps, RunKind, RunOutcome
from podium_core.orchestration.events import AnswerDelta, Planned, RunEvent, RunFinished
from podium_core.orchestration.limits import RunnerLimits
from podium_core.orchestration.ports import FreshPoolPort, StepCall
from podium_core.orchestration.request import RunRequest
from podium_core.orchestration.runner import Runner
from tests.fakes.ids import CountingIds
from tests.fakes.planner import FakePlanner
from tests.fakes.pools import pool, question, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

OLD = pool(worker("a"), worker("b"))
NEW = replace(pool(worker("b"), worker("newcomer")), pool_digest="new-digest")
STALE = PodiumError(Code.CONFLICT, "the pool has changed", reason="STALE_POOL")
ASKED = RunRequest("run_1", RunKind.CHAT, "t", "k", "podium", "podium", question(), Caps(), stream=True)


class Fresh(FreshPoolPort):
    """Has one pool to offer, and counts who asks for it."""

    def __init__(self, fresh: Pool | None) -> None:
        self.fresh, self.asked = fresh, 0

    async def newer(self, pool_digest: str, timeout_s: float) -> Pool | None:
        """Return it."""
        self.asked += 1
        return self.fresh


def router_that_knows(*digests: str) -> FakeWorkers:
    """Return workers behind a router that knows those pools only."""

    def reply(call: StepCall) -> Reply:
        known = call.pool_digest in digests
        return Reply("42") if known else Reply(error=STALE, permitted=False)

    return FakeWorkers(dict.fromkeys(("a", "b", "newcomer"), reply))


class House:
    """A runner whose router knows the new pool only."""

    def __init__(self, fresh: Pool | None, workers: FakeWorkers | None = None) -> None:
        self.planner, self.recorder, self.pools = FakePlanner(), FakeRecorder(), Fresh(fresh)
        self.workers = workers or router_that_knows("new-digest")
        limits = RunnerLimits(retry_base_s=0.001, retry_max_s=0.01)
        self.runner = Runner(
            self.planner,
            self.workers,
            self.recorder,
            SystemClock(),
            CountingIds(),
            limits,
            pools=self.pools,
        )

    async def events(self, asked: RunRequest = ASKED) -> list[RunEvent]:
        """Perform a run on the old pool."""
        return [event async for event in self.runner.run(asked, OLD)]


def ending(events: list[RunEvent]) -> RunFinished:
    last = events[-1]
    assert isinstance(last, RunFinished)
    return last


async def test_it_is_planned_anew_among_workers_that_both_pools_allow() -> None:
    house = House(NEW)
    events = await house.events()
    assert ending(events).outcome is RunOutcome.ANSWERED
    assert [delta.delta.text for delta in events if isinstance(delta, AnswerDelta)] == ["42"]
    plans = [
        (event.plan.round, event.plan.steps[0].worker_id) for event in events if isinstance(event, Planned)
    ]
    assert plans == [(0, "a"), (1, "b")]
    recorded = house.recorder.only
    assert [reply.plan.round for reply in recorded.plans] == [0, 1]
    facts = {"reason": "STALE_POOL", "old_pool_digest": "pool-digest", "pool_digest": "new-digest"}
    assert ("replan", facts) in recorded.notes
    assert [query.pool_digest for query in house.planner.queries] == ["pool-digest", "new-digest"]
    assert not house.workers.calls_of("newcomer"), "the run's record says nothing of whether it may work"


async def test_without_a_newer_pool_the_client_is_told_to_come_back() -> None:
    house = House(None)
    end = ending(await house.events())
    assert end.error is not None
    assert (end.outcome, end.error.reason) == (RunOutcome.FAILED, "STALE_POOL")
    assert len(house.recorder.only.plans) == 1


async def test_a_pool_that_changes_all_the_time_is_chased_once() -> None:
    house = House(NEW, router_that_knows("yet-another"))
    end = ending(await house.events())
    assert end.error is not None
    assert end.error.reason == "STALE_POOL"
    assert house.pools.asked == 1


async def test_a_worker_that_is_gone_is_never_replaced_where_it_was_named() -> None:
    asked = replace(ASKED, named_worker_id="a", requested_model="worker/a")
    end = ending(await House(NEW).events(asked))
    assert end.error is not None
    assert end.outcome is RunOutcome.FAILED
    assert end.error.code is Code.NOT_FOUND


async def test_a_plan_of_the_operators_stays_as_it_is_or_is_refused() -> None:
    plan = Plan((Step("b", ""),), PlanSource.STATIC)
    asked = replace(ASKED, static_plan=StaticPlan("mine", plan, "digest"), requested_model="plan/mine")
    house = House(NEW)
    assert ending(await house.events(asked)).outcome is RunOutcome.ANSWERED
    assert [reply.plan.steps for reply in house.recorder.only.plans] == [plan.steps, plan.steps]
    gone = replace(asked, static_plan=StaticPlan("mine", replace(plan, steps=(Step("a", ""),)), "digest"))
    assert ending(await House(NEW).events(gone)).outcome is RunOutcome.FAILED
