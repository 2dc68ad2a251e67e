"""The limit service over gRPC: slices of tenants' and keys' limits for gateways."""

from collections.abc import Mapping
from typing import Any, Final

import grpc

from podium.audit.v1 import limit_service_pb2 as pb
from podium.audit.v1 import limit_service_pb2_grpc
from podium_audit.records.limits import check_amount, check_id
from podium_audit.slices import Lease, Meters, Wanted, Wish
from podium_core.domain.errors import invalid
from podium_core.domain.limits import LimitKind
from podium_core.wire.limits import limit_name_from_proto

PERMISSIONS: Final[Mapping[str, frozenset[str]]] = {
    "/podium.audit.v1.LimitService/LeaseSlices": frozenset({"gateway"}),
}
"""Who may call what."""

_MAX_SLICES: Final = 1_024
_NS_PER_MS: Final = 1_000_000

_Context = grpc.aio.ServicerContext[Any, Any]


class LimitServicer(limit_service_pb2_grpc.LimitServiceServicer):
    """One instance serves every call."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters

    async def LeaseSlices(  # noqa: N802 - named by the contract
        self,
        request: pb.LeaseSlicesRequest,
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.LeaseSlicesResponse:
        """Book what was used and hand out new slices."""
        check_id("holder_id", request.holder_id)
        if len(request.slices) > _MAX_SLICES:
            raise invalid(f"lease at most {_MAX_SLICES} slices at once", param="slices")
        wishes = [_wish(wish) for wish in request.slices]
        leases = await self._meters.lease(request.holder_id, wishes)
        valid_ms = self._meters.valid_ns // _NS_PER_MS
        return pb.LeaseSlicesResponse(slices=[_slice(lease, valid_ms) for lease in leases])


def _slice(lease: Lease, valid_ms: int) -> pb.Slice:
    limit, granted = lease
    return pb.Slice(
        granted=granted.granted,
        valid_ms=valid_ms,
        is_limited=limit is not None,
        limit=limit or 0,
        left=granted.left,
        reset_ms=-(-granted.reset_ns // _NS_PER_MS),
        retry_after_ms=-(-(granted.retry_after_ns or 0) // _NS_PER_MS),
    )


def _wish(message: pb.SliceRequest) -> Wish:
    """Return what is asked; raise PodiumError (INVALID_REQUEST) for what no gateway can mean."""
    name = limit_name_from_proto(message.limit)
    check_id("limit.tenant_id", name.tenant_id)
    wanted = Wanted(
        used_total=message.used_total,
        reported_total=message.reported_total,
        in_use=message.in_use,
        needed=message.needed,
        wanted=message.wanted,
    )
    for field in ("used_total", "reported_total", "in_use", "needed", "wanted"):
        check_amount(field, getattr(wanted, field))
    if not wanted.needed <= wanted.wanted or (name.kind is LimitKind.RUNS and wanted.in_use > wanted.wanted):
        raise invalid("wanted must not be less than needed, or than the runs under way", param="wanted")
    return name, wanted
