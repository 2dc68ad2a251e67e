"""The usage service over gRPC: sums of a key's or a tenant's days, and the money of both."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

import grpc

from podium.audit.v1 import usage_service_pb2 as pb
from podium.audit.v1 import usage_service_pb2_grpc
from podium_audit.log.group_commit import unavailable
from podium_audit.log.log import Log
from podium_audit.ports import StoreError, UseRow
from podium_audit.records.limits import check_id, check_texts
from podium_audit.stores.readers import Readers
from podium_core.config.tenants import Tenants
from podium_core.domain.errors import invalid

PERMISSIONS: Final[Mapping[str, frozenset[str]]] = {
    "/podium.audit.v1.UsageService/ReadUsage": frozenset({"gateway"}),
}
"""Who may call what."""

MAX_DAYS: Final = 92
_MAX_ROWS: Final = 10_000
_MONTH_CHARS: Final = 7

_Context = grpc.aio.ServicerContext[Any, Any]


class UsageServicer(usage_service_pb2_grpc.UsageServiceServicer):
    """One instance serves every call."""

    def __init__(self, readers: Readers, log: Log, tenants: Callable[[], Tenants]) -> None:
        self._readers = readers
        self._log = log
        self._tenants = tenants

    async def ReadUsage(  # noqa: N802 - named by the contract
        self,
        request: pb.ReadUsageRequest,
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.ReadUsageResponse:
        """Return the sums of the days."""
        check_id("tenant_id", request.tenant_id)
        check_texts((("principal_id", request.principal_id),))
        tenant_id, principal_id = request.tenant_id, request.principal_id or None
        first, last = _day("first_day", request.first_day), _day("last_day", request.last_day)
        if not 0 <= (last - first).days < MAX_DAYS:
            raise invalid(f"the range must have 1 to {MAX_DAYS} days", param="first_day")
        try:
            rows = await self._readers.ask(
                lambda view: view.log.uses(
                    tenant_id, principal_id, request.first_day, request.last_day, limit=_MAX_ROWS + 1
                ),
                tenant_id=tenant_id,
            )
        except StoreError:
            raise unavailable() from None
        if len(rows) > _MAX_ROWS:
            raise invalid(
                f"there are more than {_MAX_ROWS} sums in this range: ask for fewer days",
                reason="RANGE_TOO_LONG",
                param="first_day",
            )
        month = request.last_day[:_MONTH_CHARS]
        return pb.ReadUsageResponse(
            rows=[_row(row) for row in rows],
            money=self._money(tenant_id, month),
            key_money=None if principal_id is None else self._money(tenant_id, month, principal_id),
        )

    def _money(self, tenant_id: str, month: str, key_id: str = "") -> pb.MonthMoney:
        settled, reserved = self._log.money(tenant_id, month, key_id)
        return pb.MonthMoney(
            month=month,
            budget_usd_micros=self._tenants().budget_of(tenant_id, key_id),
            settled_usd_micros=settled,
            reserved_usd_micros=reserved,
        )


def _row(row: UseRow) -> pb.UsageRow:
    fields = row._asdict()
    del fields["tenant_id"]
    return pb.UsageRow(**fields)


def _day(param: str, text: str) -> date:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise invalid(f"{param} must be a day as YYYY-MM-DD", param=param) from None
    if day.isoformat() != text:
        raise invalid(f"{param} must be a day as YYYY-MM-DD", param=param)
    return day
