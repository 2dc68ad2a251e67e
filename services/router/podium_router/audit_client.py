"""The audit service as attempts use it, over gRPC."""

import asyncio
from dataclasses import replace

import grpc

from podium.audit.v1 import audit_service_pb2 as pb
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.audit_stream import AuditStream
from podium_core.runtime.grpc_client import call_metadata, retry_unary
from podium_core.wire.run import ATTEMPT_KIND, ATTEMPT_OUTCOME
from podium_core.wire.usage import usage_to_proto
from podium_router.calls import AttemptBegin, AttemptEnd, Piece

_SERVICE = "audit"
_NS_PER_S = 1_000_000_000
_NOT_KEPT = "CONTENT_NOT_KEPT"
_NO_ANSWER = frozenset({Code.DEADLINE, Code.CANCELLED, Code.UNAVAILABLE})


class GrpcAudit:
    """Begins and ends attempts. Both calls are idempotent, so a restart of audit is waited out."""

    def __init__(self, channel: grpc.aio.Channel, clock: Clock, *, end_budget_s: float) -> None:
        self._stream = AuditStream(channel)
        self._clock = clock
        self._end_budget_s = end_budget_s

    async def close(self) -> None:
        """Let go of the stream."""
        await self._stream.close()

    async def begin(self, begin: AttemptBegin, timeout_s: float) -> int:
        """Commit the attempt and return its leaf index: the permit. Raises PodiumError.

        Where the log stores no content it knows parts by name only at the replica that took them, until the
        run ends; elsewhere, and after a restart, it is sent the bytes themselves.
        """
        end_ns = self._clock.monotonic_ns() + int(timeout_s * _NS_PER_S)
        try:
            return await self._begin(_begin_to_proto(begin), timeout_s)
        except PodiumError as error:
            if error.reason != _NOT_KEPT or not any(piece.part_id for piece in begin.body):
                raise
        in_full = replace(begin, body=tuple(Piece("", piece.data) for piece in begin.body))
        left_s = (end_ns - self._clock.monotonic_ns()) / _NS_PER_S
        return await self._begin(_begin_to_proto(in_full), left_s)

    async def _begin(self, request: pb.BeginAttemptRequest, timeout_s: float) -> int:
        metadata = call_metadata()
        try:
            response = await retry_unary(
                lambda left_s: self._stream.BeginAttempt(request, timeout=left_s, metadata=metadata),
                service=_SERVICE,
                budget_s=timeout_s,
                clock=self._clock,
            )
        except PodiumError as error:
            if error.code in _NO_ANSWER:
                raise PodiumError(
                    Code.AUDIT_UNAVAILABLE,
                    "the audit log did not permit the attempt in time, so nothing was sent",
                    reason="PERMIT_TIMEOUT",
                ) from None
            raise
        return response.leaf_index

    async def end(self, end: AttemptEnd, sent: asyncio.Event) -> None:
        """Commit the end; set `sent` as soon as the first request is on its way. Raises PodiumError."""
        request = _end_to_proto(end)
        metadata = call_metadata()

        async def call(left_s: float) -> pb.EndAttemptResponse:
            pending = self._stream.EndAttempt(request, timeout=left_s, metadata=metadata)
            sent.set()
            return await pending

        await retry_unary(call, service=_SERVICE, budget_s=self._end_budget_s, clock=self._clock)


def _begin_to_proto(begin: AttemptBegin) -> pb.BeginAttemptRequest:
    call = begin.call
    return pb.BeginAttemptRequest(
        attempt_id=call.attempt_id,
        run_id=call.run_id,
        kind=ATTEMPT_KIND.to_proto(call.kind),
        round=call.round,
        step_index=call.step_index,
        worker_id=call.worker_id,
        provider=begin.provider,
        provider_model=begin.provider_model,
        region=begin.region,
        endpoint_host=begin.endpoint_host,
        seen_steps=call.seen_steps,
        sees_previous_round=call.sees_previous_round,
        body=[_piece_to_proto(piece) for piece in begin.body],
        max_cost_usd_micros=begin.max_cost_usd_micros,
        price_digest=begin.price_digest,
        pool_digest=call.pool_digest,
        body_sha256=begin.body_sha256,
        dispatch_id=begin.dispatch_id,
    )


def _piece_to_proto(piece: Piece) -> pb.BodyPart:
    return pb.BodyPart(part_id=piece.part_id) if piece.part_id else pb.BodyPart(inline=piece.data)


def _end_to_proto(end: AttemptEnd) -> pb.EndAttemptRequest:
    return pb.EndAttemptRequest(
        event_id=f"{end.attempt_id}.end",
        attempt_id=end.attempt_id,
        run_id=end.run_id,
        outcome=ATTEMPT_OUTCOME.to_proto(end.outcome),
        usage=usage_to_proto(end.usage),
        cost_usd_micros=end.cost_usd_micros,
        latency_us=end.latency_us,
        finish_reason=end.finish_reason,
        error_reason=end.error_reason,
        provider_response_id=end.provider_response_id,
        served_model=end.served_model,
        dispatched=end.dispatched,
        contents=[
            pb.Content(
                part_id=content.part_id,
                name=content.name,
                media_type=content.media_type,
                data=content.data,
            )
            for content in end.contents
        ],
    )
