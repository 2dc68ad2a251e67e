"""The audit service over real gRPC: who may call, what is refused, what survives a restart."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from podium.audit.v1 import audit_service_pb2 as pb
from podium.plan.v1 import plan_pb2
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.audit_service import (
    RunningAudit,
    begin_request,
    end_request,
    open_request,
    running_audit,
    seal_request,
)
from tests.fakes.waiting import PATIENCE_S

METHODS: dict[str, Any] = {
    "OpenRun": open_request("run_x"),
    "Append": pb.AppendRequest(event_id="e", run_id="run_x", note=pb.Note(kind="remark")),
    "BeginAttempt": begin_request("att_x", "run_x"),
    "EndAttempt": end_request("att_x", "run_x"),
    "Seal": seal_request("run_x"),
    "RenewLease": pb.RenewLeaseRequest(run_ids=["run_x"]),
}
ALLOWED = {
    "gateway": {"OpenRun", "Append", "Seal", "RenewLease"},
    "router": {"BeginAttempt", "EndAttempt"},
    "conductor": {"Append"},
    "cli": {"OpenRun", "Append", "Seal", "RenewLease"},
    "audit": set(),
}


async def refusal(audit: RunningAudit, service: str, method: str, request: Any) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        await audit.call(service, method, request)
    return caught.value


def chunks(run_id: str, data: bytes, size: int | None = None, part_id: str = "long") -> list[Any]:
    header = pb.PutContentHeader(
        event_id=f"{run_id}.{part_id}",
        run_id=run_id,
        part_id=part_id,
        name="request",
        media_type="text/plain",
        size_bytes=len(data) if size is None else size,
    )
    pieces = [pb.PutContentRequest(chunk=data[at : at + 1_000]) for at in range(0, len(data), 1_000)]
    return [pb.PutContentRequest(header=header), *pieces]


async def test_each_caller_may_do_its_own_part_only(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir, callers=("audit",)) as audit:
        for service, allowed in ALLOWED.items():
            for method, request in METHODS.items():
                if method in allowed:
                    continue
                error = await refusal(audit, service, method, request)
                assert (error.code, error.reason) == (Code.POLICY_DENIED, "CALLER_NOT_ALLOWED")
            if service not in ("gateway", "router"):
                error = await refusal(audit, service, "PutContent", iter(chunks("run_x", b"")))
                assert error.reason == "CALLER_NOT_ALLOWED"
        plan = pb.AppendRequest(
            event_id="e", run_id="run_x", plan=pb.PlanRecord(plan=open_request("r").plan.plan)
        )
        assert (await refusal(audit, "conductor", "Append", plan)).reason == "CALLER_NOT_ALLOWED"
        assert (await refusal(audit, "cli", "OpenRun", METHODS["OpenRun"])).reason == "RUN_KIND_NOT_ALLOWED"
        note = pb.AppendRequest(event_id="e", note=pb.Note(kind="checkpoint", facts={"digest": "ab"}))
        assert (await audit.call("conductor", "Append", note)).leaf_index == 0


async def test_a_run_from_opening_to_receipt(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        answer = await audit.run("run_1")
        assert answer.cost_usd_micros == 40
        assert list(answer.receipt.leaf_indices) == [0, 1, 2, 3, 4]
        assert answer.receipt.checkpoint.startswith("podium.local/audit\n5\n")
        assert await audit.call("gateway", "Seal", seal_request("run_1")) == answer
        lost = await audit.call("gateway", "RenewLease", pb.RenewLeaseRequest(run_ids=["run_1", "run_9"]))
        assert list(lost.lost_run_ids) == ["run_1", "run_9"]


async def test_a_refused_run_has_its_receipt_at_once(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        request = open_request("run_1", plan=None, refusal_reason="NO_ELIGIBLE_WORKER")
        answer = await audit.call("gateway", "OpenRun", request)
        assert list(answer.receipt.leaf_indices) == [0, 1]
        assert (
            await refusal(audit, "router", "BeginAttempt", begin_request("a", "run_1"))
        ).reason == "RUN_SEALED"


async def test_a_permit_without_a_recorded_plan_is_refused(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.call("gateway", "OpenRun", open_request("run_1", plan=None))
        error = await refusal(audit, "router", "BeginAttempt", begin_request("att_1", "run_1"))
        assert (error.code, error.reason) == (Code.POLICY_DENIED, "PLAN_NOT_RECORDED")
        plan = pb.AppendRequest(event_id="plan", run_id="run_1", plan=open_request("x").plan)
        await audit.call("gateway", "Append", plan)
        await audit.call("router", "BeginAttempt", begin_request("att_1", "run_1"))


async def test_a_second_dispatch_of_an_attempt_is_refused(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1", until="open")
        first = await audit.call("router", "BeginAttempt", begin_request("att_1", "run_1"))
        assert await audit.call("router", "BeginAttempt", begin_request("att_1", "run_1")) == first
        other = begin_request("att_1", "run_1", dispatch_id="dispatch-2")
        assert (await refusal(audit, "router", "BeginAttempt", other)).code is Code.CONFLICT


@pytest.mark.parametrize("scope", ["run", "key", "tenant"])
async def test_of_fifty_at_once_a_budget_for_ten_permits_ten(
    tmp_path: Path, tls_dir: Path, scope: str
) -> None:
    caps = plan_pb2.Caps(max_attempts_per_step=100)
    budget: dict[str, Any] = {}
    if scope == "run":
        caps.has_max_cost, caps.max_cost_usd_micros = True, 1_000
    elif scope == "key":
        budget = {"key_budget_usd_micros": 1_000}
    else:
        budget = {"has_tenant_budget": True, "tenant_budget_usd_micros": 1_000}
    async with running_audit(tmp_path, tls_dir) as audit:
        runs = ["run_0"] if scope == "run" else [f"run_{number}" for number in range(5)]
        for run_id in runs:
            await audit.call("gateway", "OpenRun", open_request(run_id, caps=caps, **budget))
        asked = [begin_request(f"att_{n}", runs[n % len(runs)]) for n in range(50)]
        answers = await asyncio.gather(
            *(audit.call("router", "BeginAttempt", request) for request in asked), return_exceptions=True
        )
        errors = [answer for answer in answers if isinstance(answer, PodiumError)]
        assert len(errors) == 40
        assert {(error.code, error.reason) for error in errors} == {
            (Code.BUDGET_EXHAUSTED, f"{scope.upper()}_BUDGET_EXHAUSTED")
        }
        assert audit.audit.log.figures.reserved_usd_micros == 1_000


async def test_a_seal_waits_for_an_end_under_way(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir, seal_wait_s=PATIENCE_S) as audit:
        await audit.run("run_1", until="begin")
        sealing = asyncio.create_task(audit.call("gateway", "Seal", seal_request("run_1")))
        await asyncio.sleep(0.1)
        assert not sealing.done()
        ended = await audit.call("router", "EndAttempt", end_request("run_1.1", "run_1"))
        assert (ended.late, (await sealing).cost_usd_micros) == (False, 40)


async def test_a_seal_settles_what_never_ends_and_hears_of_it_late(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1", until="begin")
        sealed = await audit.call("gateway", "Seal", seal_request("run_1"))
        assert sealed.cost_usd_micros == 100
        assert audit.audit.log.figures.reserved_usd_micros == 0
        ended = await audit.call("router", "EndAttempt", end_request("run_1.1", "run_1"))
        assert ended.late


async def test_a_gateway_that_is_gone_leaves_an_abandoned_run(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir, reap_interval_s=0.05) as audit:
        reaping = asyncio.create_task(audit.audit.reaper.run())
        await audit.run("run_1", until="begin", lease_ms=300)
        await audit.run("run_2", until="begin", lease_ms=20_000)
        async with asyncio.timeout(PATIENCE_S):
            # The page, not the figures: those move before the commit that readers see.
            while (page := (await audit.get("/v1/runs/run_1"))[1])["run"]["outcome"] is None:
                await asyncio.sleep(0.02)
        assert audit.audit.log.figures.reserved_usd_micros == 100
        assert (page["run"]["outcome"], page["run"]["cost_usd_micros"]) == ("abandoned", 100)
        reaping.cancel()


async def test_content_streams_in_whole_or_not_at_all(tmp_path: Path, tls_dir: Path) -> None:
    data = bytes(range(256)) * 40
    async with running_audit(tmp_path, tls_dir, max_content_bytes=20_000, max_buffered_bytes=15_000) as audit:
        await audit.run("run_1", until="open")
        first = await audit.call("gateway", "PutContent", iter(chunks("run_1", data)))
        assert await audit.call("gateway", "PutContent", iter(chunks("run_1", data))) == first
        for wrong in (
            chunks("run_1", data, len(data) + 1, "a"),
            chunks("run_1", data, len(data) - 1, "b"),
            chunks("run_1", data)[1:],
            [chunks("run_1", data)[0], *chunks("run_1", data)],
            [],
        ):
            assert (await refusal(audit, "gateway", "PutContent", iter(wrong))).code is Code.INVALID_REQUEST
        assert (
            await refusal(audit, "gateway", "PutContent", iter(chunks("run_1", b"", 20_001, "c")))
        ).code is (Code.TOO_LARGE)
        error = await refusal(audit, "gateway", "PutContent", iter(chunks("run_1", b"x" * 16_000, None, "d")))
        assert error.code is Code.AUDIT_UNAVAILABLE
        changed = chunks("run_1", b"y" + data[1:])
        assert (await refusal(audit, "gateway", "PutContent", iter(changed))).reason == "EVENT_REUSED"
        body = [pb.BodyPart(part_id="long")]
        await audit.call("router", "BeginAttempt", begin_request("att_1", "run_1", body=body))


async def test_what_no_version_knows_is_refused_by_name(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        for service, method, request in (
            ("gateway", "OpenRun", open_request("run_1", kind=0)),
            ("gateway", "OpenRun", open_request("run_1", verdicts=[plan_pb2.Verdict(worker_id="w")])),
            ("gateway", "Append", pb.AppendRequest(event_id="e", run_id="run_1")),
            ("router", "BeginAttempt", begin_request("a", "run_1", kind=99)),
            ("router", "EndAttempt", end_request("a", "run_1", outcome=0)),
            ("gateway", "Seal", seal_request("run_1", outcome=0)),
        ):
            error = await refusal(audit, service, method, request)
            assert error.code is Code.INVALID_REQUEST
            assert error.param


async def test_a_restart_forgets_nothing_but_leases(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        sealed = await audit.run("run_1")
        permit = await audit.run("run_2", until="begin", has_tenant_budget=True, tenant_budget_usd_micros=150)
    async with running_audit(tmp_path, tls_dir) as audit:
        assert audit.audit.log.figures.reserved_usd_micros == 100
        assert await audit.call("gateway", "Seal", seal_request("run_1")) == sealed
        assert await audit.call("router", "BeginAttempt", begin_request("run_2.1", "run_2")) == permit
        changed = open_request("run_2", principal_id="key2")
        assert (await refusal(audit, "gateway", "OpenRun", changed)).reason == "EVENT_REUSED"
        error = await refusal(audit, "router", "BeginAttempt", begin_request("run_2.2", "run_2"))
        assert error.reason == "TENANT_BUDGET_EXHAUSTED"
        await audit.call("router", "EndAttempt", end_request("run_2.1", "run_2"))
        await audit.call("gateway", "Seal", seal_request("run_2"))


async def test_records_are_spans_under_the_callers(tmp_path: Path, tls_dir: Path) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    tracer = provider.get_tracer("t")
    async with running_audit(tmp_path, tls_dir, tracer=tracer) as audit:
        await audit.call("gateway", "OpenRun", open_request("run_0"))
        assert spans.get_finished_spans() == ()
        with tracer.start_as_current_span("run") as run:
            parent = trace.format_trace_id(run.get_span_context().trace_id)
            header = f"00-{parent}-{trace.format_span_id(run.get_span_context().span_id)}-01"
            await audit.stubs["gateway"].audit.OpenRun(
                open_request("run_1"), metadata=(("traceparent", header),)
            )
            with pytest.raises(grpc.aio.AioRpcError, match="no such run"):
                await audit.stubs["router"].audit.BeginAttempt(
                    begin_request("a", "run_9"), metadata=(("traceparent", header),)
                )
    opened, refused, parent_span = spans.get_finished_spans()
    assert (opened.name, refused.name, parent_span.name) == ("record open", "record begin", "run")
    assert opened.parent is not None
    assert opened.parent.span_id == parent_span.context.span_id
    assert opened.attributes is not None
    assert opened.attributes["podium.audit.leaf_index"] == 2
    assert refused.attributes is not None
    assert refused.attributes["error.type"] == "RUN_UNKNOWN"
