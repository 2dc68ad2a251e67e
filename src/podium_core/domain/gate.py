"""The gate: one worker unless a plan is expected to win at equal money, by one measured table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import sqrt

from podium_core.domain.plan import Plan

MIN_GRADES = 30
"""Fewer grades, of plans or of single workers, move nothing."""
MAX_MOVE_PPM = 50_000
"""Farthest that grades move a row, either way."""

_PPM = 1_000_000
_Z_95 = 1.96

GATE_ONE_WORKER = "GATE_ONE_WORKER"
"""The recorded reason why a plan was replaced by one worker."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """What was measured for plans of one tier and step count, against the best single worker at equal money.

    `difference_low_ppm` is the lower end of the paired 95 % interval of accuracy, plan less single worker.
    `grade_move_ppm` is how far grades of served runs have moved it, `grade_count` how many of them counted.
    """

    tier: str
    step_count: int
    difference_low_ppm: int
    sample_count: int
    measured_on: str
    grade_move_ppm: int = 0
    grade_count: int = 0

    @property
    def low_ppm(self) -> int:
        """What decides: the measured figure, moved by grades."""
        return self.difference_low_ppm + self.grade_move_ppm


@dataclass(frozen=True, slots=True)
class GradeTally:
    """What grades of one tenant's runs of one tier and step count come to; scores in millionths."""

    tier: str
    step_count: int
    count: int
    sum_ppm: int
    sum_squares_ppm: int

    @property
    def mean(self) -> float:
        """Mean score, 0 to 1."""
        return self.sum_ppm / _PPM / self.count

    @property
    def variance_of_mean(self) -> float:
        """Variance of the mean score."""
        variance = self.sum_squares_ppm / _PPM / self.count - self.mean**2
        return max(variance, 0.0) / (self.count - 1)


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
        if self.row is not None and self.row.grade_count:
            told |= {
                "grade_move_ppm": str(self.row.grade_move_ppm),
                "grade_count": str(self.row.grade_count),
            }
        return told


@dataclass(frozen=True, slots=True)
class GateTable:
    """All rows of one version of the table. An empty one lets no plan of several steps through."""

    rows: tuple[GateRow, ...] = ()
    digest: str = ""

    def with_grades(self, tallies: Iterable[GradeTally]) -> "GateTable":
        """Return the table with each row moved towards what one tenant's grades say (docs/gate.md).

        Grades only move a measured row, by `MAX_MOVE_PPM` at most and as their number weighs against the
        row's own; they never make up for a measurement that is missing.
        """
        known = {(tally.tier, tally.step_count): tally for tally in tallies}
        rows = tuple(_moved(row, known) for row in self.rows)
        return self if rows == self.rows else replace(self, rows=rows)

    def decide(self, plan: Plan, tier: str) -> GateDecision | None:
        """Return the decision on `plan`; None when it has one step, so that there is nothing to decide."""
        count = len(plan.steps)
        if count <= 1:
            return None
        row = next((row for row in self.rows if (row.tier, row.step_count) == (tier, count)), None)
        keeps = row is not None and row.low_ppm > 0
        return GateDecision(keeps, count, row, self.digest)


def _moved(row: GateRow, tallies: Mapping[tuple[str, int], GradeTally]) -> GateRow:
    plans, alone = tallies.get((row.tier, row.step_count)), tallies.get((row.tier, 1))
    if plans is None or alone is None or min(plans.count, alone.count) < MIN_GRADES:
        return row
    margin = _Z_95 * sqrt(plans.variance_of_mean + alone.variance_of_mean)
    low_ppm = round((plans.mean - alone.mean - margin) * _PPM)
    count = min(plans.count, alone.count)
    move_ppm = (low_ppm - row.difference_low_ppm) * count // (count + row.sample_count)
    bounded_ppm = max(-MAX_MOVE_PPM, min(MAX_MOVE_PPM, move_ppm))
    return replace(row, grade_move_ppm=bounded_ppm, grade_count=count)
