"""The grade service over gRPC: grades come in through the gateway, and their tallies go back to it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc

from podium.audit.v1 import grade_service_pb2 as pb
from podium.audit.v1 import grade_service_pb2_grpc
from podium_audit.log.group_commit import GroupCommit
from podium_audit.records import limits
from podium_audit.rules.grades import Tallies
from podium_audit.servicers import wire
from podium_core.runtime.identity import caller_of

_PREFIX: Final = "/podium.audit.v1.GradeService/"

PERMISSIONS: Final[Mapping[str, frozenset[str]]] = {
    f"{_PREFIX}Grade": frozenset({"gateway"}),
    f"{_PREFIX}ListGradeTallies": frozenset({"gateway"}),
}

_Context = grpc.aio.ServicerContext[Any, Any]


class GradeServicer(grade_service_pb2_grpc.GradeServiceServicer):
    """One instance serves every call. `tallies` returns what grades come to at this moment."""

    def __init__(self, commit: GroupCommit, tallies: Callable[[], Tallies]) -> None:
        self._commit = commit
        self._tallies = tallies

    async def Grade(self, request: pb.GradeRequest, context: _Context) -> pb.GradeResponse:  # noqa: N802
        """Record a grade."""
        limits.check_id("run_id", request.run_id)
        applied = await self._commit.submit(wire.grade(request, caller_of(context)))
        return pb.GradeResponse(leaf_index=applied.leaf_indices[0])

    async def ListGradeTallies(  # noqa: N802
        self,
        request: pb.ListGradeTalliesRequest,  # noqa: ARG002 - gRPC's signature
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.ListGradeTalliesResponse:
        """Return the tallies."""
        rows = self._tallies().values()
        return pb.ListGradeTalliesResponse(tallies=[pb.GradeTally(**row._asdict()) for row in rows])
