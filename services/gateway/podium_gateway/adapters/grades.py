"""The grade port over audit: grades go there one by one, their tallies are looked at every few seconds."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import grpc

from podium.audit.v1 import grade_service_pb2 as pb
from podium.audit.v1 import grade_service_pb2_grpc
from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError
from podium_core.domain.gate import GradeTally
from podium_core.domain.ids import IdFactory
from podium_core.runtime.grpc_client import call_metadata
from podium_gateway.adapters.inside import Inside, asked_of_audit
from podium_gateway.ports import GradePort

_SERVICE = "audit"
_REFRESH_S = 5.0
_log = logging.getLogger(__name__)


class AuditGrades(GradePort):
    """Records grades in audit and keeps the tallies of the last look. Waits `wait_s` for an answer.

    It looks only while `is_wanted`: tallies matter to gated tenants alone.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        clock: Clock,
        ids: IdFactory,
        wait_s: float,
        is_wanted: Callable[[], bool],
    ) -> None:
        self._stub: grade_service_pb2_grpc.GradeServiceAsyncStub = grade_service_pb2_grpc.GradeServiceStub(
            channel
        )
        self._clock = clock
        self._ids = ids
        self._wait_s = wait_s
        self._is_wanted = is_wanted
        self._tallies: Mapping[str, Sequence[GradeTally]] = {}

    async def grade(
        self,
        tenant_id: str,
        run_id: str,
        principal_id: str,
        *,
        score_ppm: int,
        comment: str,
        of_any_key: bool = False,
    ) -> int:
        """Record a grade; return its leaf index."""
        request = pb.GradeRequest(
            event_id=self._ids.new("evt"),
            tenant_id=tenant_id,
            run_id=run_id,
            principal_id=principal_id,
            score_ppm=score_ppm,
            comment=comment,
            of_any_key=of_any_key,
        )
        metadata = call_metadata()
        answer = await asked_of_audit(
            lambda timeout: self._stub.Grade(request, timeout=timeout, metadata=metadata),
            budget_s=self._wait_s,
            clock=self._clock,
        )
        return int(answer.leaf_index)

    def tallies(self, tenant_id: str) -> Sequence[GradeTally]:
        """Return what the tenant's grades came to at the last look."""
        return self._tallies.get(tenant_id, ())

    async def keep(self) -> None:
        """Look until cancelled."""
        while True:
            if self._is_wanted():
                await self.refresh()
            await asyncio.sleep(_REFRESH_S)

    async def refresh(self) -> None:
        """Look once; a failure changes nothing."""
        try:
            with Inside(_SERVICE):
                answer = await self._stub.ListGradeTallies(pb.ListGradeTalliesRequest(), timeout=self._wait_s)
        except PodiumError as error:
            _log.warning("grades cannot be read", extra={"reason": error.reason})
            return
        tallies: dict[str, list[GradeTally]] = {}
        for row in answer.tallies:
            tallies.setdefault(row.tenant_id, []).append(
                GradeTally(row.tier, row.step_count, row.grade_count, row.sum_ppm, row.sum_squares_ppm)
            )
        self._tallies = tallies
