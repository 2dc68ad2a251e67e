"""What stands at this moment, asked of either database in the same words: counts, sums, stops, grades."""

from typing import Any, Protocol

from podium_audit.ports import GradeTallyRow, StopRow


class _Asks(Protocol):
    def _all(self, query: Any) -> list[Any]: ...


class StandingReads:
    """Queries without parameters, for a store that has `_all`. Every method raises StoreError."""

    def next_run_no(self: _Asks) -> int:
        """Return the number for the next run."""
        return int(self._all("SELECT coalesce(max(run_no), 0) + 1 FROM runs")[0][0])

    def leaf_counts(self: _Asks) -> dict[str, int]:
        """Return how many leaves each tenant has."""
        return dict(self._all("SELECT tenant_id, leaf_count FROM leaf_counts"))

    def settled(self: _Asks) -> dict[tuple[str, str], int]:
        """Return settled USD micros by (tenant_id, month)."""
        rows = self._all("SELECT tenant_id, month, usd_micros FROM settled")
        return {(tenant_id, month): amount for tenant_id, month, amount in rows}

    def settled_by_key(self: _Asks) -> dict[tuple[str, str, str], int]:
        """Return settled USD micros by (tenant_id, principal_id, month): what the `uses` add up to."""
        rows = self._all(
            "SELECT tenant_id, principal_id, substr(day, 1, 7), CAST(sum(cost_usd_micros) AS bigint)"
            " FROM uses WHERE principal_id != '' GROUP BY 1, 2, 3 HAVING sum(cost_usd_micros) != 0"
        )
        return {(tenant_id, key_id, month): amount for tenant_id, key_id, month, amount in rows}

    def stops(self: _Asks) -> list[StopRow]:
        """Return the stops that stand."""
        rows = self._all("SELECT tenant_id, worker_id, since_us FROM stops WHERE since_us > 0")
        return [StopRow(*row) for row in rows]

    def grade_tallies(self: _Asks) -> list[GradeTallyRow]:
        """Return what grades come to."""
        rows = self._all(
            "SELECT tenant_id, tier, step_count, grade_count, sum_ppm, sum_squares_ppm FROM grade_tallies"
        )
        return [GradeTallyRow(*row) for row in rows]
