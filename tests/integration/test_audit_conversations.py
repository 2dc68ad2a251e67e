"""Conversation items and stops over real gRPC: who may call, what is recorded, what survives kill -9."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from podium.audit.v1 import audit_service_pb2 as audit_pb
from podium.audit.v1 import conversation_service_pb2 as pb
from podium.audit.v1 import conversation_service_pb2_grpc
from podium.audit.v1 import stop_service_pb2 as stop_pb
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.audit_process import audit_process
from tests.fakes.audit_service import RunningAudit, begin_request, open_request, running_audit
from tests.fakes.waiting import until


def put(item_id: str = "item_1", data: bytes = b"words", **changes: Any) -> pb.PutItemRequest:
    values: dict[str, Any] = {
        "tenant_id": "acme",
        "kind": pb.ITEM_KIND_RESPONSE,
        "item_id": item_id,
        "data": data,
    }
    return pb.PutItemRequest(**{**values, **changes})


def name(item_id: str = "item_1", principal_id: str = "") -> dict[str, Any]:
    return {
        "tenant_id": "acme",
        "kind": pb.ITEM_KIND_RESPONSE,
        "item_id": item_id,
        "principal_id": principal_id,
    }


async def refusal(audit: RunningAudit, service: str, method: str, request: Any) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        await audit.call(service, method, request)
    return caught.value


async def test_only_the_gateway_may_touch_items(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        for service in ("router", "conductor", "cli"):
            for method, request in (
                ("PutItem", put()),
                ("GetItem", pb.GetItemRequest(**name())),
                ("DeleteItem", pb.DeleteItemRequest(**name())),
            ):
                assert (await refusal(audit, service, method, request)).reason == "CALLER_NOT_ALLOWED"


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"tenant_id": ""}, "tenant_id"),
        ({"item_id": "a/b"}, "item_id"),
        ({"kind": 0}, "item_kind"),
        ({"kind": 99}, "item_kind"),
        ({"ttl_ms": 2**63}, "ttl_ms"),
        ({"only_if_absent": True, "if_version": 1}, "if_version"),
        ({"run_id": "a b"}, "run_id"),
        ({"data": b"x" * 2_000}, "data"),
    ],
)
async def test_a_bad_item_is_refused_by_its_field(
    tmp_path: Path, tls_dir: Path, changes: dict[str, Any], param: str
) -> None:
    async with running_audit(tmp_path, tls_dir, max_item_bytes=1_024) as audit:
        error = await refusal(audit, "gateway", "PutItem", put(**changes))
    assert error.param == param
    assert error.code is (Code.TOO_LARGE if param == "data" else Code.INVALID_REQUEST)


async def test_a_clients_read_and_deletion_are_records_of_the_run(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        await audit.call("gateway", "PutItem", put(run_id="run_1"))
        got = await audit.call("gateway", "GetItem", pb.GetItemRequest(**name(principal_id="key1")))
        assert got.item.data == b"words"
        await audit.call("gateway", "GetItem", pb.GetItemRequest(**name()))
        gone = await audit.call("gateway", "DeleteItem", pb.DeleteItemRequest(**name(principal_id="key1")))
        assert gone.deleted
        status, page = await audit.get("/v1/runs/run_1")
        assert status == 200
    reads = [
        (entry["record"]["facts"]["action"], entry["record"]["facts"]["principal_id"])
        for entry in page["records"]
        if entry["record"]["type"] == "read"
    ]
    assert reads[:2] == [("conversation_read", "key1"), ("conversation_deleted", "key1")]


async def test_acknowledged_items_survive_kill_9_and_deleted_ones_stay_gone(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with audit_process(tmp_path, tls_dir) as audit:
        channel, _ = audit.stub("gateway")
        stub: Any = conversation_service_pb2_grpc.ConversationServiceStub(channel)
        await stub.PutItem(put("gone"), timeout=60)
        await stub.DeleteItem(pb.DeleteItemRequest(**name("gone")), timeout=60)
        acknowledged: list[str] = []

        async def writes(writer: int) -> None:
            number = 0
            while True:
                number += 1
                item_id = f"item_{writer}_{number}"
                await stub.PutItem(put(item_id, item_id.encode()), timeout=60)
                acknowledged.append(item_id)

        tasks = [asyncio.create_task(writes(writer)) for writer in range(4)]
        await until(lambda: len(acknowledged) >= 40)
        audit.kill()
        await asyncio.gather(*tasks, return_exceptions=True)
        await channel.close()
        audit.start()
        await audit.ready()
        channel, _ = audit.stub("gateway")
        stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
        for item_id in acknowledged:
            got = await stub.GetItem(pb.GetItemRequest(**name(item_id)), timeout=60)
            assert got.item.data == item_id.encode()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetItem(pb.GetItemRequest(**name("gone")), timeout=60)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        await channel.close()


async def test_a_gateway_may_stop_one_tenants_run_and_nothing_else(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1", until="open")
        for request in (
            stop_pb.RequestStopRequest(event_id="s1", everything=True),
            stop_pb.RequestStopRequest(event_id="s2", tenant_id="acme", everything=True),
            stop_pb.RequestStopRequest(event_id="s3", tenant_id="acme", worker_id="w1"),
            stop_pb.RequestStopRequest(event_id="s4", run_id="run_1"),
        ):
            error = await refusal(audit, "gateway", "RequestStop", request)
            assert error.reason == "CALLER_NOT_ALLOWED"
        other = stop_pb.RequestStopRequest(event_id="s5", tenant_id="other", run_id="run_1")
        assert (await refusal(audit, "gateway", "RequestStop", other)).code is Code.NOT_FOUND
        renewal = audit_pb.RenewLeaseRequest(run_ids=["run_1"], lease_ms=5_000)
        assert not (await audit.call("gateway", "RenewLease", renewal)).cancelled_run_ids
        own = stop_pb.RequestStopRequest(event_id="s6", tenant_id="acme", run_id="run_1", principal_id="key1")
        await audit.call("gateway", "RequestStop", own)
        renewed = await audit.call("gateway", "RenewLease", renewal)
        assert list(renewed.cancelled_run_ids) == ["run_1"]
        assert not renewed.lost_run_ids
        error = await refusal(audit, "router", "BeginAttempt", begin_request("att_1", "run_1"))
        assert error.reason == "RUN_STOPPED"


async def test_an_operators_stop_of_everything_stands_until_it_is_cleared(
    tmp_path: Path, tls_dir: Path
) -> None:
    everything: dict[str, Any] = {"everything": True, "principal_id": "ops"}
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.call("cli", "RequestStop", stop_pb.RequestStopRequest(event_id="s1", **everything))
        worker = stop_pb.RequestStopRequest(event_id="s2", worker_id="w1", tenant_id="acme")
        await audit.call("cli", "RequestStop", worker)
    async with running_audit(tmp_path, tls_dir) as audit:
        stops = (await audit.call("cli", "ListStops", stop_pb.ListStopsRequest())).stops
        assert [(stop.tenant_id, stop.worker_id) for stop in stops] == [("", ""), ("acme", "w1")]
        await audit.call("gateway", "OpenRun", open_request("run_1"))
        begin = begin_request("att_1", "run_1")
        assert (await refusal(audit, "router", "BeginAttempt", begin)).reason == "EVERYTHING_STOPPED"
        clear = stop_pb.ClearStopRequest(event_id="c1", **everything)
        assert (await refusal(audit, "gateway", "ClearStop", clear)).reason == "CALLER_NOT_ALLOWED"
        await audit.call("cli", "ClearStop", clear)
        assert (await refusal(audit, "router", "BeginAttempt", begin)).reason == "WORKER_STOPPED"
        again = stop_pb.ClearStopRequest(event_id="c2", **everything)
        assert (await refusal(audit, "cli", "ClearStop", again)).reason == "STOP_UNKNOWN"
        nothing = stop_pb.RequestStopRequest(event_id="s3")
        assert (await refusal(audit, "cli", "RequestStop", nothing)).param == "target"
