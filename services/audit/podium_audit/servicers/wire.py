"""Requests on the wire to commands. Shared domain types are translated by podium_core.wire."""

from collections.abc import Iterable
from hashlib import sha256

from google.protobuf.message import Message

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import grade_service_pb2, stop_service_pb2
from podium_audit.records import commands
from podium_audit.records.commands import BodyPiece, Event, Part, PlanEvidence, WorkerChance
from podium_core.domain.errors import invalid
from podium_core.domain.usage import Usage, UsageSource
from podium_core.wire.plan import plan_from_proto
from podium_core.wire.run import (
    ATTEMPT_KIND,
    ATTEMPT_OUTCOME,
    RUN_KIND,
    RUN_OUTCOME,
    caps_from_proto,
    verdicts_from_proto,
)
from podium_core.wire.usage import usage_from_proto

_UNKNOWN_USAGE = Usage(source=UsageSource.UNKNOWN)


def open_run(request: pb.OpenRunRequest, service: str) -> commands.OpenRun:
    """Return the command; raise PodiumError (INVALID_REQUEST) for values that no version knows."""
    return commands.OpenRun(
        event=_event(request.event_id, request, service),
        run_id=request.run_id,
        kind=RUN_KIND.from_proto(request.kind),
        tenant_id=request.tenant_id,
        principal_id=request.principal_id,
        requested_model=request.requested_model,
        verdicts=verdicts_from_proto(request.verdicts),
        caps=caps_from_proto(request.caps),
        plan=_plan(request.plan) if request.HasField("plan") else None,
        contents=_parts(request.contents),
        pool_digest=request.pool_digest,
        price_digest=request.price_digest,
        policy_digest=request.policy_digest,
        trace_id=request.trace_id,
        lease_ms=request.lease_ms,
        refusal_reason=request.refusal_reason,
        continues_run_id=request.continues_run_id,
        subject=request.subject_id,
        tenant_budget_usd_micros=request.tenant_budget_usd_micros if request.has_tenant_budget else None,
        key_budget_usd_micros=(
            request.key_budget_usd_micros if request.HasField("key_budget_usd_micros") else None
        ),
    )


def append(request: pb.AppendRequest, service: str) -> commands.AppendPlan | commands.AppendNote:
    """Return the command; raise PodiumError (INVALID_REQUEST) when there is no record in it."""
    event = _event(request.event_id, request, service)
    contents = _parts(request.contents)
    match request.WhichOneof("record"):
        case "plan":
            return commands.AppendPlan(event, request.run_id, _plan(request.plan), contents)
        case "note":
            note = request.note
            return commands.AppendNote(event, request.run_id, note.kind, dict(note.facts), contents)
        case _:
            raise invalid("append a plan or a note", param="record")


def put_content(header: pb.PutContentHeader, data: bytes, service: str) -> commands.PutContent:
    """Return the command for content that has arrived whole."""
    digest = sha256(_request_digest(header) + data).digest()
    part = Part(header.part_id, header.name, header.media_type, data)
    return commands.PutContent(Event(header.event_id, digest, service), header.run_id, part)


def begin_attempt(request: pb.BeginAttemptRequest, service: str) -> commands.BeginAttempt:
    """Return the command; raise PodiumError (INVALID_REQUEST) for values that no version knows."""
    return commands.BeginAttempt(
        event=_event(request.attempt_id, request, service),
        run_id=request.run_id,
        kind=ATTEMPT_KIND.from_proto(request.kind),
        round=request.round,
        step_index=request.step_index,
        worker_id=request.worker_id,
        provider=request.provider,
        provider_model=request.provider_model,
        region=request.region,
        endpoint_host=request.endpoint_host,
        seen_steps=tuple(request.seen_steps),
        sees_previous_round=request.sees_previous_round,
        body=tuple([BodyPiece(piece.part_id, piece.inline) for piece in request.body]),
        body_sha256=request.body_sha256,
        max_cost_usd_micros=request.max_cost_usd_micros,
        price_digest=request.price_digest,
        pool_digest=request.pool_digest,
    )


def end_attempt(request: pb.EndAttemptRequest, service: str) -> commands.EndAttempt:
    """Return the command; raise PodiumError (INVALID_REQUEST) for values that no version knows."""
    return commands.EndAttempt(
        event=_event(request.event_id, request, service),
        attempt_id=request.attempt_id,
        run_id=request.run_id,
        outcome=ATTEMPT_OUTCOME.from_proto(request.outcome),
        usage=usage_from_proto(request.usage) if request.HasField("usage") else _UNKNOWN_USAGE,
        cost_usd_micros=request.cost_usd_micros,
        latency_us=request.latency_us,
        finish_reason=request.finish_reason,
        error_reason=request.error_reason,
        provider_response_id=request.provider_response_id,
        served_model=request.served_model,
        dispatched=request.dispatched,
        contents=_parts(request.contents),
    )


def seal(request: pb.SealRequest, service: str) -> commands.Seal:
    """Return the command; raise PodiumError (INVALID_REQUEST) for values that no version knows."""
    return commands.Seal(
        event=_event(request.event_id, request, service),
        run_id=request.run_id,
        outcome=RUN_OUTCOME.from_proto(request.outcome),
        error_reason=request.error_reason,
        contents=_parts(request.contents),
    )


def stop_run(request: stop_service_pb2.RequestStopRequest, service: str) -> commands.StopRun:
    """Return the command that stops a run."""
    event = _event(request.event_id, request, service)
    return commands.StopRun(event, request.run_id, request.tenant_id, request.principal_id)


def set_stop(
    request: stop_service_pb2.RequestStopRequest | stop_service_pb2.ClearStopRequest,
    worker_id: str,
    service: str,
) -> commands.SetStop:
    """Return the command that stops a worker (empty: every worker), or clears that."""
    event = _event(request.event_id, request, service)
    stands = isinstance(request, stop_service_pb2.RequestStopRequest)
    return commands.SetStop(event, request.tenant_id, worker_id, request.principal_id, stands)


def grade(request: grade_service_pb2.GradeRequest, service: str) -> commands.Grade:
    """Return the command that grades a run."""
    event = _event(request.event_id, request, service)
    return commands.Grade(
        event,
        request.run_id,
        request.tenant_id,
        request.principal_id,
        request.score_ppm,
        request.comment,
        request.of_any_key,
    )


def receipt(run_id: str, applied: commands.Applied) -> pb.Receipt:
    """Return what the client keeps."""
    return pb.Receipt(run_id=run_id, leaf_indices=applied.run_leaf_indices, checkpoint=applied.checkpoint)


def budget_state(money: commands.TenantMoney, warn_percent: int) -> pb.BudgetState:
    """Return what a sealed run's tenant, or its key, has spent of its budget."""
    return pb.BudgetState(
        tenant_id=money.tenant_id,
        month=money.month,
        budget_usd_micros=money.budget_usd_micros or 0,
        settled_usd_micros=money.settled_usd_micros,
        reserved_usd_micros=money.reserved_usd_micros,
        warn_percent=warn_percent,
        principal_id=money.key_id,
    )


def _event(event_id: str, request: Message, service: str) -> Event:
    return Event(event_id, _request_digest(request), service)


def _request_digest(request: Message) -> bytes:
    name = request.DESCRIPTOR.full_name.encode()
    return sha256(name + b"\x00" + request.SerializeToString(deterministic=True)).digest()


def _parts(contents: Iterable[pb.Content]) -> tuple[Part, ...]:
    return tuple([Part(part.part_id, part.name, part.media_type, part.data) for part in contents])


def _plan(record: pb.PlanRecord) -> PlanEvidence:
    return PlanEvidence(
        plan=plan_from_proto(record.plan),
        model_digest=record.model_digest,
        choices=tuple(
            (
                choice.step_index,
                tuple(
                    WorkerChance(chance.worker_id, chance.raw_ppm, chance.eligible_ppm)
                    for chance in choice.chances
                ),
            )
            for choice in record.choices
        ),
        usage=usage_from_proto(record.usage) if record.HasField("usage") else Usage(),
        seed=record.seed,
        generation_count=record.generation_count,
        fallback_reason=record.fallback_reason,
        tokenizer_digest=record.tokenizer_digest,
        template_digest=record.template_digest,
    )
