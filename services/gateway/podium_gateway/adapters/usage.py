"""The usage port over audit's usage service."""

import grpc

from podium.audit.v1 import usage_service_pb2, usage_service_pb2_grpc
from podium_core.domain.clock import Clock
from podium_core.runtime.grpc_client import call_metadata
from podium_gateway.adapters.inside import asked_of_audit
from podium_gateway.ports import USAGE_COUNTS, MonthMoney, UsageRow, Used


class AuditUsage:
    """Reads sums from audit, waiting `wait_s` seconds at most."""

    def __init__(self, channel: grpc.aio.Channel, clock: Clock, *, wait_s: float) -> None:
        self._stub: usage_service_pb2_grpc.UsageServiceAsyncStub = usage_service_pb2_grpc.UsageServiceStub(
            channel
        )
        self._clock = clock
        self._wait_s = wait_s

    async def read(self, tenant_id: str, principal_id: str, first_day: str, last_day: str) -> Used:
        """Return the sums of a range of days, of all keys if `principal_id` is empty; raise PodiumError."""
        request = usage_service_pb2.ReadUsageRequest(
            tenant_id=tenant_id, principal_id=principal_id, first_day=first_day, last_day=last_day
        )
        metadata = call_metadata()
        answer = await asked_of_audit(
            lambda timeout: self._stub.ReadUsage(request, timeout=timeout, metadata=metadata),
            budget_s=self._wait_s,
            clock=self._clock,
        )
        rows = [
            UsageRow(
                row.day,
                row.principal_id,
                row.worker_id,
                row.model,
                tuple([getattr(row, name) for name in USAGE_COUNTS]),
            )
            for row in answer.rows
        ]
        key_money = _money(answer.key_money) if answer.HasField("key_money") else None
        return Used(rows, _money(answer.money), key_money)


def _money(message: usage_service_pb2.MonthMoney) -> MonthMoney:
    budget = message.budget_usd_micros if message.HasField("budget_usd_micros") else None
    return MonthMoney(message.month, budget, message.settled_usd_micros, message.reserved_usd_micros)
