"""What this gateway last heard of budgets: whoever has used much of one is told with each answer."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from podium_core.domain.clock import Clock

_NANOS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Budget:
    """Money of one month in USD micros; `warn_percent` 0: less is used than is worth a warning."""

    month: str
    budget: int
    settled: int
    reserved: int
    warn_percent: int


@dataclass(slots=True)
class Budgets:
    """The newest state of each tenant's and each key's budget, as the seals of their runs brought it.

    Of the two that hold for a key, the one that is used up further is told.
    """

    clock: Clock
    _newest: dict[tuple[str, str], Budget] = field(default_factory=dict)

    def heard(self, tenant_id: str, key_id: str, budget: Budget) -> None:
        """Take in what a seal has brought: of a key, or of the whole tenant where `key_id` is empty."""
        self._newest[tenant_id, key_id] = budget

    def warning(self, tenant_id: str, key_id: str) -> tuple[str, Budget] | None:
        """Return `key` or `tenant`, and its budget, if so much is used this month that one wants to know."""
        month = datetime.fromtimestamp(self.clock.now_ns() / _NANOS, UTC).strftime("%Y-%m")
        owners = {"key": (tenant_id, key_id), "tenant": (tenant_id, "")}
        newest = {scope: self._newest.get(owner) for scope, owner in owners.items()}
        used = [
            (scope, budget)
            for scope, budget in newest.items()
            if budget is not None and budget.warn_percent and budget.month == month
        ]
        return max(used, key=lambda one: one[1].warn_percent, default=None)

    def headers(self, tenant_id: str, key_id: str) -> dict[str, str]:
        """Return the header that says so; none where there is nothing to say."""
        if not self._newest or (found := self.warning(tenant_id, key_id)) is None:
            return {}
        return {"x-podium-budget-warning": f"{found[1].warn_percent}%"}

    def shown(self, tenant_id: str, key_id: str) -> dict[str, object] | None:
        """Return what the `podium` object says of it."""
        if not self._newest or (found := self.warning(tenant_id, key_id)) is None:
            return None
        scope, budget = found
        return {
            "scope": scope,
            "month": budget.month,
            "warning_percent": budget.warn_percent,
            "limit_usd_micros": budget.budget,
            "spent_usd_micros": budget.settled,
            "left_usd_micros": max(0, budget.budget - budget.settled - budget.reserved),
        }
