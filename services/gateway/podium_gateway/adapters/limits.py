"""The limit port over audit's limit service."""

from collections.abc import Sequence

import grpc

from podium.audit.v1 import limit_service_pb2, limit_service_pb2_grpc
from podium_core.domain.clock import Clock
from podium_core.runtime.grpc_client import call_metadata
from podium_core.wire.limits import limit_name_to_proto
from podium_gateway.adapters.inside import asked_of_audit
from podium_gateway.ports import Slice, SliceRequest


class AuditLimits:
    """Leases slices from audit as `holder_id`, which is this process's alone."""

    def __init__(self, channel: grpc.aio.Channel, holder_id: str, clock: Clock, *, wait_s: float) -> None:
        self._stub: limit_service_pb2_grpc.LimitServiceAsyncStub = limit_service_pb2_grpc.LimitServiceStub(
            channel
        )
        self._holder_id = holder_id
        self._clock = clock
        self._wait_s = wait_s

    async def lease(self, wanted: Sequence[SliceRequest]) -> Sequence[Slice]:
        """Return one slice for each request; raise PodiumError: AUDIT_UNAVAILABLE without an answer."""
        request = limit_service_pb2.LeaseSlicesRequest(
            holder_id=self._holder_id, slices=[_to_proto(slice_) for slice_ in wanted]
        )
        metadata = call_metadata()
        answer = await asked_of_audit(
            lambda timeout: self._stub.LeaseSlices(request, timeout=timeout, metadata=metadata),
            budget_s=self._wait_s,
            clock=self._clock,
        )
        return [_from_proto(slice_) for slice_ in answer.slices]


def _to_proto(request: SliceRequest) -> limit_service_pb2.SliceRequest:
    return limit_service_pb2.SliceRequest(
        limit=limit_name_to_proto(request.name),
        used_total=request.used_total,
        reported_total=request.reported_total,
        in_use=request.in_use,
        needed=request.needed,
        wanted=request.wanted,
    )


def _from_proto(message: limit_service_pb2.Slice) -> Slice:
    return Slice(
        granted=message.granted,
        valid_ms=message.valid_ms,
        limit=message.limit if message.is_limited else None,
        left=message.left,
        reset_ms=message.reset_ms,
        retry_after_ms=message.retry_after_ms,
    )
