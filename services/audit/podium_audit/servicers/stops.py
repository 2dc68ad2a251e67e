"""The stop service over gRPC: an operator may stop anything, a gateway one tenant's runs."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc

from podium.audit.v1 import stop_service_pb2 as pb
from podium.audit.v1 import stop_service_pb2_grpc
from podium_audit.log.group_commit import GroupCommit
from podium_audit.records import limits
from podium_audit.rules.stops import Standing
from podium_audit.servicers import wire
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.runtime.identity import caller_of

_PREFIX: Final = "/podium.audit.v1.StopService/"
_OPERATOR: Final = "cli"

PERMISSIONS: Final[Mapping[str, frozenset[str]]] = {
    f"{_PREFIX}RequestStop": frozenset({_OPERATOR, "gateway"}),
    f"{_PREFIX}ClearStop": frozenset({_OPERATOR}),
    f"{_PREFIX}ListStops": frozenset({_OPERATOR, "gateway"}),
}

_Context = grpc.aio.ServicerContext[Any, Any]


class StopServicer(stop_service_pb2_grpc.StopServiceServicer):
    """One instance serves every call. `standing` returns the stops of this moment."""

    def __init__(self, commit: GroupCommit, standing: Callable[[], Standing]) -> None:
        self._commit = commit
        self._standing = standing

    async def RequestStop(  # noqa: N802
        self, request: pb.RequestStopRequest, context: _Context
    ) -> pb.RequestStopResponse:
        """Record a stop."""
        caller = caller_of(context)
        if caller != _OPERATOR and not (request.tenant_id and request.run_id):
            raise PodiumError(
                Code.POLICY_DENIED,
                f"{caller} may stop one tenant's run, nothing else: name both",
                reason="CALLER_NOT_ALLOWED",
            )
        if request.WhichOneof("target") == "run_id":
            limits.check_id("run_id", request.run_id)
            applied = await self._commit.submit(wire.stop_run(request, caller))
        else:
            applied = await self._commit.submit(wire.set_stop(request, _worker_of(request), caller))
        return pb.RequestStopResponse(leaf_index=applied.leaf_indices[0])

    async def ClearStop(self, request: pb.ClearStopRequest, context: _Context) -> pb.ClearStopResponse:  # noqa: N802
        """Record that a stop ends."""
        command = wire.set_stop(request, _worker_of(request), caller_of(context))
        applied = await self._commit.submit(command)
        return pb.ClearStopResponse(leaf_index=applied.leaf_indices[0])

    async def ListStops(  # noqa: N802
        self,
        request: pb.ListStopsRequest,  # noqa: ARG002 - gRPC's signature
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.ListStopsResponse:
        """Return the stops that stand."""
        return pb.ListStopsResponse(
            stops=[
                pb.Stop(tenant_id=tenant_id, worker_id=worker_id, since_us=since_us)
                for (tenant_id, worker_id), since_us in sorted(self._standing().items())
            ]
        )


def _worker_of(request: pb.RequestStopRequest | pb.ClearStopRequest) -> str:
    """Return the worker in question; empty for everything."""
    if request.worker_id:
        return request.worker_id
    if not request.everything:
        raise invalid("name what is meant: a run, a worker, or everything", param="target")
    return ""
