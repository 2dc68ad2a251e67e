"""The tiers and the gate at the HTTP edge: what is asked of the Conductor, and what the client is told."""

from typing import Any

import aiohttp
import pytest

from podium_core.config.tenants import Tenant
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Plan, PlanSource, Step
from podium_core.domain.run import Caps
from tests.fakes.gateway import EdgeServer, running_edge
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

OPEN = Tenant("acme", Caps(max_rounds=8))
TWO = plan_of(("alpha", "first", ()), ("beta", "second", (0,)))


async def answered(edge: EdgeServer, model: str, **wishes: object) -> tuple[int, dict[str, Any]]:
    body = {"model": model, "messages": [{"role": "user", "content": "6 times 7?"}], "podium": wishes}
    async with (
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.post(edge.url + "/v1/chat/completions", json=body) as response,
    ):
        return response.status, await response.json()


@pytest.mark.parametrize(
    ("model", "tenant_rounds", "wishes", "steps", "rounds"),
    [
        ("podium", 8, {}, 5, 1),
        ("podium-max", 8, {}, 5, 3),
        ("podium-max", 2, {}, 5, 2),
        ("podium-max", 8, {"rounds": 2, "max_steps": 3}, 3, 2),
        ("podium-fast", 8, {"max_steps": 4}, 1, 1),
    ],
)
async def test_a_tier_is_its_limits(
    model: str, tenant_rounds: int, wishes: dict[str, object], steps: int, rounds: int
) -> None:
    planner = FakePlanner()
    tenant = Tenant("acme", Caps(max_rounds=tenant_rounds))
    async with running_edge(planner=planner, tenant=tenant) as edge:
        status, _ = await answered(edge, model, **wishes)
    assert status == 200
    query = planner.queries[0]
    assert (query.tier, query.caps.max_steps, query.caps.max_rounds) == (model, steps, rounds)


@pytest.mark.parametrize(("model", "rounds"), [("podium", 2), ("podium-fast", 2), ("podium-max", 4)])
async def test_more_rounds_than_the_tier_has_are_refused(model: str, rounds: int) -> None:
    async with running_edge(tenant=OPEN) as edge:
        status, body = await answered(edge, model, rounds=rounds)
    assert (status, body["error"]["param"]) == (400, "podium.rounds")


async def test_podium_max_revises_then_accepts_and_says_so() -> None:
    revise = Plan((Step("beta", "check"),), PlanSource.MODEL, 1)
    planner = FakePlanner(plan_of(("alpha", "", ())), revise, Plan((), PlanSource.MODEL, 2))
    workers = FakeWorkers({"alpha": Reply("41"), "beta": Reply("42")})
    async with running_edge(planner=planner, workers=workers, tenant=OPEN) as edge:
        _, body = await answered(edge, "podium-max")
    podium = body["podium"]
    assert body["choices"][0]["message"]["content"] == "42"
    assert [(r["accepted"], r["changed"]) for r in podium["rounds"]] == [
        (False, False),
        (False, True),
        (True, False),
    ]
    assert podium["flip_count"] == 1
    assert podium["plan"]["steps"] == []
    assert len(podium["earlier_plans"]) == 2


async def test_a_fallback_says_why() -> None:
    planner = FakePlanner(PodiumError(Code.PLAN_INVALID, "no", reason="PLAN_NO_TRIPLE"))
    async with running_edge(planner=planner) as edge:
        _, body = await answered(edge, "podium")
    plan = body["podium"]["plan"]
    assert (plan["source"], plan["fallback_reason"]) == ("fallback", "plan_no_triple")


@pytest.mark.parametrize("is_gated", [True, False])
async def test_the_gate_is_a_tenants_choice(is_gated: bool) -> None:
    recorder = FakeRecorder()
    tenant = Tenant("acme", Caps(max_rounds=8), is_gated=is_gated)
    async with running_edge(planner=FakePlanner(TWO), tenant=tenant, recorder=recorder) as edge:
        _, body = await answered(edge, "podium")
    assert len(body["podium"]["steps"]) == (1 if is_gated else 2)
    assert body["podium"]["plan"].get("fallback_reason") == ("gate_one_worker" if is_gated else None)
    assert [kind for kind, _ in recorder.only.notes] == (["gate"] if is_gated else [])
