"""Tenants' and keys' money per calendar month, and how many leaves each tenant has."""

from collections.abc import Iterable

from podium_audit.ports import RunRow
from podium_audit.records.run_state import Movement, RunState
from podium_core.domain.errors import Code, PodiumError

_USD = 1_000_000
_Place = tuple[str, str, str]
"""Tenant, key (empty: all that the tenant spends) and month."""


class TenantBook:
    """Counts and sums of every tenant. What changed since `take_changes` belongs to the running batch."""

    def __init__(
        self,
        leaf_counts: dict[str, int],
        settled: dict[tuple[str, str], int],
        settled_by_key: dict[tuple[str, str, str], int],
        open_runs: Iterable[RunState],
    ) -> None:
        self._leaf_counts = leaf_counts
        self._settled: dict[_Place, int] = dict(settled_by_key)
        self._settled.update({(tenant, "", month): amount for (tenant, month), amount in settled.items()})
        self._reserved: dict[_Place, int] = {}
        self._reserved_total = 0
        self._changed_tenants: set[str] = set()
        self._changed_months: set[tuple[str, str]] = set()
        for run in open_runs:
            for attempt in run.open_attempts.values():
                self._reserve(run.row, attempt.month, attempt.max_cost_usd_micros)

    def leaf_count(self, tenant_id: str) -> int:
        """Return how many leaves the tenant has: the next leaf's `tenant_seq`."""
        return self._leaf_counts.get(tenant_id, 0)

    def settled(self, tenant_id: str, month: str, key_id: str = "") -> int:
        """Return what the tenant, or one key of it, has spent in the month, in USD micros."""
        return self._settled.get((tenant_id, key_id, month), 0)

    def reserved(self, tenant_id: str, month: str, key_id: str = "") -> int:
        """Return what open attempts of the tenant, or of one key, may still cost in the month."""
        return self._reserved.get((tenant_id, key_id, month), 0)

    @property
    def reserved_usd_micros(self) -> int:
        """What all open attempts may still cost."""
        return self._reserved_total

    def count_leaf(self, tenant_id: str) -> None:
        """Count one more leaf."""
        self._leaf_counts[tenant_id] = self._leaf_counts.get(tenant_id, 0) + 1
        self._changed_tenants.add(tenant_id)

    def move(self, row: RunRow, movement: Movement) -> None:
        """Book what one record of a run moves."""
        self._reserve(row, movement.month, movement.reserved)
        if movement.settled:
            for place in _places(row, movement.month):
                self._settled[place] = self._settled.get(place, 0) + movement.settled
            self._changed_months.add((row.tenant_id, movement.month))

    def take_changes(self) -> tuple[list[tuple[str, int]], list[tuple[str, str, int]]]:
        """Return the (tenant, leaf count) and (tenant, month, settled) rows to store, and forget them.

        What keys have spent is stored with their uses.
        """
        counts = [(tenant_id, self._leaf_counts[tenant_id]) for tenant_id in self._changed_tenants]
        settled = [(*place, self.settled(*place)) for place in self._changed_months]
        self._changed_tenants.clear()
        self._changed_months.clear()
        return counts, settled

    def _reserve(self, row: RunRow, month: str, amount: int) -> None:
        self._reserved_total += amount
        for place in _places(row, month):
            reserved = self._reserved.get(place, 0) + amount
            if reserved:
                self._reserved[place] = reserved
            else:
                self._reserved.pop(place, None)


def _places(row: RunRow, month: str) -> tuple[_Place, ...]:
    whole = (row.tenant_id, "", month)
    return (whole, (row.tenant_id, row.principal_id, month)) if row.principal_id else (whole,)


def check_money(run: RunState, book: TenantBook, month: str, max_cost: int) -> None:
    """Raise PodiumError (BUDGET_EXHAUSTED) unless `max_cost` more fits the limits of run, key and tenant."""
    cap = run.caps["max_cost_usd_micros"]
    if cap is not None:
        _check_fit(
            "this run may cost",
            "RUN_BUDGET_EXHAUSTED",
            cap,
            run.settled_usd_micros,
            run.reserved_usd_micros,
            max_cost,
        )
    row = run.row
    for key_id, owner, reason, budget in (
        (row.principal_id, f"key {row.principal_id}", "KEY_BUDGET_EXHAUSTED", row.key_budget_usd_micros),
        ("", "tenant", "TENANT_BUDGET_EXHAUSTED", row.tenant_budget_usd_micros),
    ):
        if budget is not None:
            _check_fit(
                f"the budget of the {owner} for {month} is",
                reason,
                budget,
                book.settled(row.tenant_id, month, key_id),
                book.reserved(row.tenant_id, month, key_id),
                max_cost,
            )


def _check_fit(subject: str, reason: str, limit: int, settled: int, reserved: int, more: int) -> None:
    if settled + reserved + more <= limit:
        return
    raise PodiumError(
        Code.BUDGET_EXHAUSTED,
        f"{subject} {_usd(limit)}: {_usd(settled)} are spent, {_usd(reserved)} are reserved by attempts"
        f" under way, and this attempt may cost up to {_usd(more)}",
        reason=reason,
        metadata={"limit_usd_micros": str(limit), "left_usd_micros": str(max(0, limit - settled - reserved))},
    )


def _usd(micros: int) -> str:
    whole, rest = divmod(micros, _USD)
    return f"${whole}.{rest:06d}"
