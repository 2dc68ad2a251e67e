"""Who may ask for what, and configuration that changes while the router runs."""

from pathlib import Path
from typing import Any

import grpc
import pytest

from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Health
from podium_core.wire.pool import pool_from_proto
from tests.fakes.router_rig import KEY, router_rig

PLAN = plan_pb2.ATTEMPT_KIND_PLAN
STEP = plan_pb2.ATTEMPT_KIND_STEP


@pytest.mark.parametrize(
    ("caller", "kind", "allow_cli", "is_allowed"),
    [
        ("gateway", STEP, False, True),
        ("gateway", PLAN, False, True),
        ("conductor", PLAN, False, True),
        ("conductor", STEP, False, False),
        ("cli", STEP, False, False),
        ("cli", STEP, True, True),
        ("audit", STEP, True, False),
    ],
)
async def test_who_may_make_attempts(
    caller: str, kind: Any, allow_cli: bool, is_allowed: bool, tls_dir: Path, tmp_path: Path
) -> None:
    async with router_rig(tls_dir, tmp_path, allow_cli=allow_cli) as rig:
        if is_allowed:
            assert (await rig.complete(rig.request(kind=kind), caller=caller)).text == "hello"
            return
        with pytest.raises(PodiumError) as refused:
            await rig.complete(rig.request(kind=kind), caller=caller)
        assert refused.value.code is Code.POLICY_DENIED
        assert (rig.audit.begun, rig.upstream.requests) == ({}, [])


@pytest.mark.parametrize(
    ("caller", "is_allowed"), [("gateway", True), ("conductor", True), ("cli", True), ("audit", False)]
)
async def test_who_may_list_workers(caller: str, is_allowed: bool, tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        listing = rig.stub(caller).ListWorkers(pb.ListWorkersRequest())
        if is_allowed:
            assert [worker.worker_id for worker in (await listing).workers] == ["w"]
        else:
            with pytest.raises(grpc.aio.AioRpcError):
                await listing


async def test_the_list_is_the_pool(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.write_pool(w={}, off={"key": {"env": "PODIUM_TEST_ABSENT"}}, dear={"price": None, "demo": True})
        listed = pool_from_proto(await rig.stub().ListWorkers(pb.ListWorkersRequest()))
        assert listed == rig.catalog.pool()
        assert [worker.health for worker in listed.workers] == [Health.UP, Health.UNCONFIGURED, Health.UP]
        with pytest.raises(PodiumError) as refused:
            await rig.complete(rig.request(worker_id="off"))
        assert (refused.value.reason, refused.value.metadata["retryable"]) == ("WORKER_UNCONFIGURED", "false")
        await rig.complete(rig.request(worker_id="dear"))
        assert rig.audit.begun["att_2"].max_cost_usd_micros == 0
        assert rig.upstream.requests[0].fields["model"] == "dear-model"


async def test_a_changed_pool_is_taken_up(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        old = rig.request()
        rig.write_pool(w={"model": "newer"})
        await rig.complete(old)
        await rig.complete(rig.request())
        assert [seen.fields["model"] for seen in rig.upstream.requests] == ["w-model", "newer"]
        rig.pool_path.write_text("workers: [")
        rig.pool.refresh()
        assert (await rig.complete()).text == "hello", "a broken file changes nothing"


async def test_a_renewed_key_is_used_at_once(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        await rig.complete()
        rig.key_path.write_text("sk-renewed\n")
        await rig.complete()
        sent = [seen.headers["Authorization"] for seen in rig.upstream.requests]
        assert sent == [f"Bearer {KEY}", "Bearer sk-renewed"]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"attempt_id": ""}, "attempt_id"),
        ({"attempt_id": "a\r\nX-Evil: 1"}, "attempt_id"),
        ({"attempt_id": "é"}, "attempt_id"),
        ({"run_id": ""}, "run_id"),
        ({"kind": 0}, "attempt_kind"),
        ({"kind": plan_pb2.ATTEMPT_KIND_EMBED}, "kind"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"messages": []}, "messages"),
        ({"parameters_json": b"[]"}, "parameters_json"),
        ({"parameters_json": b'{"model": "other"}'}, "parameters_json"),
        ({"worker_id": "nobody"}, "worker_id"),
        ({"pool_digest": ""}, "pool_digest"),
    ],
)
async def test_bad_requests_are_named(
    changes: dict[str, Any], param: str, tls_dir: Path, tmp_path: Path
) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        with pytest.raises(PodiumError) as refused:
            await rig.complete(rig.request(**changes))
        assert refused.value.param == param
        assert refused.value.code in {Code.INVALID_REQUEST, Code.NOT_FOUND, Code.CONFLICT}
        assert (rig.audit.begun, rig.upstream.requests) == ({}, [])
