"""Requests to commands: digests that tell requests apart, and what is refused."""

from typing import Any

import pytest

from podium.audit.v1 import audit_service_pb2 as pb
from podium.plan.v1 import plan_pb2
from podium_audit.records.commands import AppendNote, AppendPlan, Part, WorkerChance
from podium_audit.servicers import wire
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import UsageSource
from tests.fakes.audit_service import begin_request, end_request, open_request, seal_request


def test_the_same_request_has_the_same_digest_and_another_has_not() -> None:
    first = wire.begin_attempt(begin_request("a", "run_1"), "router").event
    assert wire.begin_attempt(begin_request("a", "run_1"), "router").event == first
    changes: list[dict[str, Any]] = [{"dispatch_id": "other"}, {"max_cost_usd_micros": 1}, {"body": []}]
    for change in changes:
        changed = wire.begin_attempt(begin_request("a", "run_1", **change), "router")
        assert changed.event.digest != first.digest


def test_requests_of_different_types_never_share_a_digest() -> None:
    seal = wire.seal(pb.SealRequest(event_id="e", run_id="r", outcome=plan_pb2.RUN_OUTCOME_FAILED), "gateway")
    note = wire.append(pb.AppendRequest(event_id="e", run_id="r", note=pb.Note(kind="k")), "gateway")
    assert seal.event.digest != note.event.digest


def test_facts_of_a_note_in_any_order_are_the_same_request() -> None:
    one = pb.AppendRequest(event_id="e", note=pb.Note(kind="k", facts={"a": "1", "b": "2"}))
    two = pb.AppendRequest(event_id="e", note=pb.Note(kind="k", facts={"b": "2", "a": "1"}))
    assert wire.append(one, "gateway").event == wire.append(two, "gateway").event


def test_content_is_part_of_its_digest() -> None:
    header = pb.PutContentHeader(event_id="e", run_id="r", part_id="p", name="request", size_bytes=1)
    one, two = (wire.put_content(header, data, "gateway") for data in (b"1", b"2"))
    assert one.event.digest != two.event.digest
    assert one.part == Part("p", "request", "", b"1")


def test_a_plan_arrives_with_its_evidence() -> None:
    record = pb.PlanRecord(
        plan=open_request("r").plan.plan,
        model_digest="digest",
        choices=[
            plan_pb2.StepChoice(
                step_index=1, chances=[plan_pb2.WorkerChance(worker_id="w", raw_ppm=2, eligible_ppm=3)]
            )
        ],
        seed=2**64 - 1,
        generation_count=4,
        fallback_reason="WHY",
    )
    command = wire.append(pb.AppendRequest(event_id="e", run_id="r", plan=record), "gateway")
    assert isinstance(command, AppendPlan)
    assert command.plan.choices == ((1, (WorkerChance("w", 2, 3),)),)
    assert (command.plan.seed, command.plan.generation_count) == (2**64 - 1, 4)
    assert (command.plan.model_digest, command.plan.fallback_reason) == ("digest", "WHY")


def test_an_unset_budget_is_no_budget_and_zero_is_one() -> None:
    assert wire.open_run(open_request("r"), "gateway").tenant_budget_usd_micros is None
    zero = open_request("r", has_tenant_budget=True)
    assert wire.open_run(zero, "gateway").tenant_budget_usd_micros == 0


def test_an_end_without_usage_is_an_end_of_unknown_usage() -> None:
    command = wire.end_attempt(end_request("a", "r", usage=None), "router")
    assert command.usage.source is UsageSource.UNKNOWN


def test_an_append_without_a_record_is_refused() -> None:
    with pytest.raises(PodiumError) as caught:
        wire.append(pb.AppendRequest(event_id="e", run_id="r"), "gateway")
    assert (caught.value.code, caught.value.param) == (Code.INVALID_REQUEST, "record")


def test_a_note_keeps_its_words() -> None:
    command = wire.append(
        pb.AppendRequest(event_id="e", note=pb.Note(kind="k", facts={"a": "1"})), "conductor"
    )
    assert isinstance(command, AppendNote)
    assert (command.kind, command.facts, command.event.service) == ("k", {"a": "1"}, "conductor")
    assert wire.seal(seal_request("r"), "gateway").settle_open is False
