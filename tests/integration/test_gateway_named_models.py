"""`plan/<name>` and `podium@<date>` at the gateway: what they name is what answers, or nobody does."""

import json
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from podium_core.config.pins import Pin, Pins
from podium_core.config.plans import StaticPlans
from podium_core.config.tenants import Tenant
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, PlanSource, StaticPlan, Step
from podium_core.domain.policy import Reach, WorkerFilter
from podium_core.domain.pool import Health
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery, PlanReply
from podium_gateway.named_models import NamedModels
from tests.fakes.gateway import EdgeServer, running_edge
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

STEPS = (Step("alpha", "Compute."), Step("beta", "Say it.", Access((0,)), "gamma"))
REVIEW = StaticPlan("review", Plan(STEPS, PlanSource.STATIC), "d" * 64, "Compute, then say")
POOL = pool(worker("alpha"), worker("beta"))
PIN = Pin("2026-11-30", "pool-digest", "model-1")
OLD = Pin("2026-10-01", "another-pool", "model-1")


def _named(*plans: StaticPlan) -> NamedModels:
    by_name = StaticPlans({plan.name: plan for plan in plans})
    pins = Pins({pin.day: pin for pin in (PIN, OLD)})
    return NamedModels(lambda: by_name, lambda: pins)


class _Conductor(FakePlanner):
    """Plans with a model of the given digest."""

    def __init__(self, digest: str, error: PodiumError | None = None) -> None:
        super().__init__(plan_of(("alpha", "", ())))
        self.digest, self.refusal = digest, error

    async def plan(self, query: PlanQuery) -> PlanReply:
        if self.refusal is not None:
            raise self.refusal
        return replace(await super().plan(query), model_digest=self.digest)


async def _post(edge: EdgeServer, model: str, **podium: Any) -> tuple[int, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": "6 times 7?"}], "podium": podium}
    async with (
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.post(f"{edge.url}/v1/chat/completions", data=json.dumps(body)) as response,
    ):
        return response.status, await response.json()


async def _models(edge: EdgeServer) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.get(f"{edge.url}/v1/models") as response,
    ):
        return {model["id"]: model for model in (await response.json())["data"]}


async def test_a_static_plan_is_performed_as_written_without_the_conductor() -> None:
    planner, recorder, workers = FakePlanner(), FakeRecorder(), FakeWorkers()
    async with running_edge(
        planner=planner, recorder=recorder, workers=workers, named=_named(REVIEW)
    ) as edge:
        status, answer = await _post(edge, "plan/review")
        listed = await _models(edge)
    assert status == 200
    assert answer["model"] == "plan/review"
    assert answer["podium"]["plan"]["source"] == "static"
    assert [(s["worker"], s["subtask"], s["access"]) for s in answer["podium"]["plan"]["steps"]] == [
        ("alpha", "Compute.", []),
        ("beta", "Say it.", [0]),
    ]
    assert planner.queries == []
    assert [call.worker_id for call in workers.calls] == ["alpha", "beta"]
    opened = recorder.only.opened
    assert opened.requested_model == "plan/review"
    assert opened.plan is not None
    assert opened.plan.model_digest == REVIEW.digest
    assert opened.plan.plan.steps[1].fallback_worker_id is None, "a fallback outside the pool is left out"
    assert listed["plan/review"]["description"] == "Compute, then say"


@pytest.mark.parametrize(
    ("changes", "podium", "status", "code", "said"),
    [
        ({"workers_of": pool(worker("alpha"))}, {}, 403, "static_plan_blocked", "beta: not in the pool"),
        (
            {"tenant": Tenant("acme", reach=Reach("tenant", WorkerFilter(excluded=frozenset({"beta"}))))},
            {},
            403,
            "static_plan_blocked",
            "1 out of reach: tenant.workers.except",
        ),
        ({}, {"workers": {"except": ["alpha"]}}, 403, "static_plan_blocked", "alpha: client.except"),
        (
            {"workers_of": pool(worker("alpha"), worker("beta", health=Health.DOWN))},
            {},
            503,
            "workers_down",
            "beta: health.down",
        ),
        ({}, {"max_steps": 1}, 403, "static_plan_too_long", "2 steps, and 1 are allowed"),
        ({"tenant": Tenant("acme", Caps(max_steps=1))}, {}, 403, "static_plan_too_long", "raise max_steps"),
    ],
)
async def test_a_static_plan_that_cannot_be_performed_is_refused_on_record_and_never_changed(
    changes: dict[str, Any], podium: dict[str, Any], status: int, code: str, said: str
) -> None:
    recorder, workers = FakeRecorder(), FakeWorkers()
    async with running_edge(recorder=recorder, workers=workers, named=_named(REVIEW), **changes) as edge:
        found, answer = await _post(edge, "plan/review", **podium)
    assert (found, answer["error"]["code"]) == (status, code)
    assert said in answer["error"]["message"]
    assert recorder.only.opened.refusal_reason == code.upper()
    assert workers.calls == []


async def test_the_workers_of_a_static_plan_that_fail_are_not_replaced() -> None:
    down = PodiumError(Code.PROVIDER_FAILED, "no", metadata={"retryable": "false"})
    workers = FakeWorkers({"beta": Reply(error=down)})
    async with running_edge(workers=workers, named=_named(REVIEW)) as edge:
        status, _ = await _post(edge, "plan/review")
    assert status == 502
    assert {call.worker_id for call in workers.calls} == {"alpha", "beta"}


async def test_unknown_plans_and_days_do_not_exist_and_are_not_listed() -> None:
    tenant = Tenant("acme", reach=Reach("tenant", WorkerFilter(frozenset({"alpha"}))))
    async with running_edge(named=_named(REVIEW), tenant=tenant) as edge:
        for model in ("plan/other", "plan/", "podium@2020-01-01", "podium@today", "podium-fast@2026-11-30"):
            status, answer = await _post(edge, model)
            assert (status, answer["error"]["code"]) == (404, "model_not_found")
        listed = await _models(edge)
    assert "plan/review" not in listed, "a plan with a worker that the tenant may not use"
    assert "podium@2026-11-30" in listed
    assert "podium@2026-10-01" not in listed, "its pool is not loaded"


async def test_a_pinned_name_is_planned_by_its_own_model() -> None:
    async with running_edge(planner=_Conductor("model-1"), named=_named()) as edge:
        status, answer = await _post(edge, "podium@2026-11-30")
    assert (status, answer["model"]) == (200, "podium@2026-11-30")


@pytest.mark.parametrize(
    ("model", "conductor", "code"),
    [
        ("podium@2026-10-01", _Conductor("model-1"), "pinned_pool_gone"),
        ("podium@2026-11-30", _Conductor("model-2"), "pinned_model_gone"),
    ],
)
async def test_what_a_pin_names_is_served_or_refused(model: str, conductor: _Conductor, code: str) -> None:
    recorder, workers = FakeRecorder(), FakeWorkers()
    async with running_edge(planner=conductor, recorder=recorder, workers=workers, named=_named()) as edge:
        status, answer = await _post(edge, model)
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (404, code, "model")
    assert workers.calls == []
    assert [run.opened.refusal_reason for run in recorder.runs.values()] in ([], ["PINNED_MODEL_GONE"])


async def test_no_fallback_plan_stands_in_for_a_pinned_conductor() -> None:
    away = PodiumError(Code.UNAVAILABLE, "the conductor is away", reason="SERVICE_UNAVAILABLE")
    workers = FakeWorkers()
    async with running_edge(planner=_Conductor("model-1", away), workers=workers, named=_named()) as edge:
        pinned, _ = await _post(edge, "podium@2026-11-30")
        plain, answer = await _post(edge, "podium")
    assert pinned == 503
    assert (plain, answer["podium"]["plan"]["source"]) == (200, "fallback")
