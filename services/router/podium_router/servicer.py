"""RouterService over gRPC: translates and delegates."""

import json
import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import grpc

from podium.router.v1 import router_service_pb2 as pb
from podium.router.v1 import router_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.run import AttemptKind
from podium_core.runtime.identity import caller_of
from podium_core.wire.pool import pool_to_proto
from podium_core.wire.run import ATTEMPT_KIND
from podium_core.wire.usage import usage_to_proto
from podium_router.calls import Call, Delta, Piece
from podium_router.catalog import Catalog
from podium_router.dispatch import Dispatcher
from podium_router.outbox import Completed, Permitted

_COMPLETE = "/podium.router.v1.RouterService/Complete"
_EMBED = "/podium.router.v1.RouterService/Embed"
_LIST_WORKERS = "/podium.router.v1.RouterService/ListWorkers"
_CALLERS = frozenset({"gateway", "conductor", "cli"})

PERMISSIONS = {_COMPLETE: _CALLERS, _EMBED: frozenset({"gateway"}), _LIST_WORKERS: _CALLERS}
"""Who may call what; what kind of attempt a caller may make is the servicer's own check."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")

if TYPE_CHECKING:  # at run time gRPC's context is no generic class
    _Context = grpc.aio.ServicerContext[Any, Any]


class RouterServicer(router_service_pb2_grpc.RouterServiceServicer):
    """Serves attempts and the list of workers. `allow_cli` lets the command line make attempts."""

    def __init__(self, dispatcher: Dispatcher, catalog: Catalog, *, allow_cli: bool) -> None:
        self._dispatcher = dispatcher
        self._catalog = catalog
        self._allow_cli = allow_cli

    async def Complete(  # noqa: N802 - named by the contract
        self, request: pb.CompleteRequest, context: "_Context"
    ) -> AsyncGenerator[pb.CompleteResponse, None]:
        """Perform one attempt and send its events."""
        call = _call_of(request)
        self._check_caller(caller_of(context), call.kind)
        running = self._dispatcher.start(call, context.time_remaining())
        try:
            while True:
                event = await running.outbox.take()
                if isinstance(event, Delta):
                    yield pb.CompleteResponse(delta=_delta_to_proto(event))
                elif isinstance(event, Permitted):
                    yield pb.CompleteResponse(permitted=pb.Permitted(leaf_index=event.leaf_index))
                else:
                    yield pb.CompleteResponse(completed=_completed_to_proto(event))
                    return
        finally:
            running.abandon()

    async def Embed(  # noqa: N802 - named by the contract
        self, request: pb.EmbedRequest, context: "_Context"
    ) -> pb.EmbedResponse:
        """Perform one attempt for vectors."""
        running = self._dispatcher.start(_embedding_call_of(request), context.time_remaining())
        leaf_index = 0
        try:
            while True:
                event = await running.outbox.take()
                if isinstance(event, Permitted):
                    leaf_index = event.leaf_index
                elif isinstance(event, Completed):
                    return _embedded_to_proto(event, leaf_index)
        finally:
            running.abandon()

    async def ListWorkers(  # noqa: N802 - named by the contract
        self,
        request: pb.ListWorkersRequest,  # noqa: ARG002
        context: "_Context",  # noqa: ARG002
    ) -> pb.ListWorkersResponse:
        """Return the pool as it is now."""
        return pool_to_proto(self._catalog.pool())

    def _check_caller(self, caller: str, kind: AttemptKind) -> None:
        if caller == "gateway":
            return
        if caller == "conductor" and kind is AttemptKind.PLAN:
            return
        if caller == "cli" and self._allow_cli:
            return
        raise PodiumError(
            Code.POLICY_DENIED,
            f"{caller} may not make attempts of kind {kind.value}",
            reason="CALLER_NOT_ALLOWED",
        )


def _check_ids(request: pb.CompleteRequest | pb.EmbedRequest) -> None:
    for name, value in (("attempt_id", request.attempt_id), ("run_id", request.run_id)):
        if not _ID.fullmatch(value):
            raise invalid(
                f"{name} must be 1 to 128 letters, digits, dots, colons, dashes or underscores", param=name
            )


def _embedding_call_of(request: pb.EmbedRequest) -> Call:
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


def _call_of(request: pb.CompleteRequest) -> Call:
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


def _embedded_to_proto(completed: Completed, leaf_index: int) -> pb.EmbedResponse:
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
