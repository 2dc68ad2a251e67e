"""The gate: one worker unless a plan is expected to win at equal money, by one measured table."""

from collections.abc import Mapping
from dataclasses import dataclass

from podium_core.domain.plan import Plan

GATE_ONE_WORKER = "GATE_ONE_WORKER"
"""The recorded reason why a plan was replaced by one worker."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """What was measured for plans of one tier and step count, against the best single worker at equal money.

    `difference_low_ppm` is the lower end of the paired 95 % interval of accuracy, plan less single worker.
    """

    tier: str
    step_count: int
    difference_low_ppm: int
    sample_count: int
    measured_on: str


@dataclass(frozen=True, slots=True)
class GateDecision:
    """Whether a plan of several steps may be performed, and the row that says so; None: unmeasured."""

    keeps: bool
    step_count: int
    row: GateRow | None
    table_digest: str

    @property
    def facts(self) -> Mapping[str, str]:
        """What the record says of the decision."""
        told = {
            "decision": "plan" if self.keeps else "one_worker",
            "step_count": str(self.step_count),
            "table_digest": self.table_digest,
        }
        if self.row is not None:
            told |= {
                "difference_low_ppm": str(self.row.difference_low_ppm),
                "sample_count": str(self.row.sample_count),
                "measured_on": self.row.measured_on,
            }
        return told


@dataclass(frozen=True, slots=True)
class GateTable:
    """All rows of one version of the table. An empty one lets no plan of several steps through."""

    rows: tuple[GateRow, ...] = ()
    digest: str = ""

    def decide(self, plan: Plan, tier: str) -> GateDecision | None:
        """Return the decision on `plan`; None when it has one step, so that there is nothing to decide."""
        count = len(plan.steps)
        if count <= 1:
            return None
        row = next((row for row in self.rows if (row.tier, row.step_count) == (tier, count)), None)
        keeps = row is not None and row.difference_low_ppm > 0
        return GateDecision(keeps, count, row, self.digest)
