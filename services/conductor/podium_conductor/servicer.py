"""ConductorService over gRPC: translates and delegates."""

from typing import TYPE_CHECKING, Any

import grpc

from podium.conductor.v1 import conductor_service_pb2 as pb
from podium.conductor.v1 import conductor_service_pb2_grpc
from podium_conductor.planning import Planning
from podium_core.domain.plan_prompt import FAST_TIER
from podium_core.orchestration.ports import PlanFailedError
from podium_core.wire.plan import PLAN_SOURCE
from podium_core.wire.plan_attempt import attempts_to_metadata
from podium_core.wire.plan_query import plan_query_from_proto, plan_reply_to_proto

_CALLERS = frozenset({"gateway", "cli"})

PERMISSIONS = {
    "/podium.conductor.v1.ConductorService/Plan": _CALLERS,
    "/podium.conductor.v1.ConductorService/Describe": _CALLERS,
}
"""Who may call what."""

if TYPE_CHECKING:  # at run time gRPC's context is no generic class
    _Context = grpc.aio.ServicerContext[Any, Any]


class ConductorServicer(conductor_service_pb2_grpc.ConductorServiceServicer):
    """Serves plans. `max_plan_s` stands in for the deadline of a call that has none."""

    def __init__(self, planning: Planning, max_plan_s: float) -> None:
        self._planning = planning
        self._max_plan_s = max_plan_s

    async def Plan(  # noqa: N802 - named by the contract
        self, request: pb.PlanRequest, context: "_Context"
    ) -> pb.PlanResponse:
        """Write one plan for one round."""
        left_s = context.time_remaining()
        query = plan_query_from_proto(request, self._max_plan_s if left_s is None else left_s)
        try:
            return plan_reply_to_proto(await self._planning.plan(query))
        except PlanFailedError as error:
            error.metadata.update(attempts_to_metadata(error.attempts))
            raise

    async def Describe(  # noqa: N802 - named by the contract
        self,
        request: pb.DescribeRequest,  # noqa: ARG002
        context: "_Context",  # noqa: ARG002
    ) -> pb.DescribeResponse:
        """Say what is loaded."""
        described = self._planning.describe()
        return pb.DescribeResponse(
            engine=described.engine,
            source=PLAN_SOURCE.to_proto(described.source),
            model_digest=described.model_digest,
            tokenizer_digest=described.tokenizer_digest,
            template_digest=described.template_digest,
            max_steps=self._planning.max_steps,
            tiers=(*described.tiers, FAST_TIER) if FAST_TIER not in described.tiers else described.tiers,
            has_probabilities=described.has_probabilities,
            makes_attempts=described.makes_attempts,
        )
