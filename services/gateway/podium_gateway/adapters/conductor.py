"""The planner port over the conductor service."""

import asyncio

import grpc

from podium.conductor.v1 import conductor_service_pb2, conductor_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan_prompt import FAST_TIER
from podium_core.orchestration.ports import (
    RUN_NOT_OPEN,
    PlanFailedError,
    PlannerPort,
    PlanQuery,
    PlanReply,
)
from podium_core.runtime.grpc_client import call_metadata
from podium_core.wire.plan_attempt import attempts_from_metadata
from podium_core.wire.plan_query import plan_query_to_proto, plan_reply_from_proto
from podium_gateway.adapters.inside import Inside

# Codes after which the runner falls back to a plan of its own.
_PASSED_ON = frozenset({Code.PLAN_INVALID, Code.DEADLINE, Code.UNAVAILABLE, Code.INTERNAL})

_SUCCESSOR_S = 2.0
"""How long a run waits for another conductor before it plans for itself."""


class ConductorPlanner(PlannerPort):
    """Asks the conductor for plans. `with_names` tells it who is behind the cards."""

    def __init__(self, channel: grpc.aio.Channel, *, with_names: bool = False) -> None:
        self._with_names = with_names
        self._opens_first = False
        self._channel = channel
        self._is_away = False
        self._stub: conductor_service_pb2_grpc.ConductorServiceAsyncStub = (
            conductor_service_pb2_grpc.ConductorServiceStub(channel)
        )

    @property
    def opens_first(self) -> bool:
        """Whether the conductor's last answer came from attempts of its own."""
        return self._opens_first

    async def plan(self, query: PlanQuery) -> PlanReply:
        """Return the conductor's plan; raise PodiumError (PLAN_INVALID, DEADLINE, UNAVAILABLE, INTERNAL)."""
        try:
            reply = plan_reply_from_proto(await self._asked(query), query.seed)
        except PodiumError as error:
            if error.reason == RUN_NOT_OPEN:
                self._opens_first = True
                raise
            if attempts := attempts_from_metadata(error.metadata):
                raise PlanFailedError(
                    error.code if error.code in _PASSED_ON else Code.PLAN_INVALID,
                    error.message,
                    reason=error.reason,
                    attempts=attempts,
                ) from None
            if error.code in _PASSED_ON:
                raise
            # Whatever else the conductor objects to, the client is not to blame and gets its answer.
            raise PodiumError(
                Code.PLAN_INVALID, "the conductor gave no usable plan", reason=error.reason
            ) from None
        if query.tier != FAST_TIER:  # which needs no attempt of anybody
            self._opens_first = bool(reply.attempts)
        return reply

    async def _asked(self, query: PlanQuery) -> conductor_service_pb2.PlanResponse:
        """Ask; when that broke off ask once more, and so another replica, if one is there or comes at once.

        Not where the conductor makes attempts of its own: those that it made would be made again.
        """
        request = plan_query_to_proto(query, with_names=self._with_names)
        until = asyncio.get_running_loop().time() + query.timeout_s
        try:
            answer = await self._planned(request, query.timeout_s)
        except PodiumError as error:
            if error.code is not Code.UNAVAILABLE or self._opens_first or not await self._successor():
                raise
            left_s = until - asyncio.get_running_loop().time()
            answer = await self._planned(request, max(left_s, 0.0))
        self._is_away = False
        return answer

    async def _successor(self) -> bool:
        """Return whether a conductor is connected, which may take a moment; only the first in a row waits."""
        if self._is_away:
            return False
        try:
            async with asyncio.timeout(_SUCCESSOR_S):
                await self._channel.channel_ready()
        except TimeoutError:
            self._is_away = True
        return not self._is_away

    async def _planned(
        self, request: conductor_service_pb2.PlanRequest, timeout_s: float
    ) -> conductor_service_pb2.PlanResponse:
        with Inside("conductor"):
            return await self._stub.Plan(request, timeout=timeout_s, metadata=call_metadata())
