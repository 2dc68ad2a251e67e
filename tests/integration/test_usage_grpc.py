"""What audit sums up per key and day, over real gRPC: from attempts as they end, late or never."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podium.audit.v1 import usage_service_pb2 as pb
from podium.audit.v1 import usage_service_pb2_grpc
from podium.plan.v1 import plan_pb2
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_errors import rpc_errors
from tests.fakes.audit_service import (
    RunningAudit,
    begin_request,
    end_request,
    running_audit,
    seal_request,
    settings_for,
)
from tests.fakes.tls import tls_of


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


@asynccontextmanager
async def _stub(audit: RunningAudit, tls_dir: Path, caller: str = "gateway") -> AsyncGenerator[Any, None]:
    async with open_channel(audit.address, "audit", tls_of(tls_dir, caller)) as channel:
        yield usage_service_pb2_grpc.UsageServiceStub(channel)


async def _read(stub: Any, principal_id: str = "", **changes: str) -> pb.ReadUsageResponse:
    values = {"tenant_id": "acme", "first_day": _today(), "last_day": _today(), **changes}
    with rpc_errors("audit"):
        answer: pb.ReadUsageResponse = await stub.ReadUsage(
            pb.ReadUsageRequest(principal_id=principal_id, **values), timeout=60
        )
    return answer


def _total(answer: pb.ReadUsageResponse, name: str) -> int:
    return sum(getattr(row, name) for row in answer.rows)


async def test_requests_and_attempts_are_summed_per_key(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit, _stub(audit, tls_dir) as stub:
        for run_id in ("run_1", "run_2"):
            await audit.run(run_id)
        await audit.run("run_3", principal_id="key2", requested_model="worker/w1")
        own, whole = await _read(stub, "key1"), await _read(stub)
        (request, attempt) = own.rows
        assert (request.worker_id, request.model, request.requests, request.attempts) == ("", "podium", 2, 0)
        assert (attempt.worker_id, attempt.model, attempt.requests, attempt.attempts) == ("w1", "model", 0, 2)
        assert (attempt.input_tokens, attempt.output_tokens, attempt.cost_usd_micros) == (20, 40, 80)
        assert (_total(whole, "requests"), _total(whole, "cost_usd_micros")) == (3, 120)
        assert {row.principal_id for row in whole.rows} == {"key1", "key2"}
        assert (own.key_money.settled_usd_micros, whole.HasField("key_money")) == (80, False)
        assert (whole.money.settled_usd_micros, whole.money.HasField("budget_usd_micros")) == (120, False)
        assert (await _read(stub, tenant_id="other")).rows == []


async def test_sums_outlive_a_restart_and_equal_what_the_budget_says(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        await audit.run("run_2", until="begin")
    async with running_audit(tmp_path, tls_dir) as audit, _stub(audit, tls_dir) as stub:
        assert (await _read(stub)).money.reserved_usd_micros == 100
        await audit.call("router", "EndAttempt", end_request("run_2.1", "run_2"))
        answer = await _read(stub)
    assert (_total(answer, "requests"), _total(answer, "attempts")) == (2, 2)
    assert _total(answer, "cost_usd_micros") == answer.money.settled_usd_micros == 80


async def test_the_money_is_the_tenants_and_the_keys_own(tmp_path: Path, tls_dir: Path) -> None:
    settings_for(tmp_path, tls_dir)
    file = tmp_path / "tenants.yaml"
    tenants = json.loads(file.read_text())
    tenants["tenants"][0]["budget_usd_per_month"] = "9"
    tenants["tenants"][0]["keys"][0]["budget_usd_per_month"] = "2"
    file.write_text(json.dumps(tenants))
    async with running_audit(tmp_path, tls_dir) as audit, _stub(audit, tls_dir) as stub:
        await audit.run("run_1")
        await audit.run("run_2", principal_id="key2")
        await audit.run("run_3", until="begin")
        own, other = await _read(stub, "key1"), await _read(stub, "key2")
    assert (own.money.budget_usd_micros, own.key_money.budget_usd_micros) == (9_000_000, 2_000_000)
    assert (own.money.settled_usd_micros, own.key_money.settled_usd_micros) == (80, 40)
    assert (own.key_money.reserved_usd_micros, other.key_money.reserved_usd_micros) == (100, 0)
    assert not other.key_money.HasField("budget_usd_micros")


async def test_estimates_are_counted_apart_and_subsets_stay_within_their_whole(
    tmp_path: Path, tls_dir: Path
) -> None:
    usage = plan_pb2.Usage(
        input_tokens=100,
        output_tokens=50,
        cached_input_tokens=60,
        cache_write_input_tokens=30,
        reasoning_output_tokens=45,
        source=plan_pb2.USAGE_SOURCE_ESTIMATED,
    )
    async with running_audit(tmp_path, tls_dir) as audit, _stub(audit, tls_dir) as stub:
        await audit.run("run_1", until="begin")
        end = end_request("run_1.1", "run_1", usage=usage, cost_usd_micros=0)
        await audit.call("router", "EndAttempt", end)
        (_, row) = (await _read(stub)).rows
    assert (row.attempts, row.estimated_attempts, row.unknown_attempts) == (1, 1, 0)
    assert (row.input_tokens, row.cached_input_tokens, row.cache_write_input_tokens) == (100, 60, 30)
    assert (row.output_tokens, row.reasoning_output_tokens, row.cost_usd_micros) == (50, 45, 0)


async def test_an_attempt_without_an_end_counts_its_maximum_until_it_is_known(
    tmp_path: Path, tls_dir: Path
) -> None:
    """A hang-up half way: what was used is billed once the router has told it, even after the seal."""
    cancelled = plan_pb2.RUN_OUTCOME_CANCELLED
    async with running_audit(tmp_path, tls_dir) as audit, _stub(audit, tls_dir) as stub:
        await audit.run("run_1", until="open")
        await audit.call("router", "BeginAttempt", begin_request("att_1", "run_1"))
        await audit.call("gateway", "Seal", seal_request("run_1", outcome=cancelled))
        unknown = (await _read(stub)).rows[-1]
        assert (unknown.attempts, unknown.unknown_attempts, unknown.cost_usd_micros) == (1, 1, 100)
        end = end_request("att_1", "run_1", outcome=plan_pb2.ATTEMPT_OUTCOME_CANCELLED, cost_usd_micros=33)
        assert (await audit.call("router", "EndAttempt", end)).late
        answer = await _read(stub)
    known = answer.rows[-1]
    assert (known.attempts, known.unknown_attempts, known.cost_usd_micros) == (1, 0, 33)
    assert (known.input_tokens, known.output_tokens) == (10, 20)
    assert answer.money.settled_usd_micros == 33


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"tenant_id": ""}, "tenant_id"),
        ({"first_day": "2026-13-01"}, "first_day"),
        ({"last_day": "yesterday"}, "last_day"),
        ({"first_day": "2026-01-01", "last_day": "2026-12-31"}, "first_day"),
        ({"first_day": "2026-02-02", "last_day": "2026-02-01"}, "first_day"),
    ],
)
async def test_a_question_that_makes_no_sense_names_its_field(
    tmp_path: Path, tls_dir: Path, changes: dict[str, str], param: str
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit, _stub(audit, tls_dir) as stub:
        with pytest.raises(PodiumError) as caught:
            await _read(stub, **changes)
    assert (caught.value.code, caught.value.param) == (Code.INVALID_REQUEST, param)
