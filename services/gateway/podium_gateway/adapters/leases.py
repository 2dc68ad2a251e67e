"""One task keeps every live run alive in the log, with one call per period for all of them."""

import asyncio
import logging
from collections.abc import Callable

import grpc

from podium.audit.v1 import audit_service_pb2, audit_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError
from podium_gateway.adapters.inside import Inside

_log = logging.getLogger(__name__)
_RENEWALS_PER_LEASE = 3
_MAX_PERIOD_S = 1.0
"""A stop is heard with a renewal, so it takes effect within this time."""

Stop = Callable[[PodiumError], None]


class Leases:
    """Renews the leases of opened runs. A run that is being sealed is renewed but no longer stopped."""

    def __init__(self, channel: grpc.aio.Channel, lease_s: float) -> None:
        self._stub: audit_service_pb2_grpc.AuditServiceAsyncStub = audit_service_pb2_grpc.AuditServiceStub(
            channel
        )
        self._lease_ms = int(lease_s * 1_000)
        self._period_s = min(lease_s / _RENEWALS_PER_LEASE, _MAX_PERIOD_S)
        self._stops: dict[str, Stop] = {}
        self._opened: set[str] = set()

    @property
    def lease_ms(self) -> int:
        """How long a run lives without renewal."""
        return self._lease_ms

    def track(self, run_id: str, stop: Stop) -> None:
        """Know how to stop a run, should it be lost."""
        self._stops[run_id] = stop

    def opened(self, run_id: str) -> None:
        """The log knows the run: renew it from now on."""
        self._opened.add(run_id)

    def sealing(self, run_id: str) -> None:
        """The run is being sealed: that the log calls it closed is no news."""
        self._stops.pop(run_id, None)

    def closed(self, run_id: str) -> None:
        """The run is sealed, or nobody will seal it any more."""
        self._opened.discard(run_id)

    def forget(self, run_id: str) -> None:
        """The run has ended, however it did."""
        self._stops.pop(run_id, None)
        self._opened.discard(run_id)

    async def keep(self) -> None:
        """Renew until cancelled."""
        while True:
            await asyncio.sleep(self._period_s)
            await self.renew()

    async def renew(self) -> None:
        """Renew once. A failure is logged: audit itself judges by the clock which runs have lapsed."""
        if not self._opened:
            return
        request = audit_service_pb2.RenewLeaseRequest(run_ids=self._opened, lease_ms=self._lease_ms)
        try:
            with Inside("audit"):
                answer = await self._stub.RenewLease(request, timeout=self._period_s)
        except PodiumError as error:
            _log.warning("leases cannot be renewed", extra={"reason": error.reason})
            return
        for run_id in answer.lost_run_ids:
            self._stop(
                run_id,
                PodiumError(Code.AUDIT_UNAVAILABLE, "the run's lease was lost", reason="LEASE_LOST"),
            )
        for run_id in answer.cancelled_run_ids:
            self._stop(run_id, PodiumError(Code.CANCELLED, "the run was stopped", reason="RUN_STOPPED"))

    def _stop(self, run_id: str, error: PodiumError) -> None:
        stop = self._stops.pop(run_id, None)
        if stop is not None:
            stop(error)
