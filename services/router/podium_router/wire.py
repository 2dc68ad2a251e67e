"""Requests on the wire to attempts, and what happens to them back to the wire."""

import json
import re

from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import invalid
from podium_core.domain.run import AttemptKind
from podium_core.wire.run import ATTEMPT_KIND
from podium_core.wire.usage import usage_to_proto
from podium_router.calls import Call, Delta, Piece
from podium_router.outbox import Completed, Permitted

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def event_to_proto(event: Permitted | Delta | Completed) -> pb.CompleteResponse:
    """Return what the caller is told of an event."""
    if isinstance(event, Delta):
        return pb.CompleteResponse(delta=_delta_to_proto(event))
    if isinstance(event, Permitted):
        return pb.CompleteResponse(permitted=pb.Permitted(leaf_index=event.leaf_index))
    return pb.CompleteResponse(completed=_completed_to_proto(event))


def _check_ids(request: pb.CompleteRequest | pb.EmbedRequest) -> None:
    for name, value in (("attempt_id", request.attempt_id), ("run_id", request.run_id)):
        if not _ID.fullmatch(value):
            raise invalid(
                f"{name} must be 1 to 128 letters, digits, dots, colons, dashes or underscores", param=name
            )


def embedding_call_of(request: pb.EmbedRequest) -> Call:
    """Return the attempt that is asked for; raise PodiumError (INVALID_REQUEST)."""
    _check_ids(request)
    parameters = {"dimensions": request.dimensions} if request.dimensions else {}
    return Call(
        attempt_id=request.attempt_id,
        run_id=request.run_id,
        tenant_id=request.tenant_id,
        kind=AttemptKind.EMBED,
        round=0,
        step_index=0,
        worker_id=request.worker_id,
        pool_digest=request.pool_digest,
        messages=(Piece("", request.input_json),),
        parameters_json=json.dumps(parameters).encode() if parameters else b"",
        max_output_tokens=0,
        stream=False,
    )


def call_of(request: pb.CompleteRequest) -> Call:
    """Return the attempt that is asked for; raise PodiumError (INVALID_REQUEST)."""
    _check_ids(request)
    kind = ATTEMPT_KIND.from_proto(request.kind)
    if kind is AttemptKind.EMBED:
        raise invalid("embeddings are asked for with Embed", param="kind")
    if request.max_output_tokens == 0:
        raise invalid("max_output_tokens must be at least 1", param="max_output_tokens")
    return Call(
        attempt_id=request.attempt_id,
        run_id=request.run_id,
        tenant_id=request.tenant_id,
        kind=kind,
        round=request.round,
        step_index=request.step_index,
        worker_id=request.worker_id,
        pool_digest=request.pool_digest,
        messages=tuple([Piece(segment.part_id, segment.data) for segment in request.messages]),
        parameters_json=request.parameters_json,
        max_output_tokens=request.max_output_tokens,
        stream=request.stream,
        seen_steps=tuple(request.seen_steps),
        sees_previous_round=request.sees_previous_round,
    )


def _delta_to_proto(delta: Delta) -> pb.Delta:
    return pb.Delta(
        text=delta.text,
        reasoning=delta.reasoning,
        tool_calls_json=_json(delta.tool_calls),
        refusal=delta.refusal,
        logprobs_json=_json(delta.logprobs),
    )


def _json(items: tuple[dict[str, object], ...]) -> bytes:
    return json.dumps(items, separators=(",", ":")).encode() if items else b""


def embedded_to_proto(completed: Completed, leaf_index: int) -> pb.EmbedResponse:
    """Return the vectors."""
    return pb.EmbedResponse(
        leaf_index=leaf_index,
        vectors=completed.vectors,
        usage=usage_to_proto(completed.usage),
        cost_usd_micros=completed.cost_usd_micros,
        latency_us=completed.latency_us,
        provider_response_id=completed.provider_response_id,
        served_model=completed.served_model,
    )


def _completed_to_proto(completed: Completed) -> pb.Completed:
    return pb.Completed(
        finish_reason=completed.finish_reason,
        usage=usage_to_proto(completed.usage),
        cost_usd_micros=completed.cost_usd_micros,
        latency_us=completed.latency_us,
        first_delta_us=completed.first_delta_us,
        provider_response_id=completed.provider_response_id,
        served_model=completed.served_model,
        message=_delta_to_proto(completed.message),
        replay_message_json=completed.replay_message,
    )
