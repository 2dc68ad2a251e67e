"""What this gateway last heard of tenants' budgets: whoever has used much of one is told with each answer."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from podium_core.domain.clock import Clock

_NANOS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Budget:
    """A tenant's money of one month in USD micros; `warn_percent` 0: less is used than is worth a warning."""

    month: str
    budget: int
    settled: int
    reserved: int
    warn_percent: int


@dataclass(slots=True)
class Budgets:
    """The newest state of each tenant's budget, as the seals of its runs brought it."""

    clock: Clock
    _newest: dict[str, Budget] = field(default_factory=dict)

    def heard(self, tenant_id: str, budget: Budget) -> None:
        """Take in what a seal has brought."""
        self._newest[tenant_id] = budget

    def warning(self, tenant_id: str) -> Budget | None:
        """Return the budget of this month if so much of it is used that its tenant wants to know."""
        budget = self._newest.get(tenant_id)
        if budget is None or not budget.warn_percent:
            return None
        month = datetime.fromtimestamp(self.clock.now_ns() / _NANOS, UTC).strftime("%Y-%m")
        return budget if budget.month == month else None

    def headers(self, tenant_id: str) -> dict[str, str]:
        """Return the header that says so; none where there is nothing to say."""
        budget = self.warning(tenant_id)
        return {} if budget is None else {"x-podium-budget-warning": f"{budget.warn_percent}%"}

    def shown(self, tenant_id: str) -> dict[str, object] | None:
        """Return what the `podium` object says of it."""
        budget = self.warning(tenant_id)
        if budget is None:
            return None
        return {
            "month": budget.month,
            "warning_percent": budget.warn_percent,
            "limit_usd_micros": budget.budget,
            "spent_usd_micros": budget.settled,
            "left_usd_micros": max(0, budget.budget - budget.settled - budget.reserved),
        }
