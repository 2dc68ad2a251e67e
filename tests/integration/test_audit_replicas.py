"""Two replicas of audit on one PostgreSQL: whatever one began, the other goes on with."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import conversation_service_pb2 as conversation_pb
from podium.audit.v1 import limit_service_pb2 as limit_pb
from podium.audit.v1 import limit_service_pb2_grpc, stop_service_pb2
from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as router_pb
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.audit_service import (
    RunningAudit,
    begin_request,
    end_request,
    open_request,
    running_audit,
    seal_request,
    settings_for,
)
from tests.fakes.router_rig import router_rig
from tests.fakes.waiting import PATIENCE_S, SOON_S, until

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer


@dataclass(frozen=True, slots=True)
class Replicas:
    """Two replicas of one installation."""

    one: RunningAudit
    two: RunningAudit


@asynccontextmanager
async def running_replicas(
    home: Path, tls_dir: Path, postgres: "PostgresServer", **changes: Any
) -> AsyncIterator[Replicas]:
    named: dict[str, Any] = {
        "database_url": postgres.new_database(),
        "key_database_url": postgres.new_database(),
    }
    async with AsyncExitStack() as stack:
        made: list[RunningAudit] = []
        for _ in range(2):
            audit = await stack.enter_async_context(running_audit(home, tls_dir, **named, **changes))
            reaping = asyncio.create_task(audit.audit.reaper.run())
            stack.callback(reaping.cancel)
            made.append(audit)
        yield Replicas(*made)


@pytest.fixture
async def replicas(tmp_path: Path, tls_dir: Path, postgres: "PostgresServer") -> AsyncIterator[Replicas]:
    async with running_replicas(tmp_path, tls_dir, postgres, seal_wait_s=60, reap_interval_s=0.1) as made:
        yield made


async def renew(audit: RunningAudit, *run_ids: str) -> tuple[list[str], list[str]]:
    """Return which runs are lost and which must stop."""
    answer = await audit.call("gateway", "RenewLease", pb.RenewLeaseRequest(run_ids=run_ids, lease_ms=30_000))
    return list(answer.lost_run_ids), list(answer.cancelled_run_ids)


async def until_renewed(audit: RunningAudit, expected: tuple[list[str], list[str]], *run_ids: str) -> None:
    """Renew until that is the answer: a replica hears of the other's commits within a second."""
    async with asyncio.timeout(SOON_S):
        while await renew(audit, *run_ids) != expected:
            await asyncio.sleep(0.05)


async def test_a_run_opened_at_one_is_performed_renewed_and_sealed_at_the_other(replicas: Replicas) -> None:
    one, two = replicas.one, replicas.two
    await one.call("gateway", "OpenRun", open_request("run_1"))
    await two.call("router", "BeginAttempt", begin_request("run_1.1", "run_1"))
    assert await renew(two, "run_1", "unknown") == (["unknown"], [])
    await one.call("router", "EndAttempt", end_request("run_1.1", "run_1"))
    sealed = await two.call("gateway", "Seal", seal_request("run_1"))
    assert (sealed.cost_usd_micros, len(sealed.receipt.leaf_indices)) == (40, 5)
    await until_renewed(one, (["run_1"], []), "run_1")


async def test_a_seal_hears_of_an_attempt_that_ended_at_the_other(replicas: Replicas) -> None:
    one, two = replicas.one, replicas.two
    await one.call("gateway", "OpenRun", open_request("run_1"))
    await one.call("router", "BeginAttempt", begin_request("run_1.1", "run_1"))
    sealing = asyncio.create_task(one.call("gateway", "Seal", seal_request("run_1")))
    await until(lambda: one.audit.log.state.open_runs["run_1"].is_sealing)
    await two.call("router", "EndAttempt", end_request("run_1.1", "run_1"))
    async with asyncio.timeout(SOON_S):
        sealed = await sealing
    assert sealed.cost_usd_micros == 40, "it was waited for, not counted as unknown"


async def test_a_stop_at_one_is_obeyed_and_heard_at_the_other(replicas: Replicas) -> None:
    one, two = replicas.one, replicas.two
    for run_id in ("run_1", "run_2"):
        await one.call("gateway", "OpenRun", open_request(run_id))
    await one.call(
        "cli", "RequestStop", stop_service_pb2.RequestStopRequest(event_id="stop.1", run_id="run_1")
    )
    with pytest.raises(PodiumError) as caught:
        await two.call("router", "BeginAttempt", begin_request("run_1.1", "run_1"))
    assert caught.value.reason == "RUN_STOPPED"
    assert await renew(two, "run_1", "run_2") == ([], ["run_1"])
    await two.call(
        "cli", "RequestStop", stop_service_pb2.RequestStopRequest(event_id="stop.2", everything=True)
    )
    await until_renewed(one, ([], ["run_1", "run_2"]), "run_1", "run_2")
    with pytest.raises(PodiumError) as caught:
        await one.call("router", "BeginAttempt", begin_request("run_2.1", "run_2"))
    assert caught.value.reason == "EVERYTHING_STOPPED"


async def test_a_limit_holds_over_both(replicas: Replicas) -> None:
    path = replicas.one.home / "tenants.yaml"
    tenants = json.loads(path.read_text())
    tenants["tenants"][0]["limits"] = {"requests_per_minute": 10, "concurrent_runs": 3}
    path.write_text(json.dumps(tenants))
    for audit in (replicas.one, replicas.two):
        assert audit.audit.tenants.fresh()

    async def lease(number: int) -> list[int]:
        name = {"tenant_id": tenants["tenants"][0]["id"]}
        kinds = (limit_pb.LIMIT_KIND_REQUESTS, limit_pb.LIMIT_KIND_RUNS)
        wishes = [
            limit_pb.SliceRequest(limit=limit_pb.LimitName(**name, kind=kind), needed=1, wanted=1)
            for kind in kinds
        ]
        channel = (replicas.one, replicas.two)[number % 2].channels["gateway"]
        stub: Any = limit_service_pb2_grpc.LimitServiceStub(channel)
        request = limit_pb.LeaseSlicesRequest(holder_id=f"gateway_{number}", slices=wishes)
        answer = await stub.LeaseSlices(request, timeout=PATIENCE_S)
        return [each.granted for each in answer.slices]

    granted = await asyncio.gather(*(lease(number) for number in range(24)))
    assert [sum(amounts) for amounts in zip(*granted, strict=True)] == [10, 3]


async def test_a_conversation_item_kept_at_one_is_read_and_deleted_at_the_other(replicas: Replicas) -> None:
    named: dict[str, Any] = {
        "tenant_id": "acme",
        "kind": conversation_pb.ITEM_KIND_RESPONSE,
        "item_id": "resp_1",
    }
    await replicas.one.call("gateway", "PutItem", conversation_pb.PutItemRequest(**named, data=b"kept"))
    found = await replicas.two.call("gateway", "GetItem", conversation_pb.GetItemRequest(**named))
    assert found.item.data == b"kept"
    await replicas.two.call("gateway", "DeleteItem", conversation_pb.DeleteItemRequest(**named))
    with pytest.raises(PodiumError) as caught:
        await replicas.one.call("gateway", "GetItem", conversation_pb.GetItemRequest(**named))
    assert caught.value.code is Code.NOT_FOUND


async def test_words_that_are_never_stored_are_sent_to_the_replica_that_lacks_them(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    settings_for(tmp_path, tls_dir)
    path = tmp_path / "tenants.yaml"
    tenants = json.loads(path.read_text())
    tenants["tenants"][0]["content"] = "commitments"
    path.write_text(json.dumps(tenants))
    words = json.dumps([{"role": "user", "content": "What is 2+2?"}]).encode()
    plan = plan_pb2.Plan(steps=[plan_pb2.Step(worker_id="w")], source=plan_pb2.PLAN_SOURCE_NAMED)
    opening = open_request(
        "run_1",
        verdicts=[plan_pb2.Verdict(worker_id="w", allowed=True, rule_id="default.allow")],
        plan=pb.PlanRecord(plan=plan),
        contents=[pb.Content(part_id="question", name="question", media_type="text/plain", data=words)],
    )
    async with (
        running_replicas(tmp_path, tls_dir, postgres) as replicas,
        router_rig(tls_dir, tmp_path, audit_address=replicas.two.address) as router,
    ):
        await replicas.one.call("gateway", "OpenRun", opening)
        asked = router.request(messages=[router_pb.Segment(part_id="question", data=words)])
        assert (await router.complete(asked)).text == "hello"
        assert b"What is 2+2?" in router.upstream.requests[-1].body


async def test_a_run_that_nobody_renews_is_given_up_once(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    quick = {"lease_default_s": 0.5, "reap_interval_s": 0.05}
    async with running_replicas(tmp_path, tls_dir, postgres, **quick) as replicas:
        one, two = replicas.one, replicas.two
        await one.call("gateway", "OpenRun", open_request("run_1", lease_ms=0))
        await two.call("router", "BeginAttempt", begin_request("run_1.1", "run_1"))
        await until(lambda: not two.audit.log.state.open_runs and not one.audit.log.state.open_runs)
        await until_renewed(two, (["run_1"], []), "run_1")
        with pytest.raises(PodiumError, match="abandoned"):
            await one.call("gateway", "Seal", seal_request("run_1"))
        status, page = await one.get("/v1/runs/run_1")
        assert (status, page["run"]["outcome"]) == (200, "abandoned")
