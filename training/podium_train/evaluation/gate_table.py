"""Writes the gate table that serving reads: where plans of several steps beat one worker at equal money."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from podium_core.domain.gate import GateRow
from podium_train.evaluation.results import SystemRuns
from podium_train.evaluation.statistics import clustered_intervals

_MILLION = 1_000_000
_HEADER = """\
# Written by `podium-train evaluate`: plans of so many steps, less the best single worker given the same money
# (its own answers voted on), as the lower end of the paired 95 % interval over {items} items. Another pool or
# other questions need their own measurement.
"""


@dataclass(frozen=True, slots=True)
class _Paired:
    """One plan and what the best single worker did with the same item for the same money."""

    steps: int
    family: str
    difference: float


def gate_rows(
    conductor: SystemRuns, equal_money: SystemRuns, *, tier: str, measured_on: date, seed: int
) -> tuple[GateRow, ...]:
    """Return a row per step count above one that `conductor` used.

    `equal_money` is the best single worker with as many answers per item as the plan of the same run paid
    for: its runs pair with the conductor's, one by one.
    """
    if len(conductor.runs) != len(equal_money.runs):
        raise ValueError("each run of the Conductor needs the single worker's run at the same money")
    pairs = [
        _Paired(len(plan.worker_ids), plan.family, float(plan.is_right) - float(alone.is_right))
        for plans, singles in zip(conductor.runs, equal_money.runs, strict=True)
        for plan, alone in zip(plans, singles, strict=True)
        if plan.is_scorable and alone.is_scorable and len(plan.worker_ids) > 1
    ]
    return tuple(
        _row([pair for pair in pairs if pair.steps == steps], tier, measured_on, seed)
        for steps in sorted({pair.steps for pair in pairs})
    )


def _row(pairs: Sequence[_Paired], tier: str, measured_on: date, seed: int) -> GateRow:
    differences = np.array([[pair.difference] for pair in pairs])
    (interval,) = clustered_intervals(differences, [pair.family for pair in pairs], seed=seed)
    low_ppm = int(np.floor(interval.low * _MILLION))
    return GateRow(tier, pairs[0].steps, low_ppm, len(pairs), measured_on.isoformat())


def gate_file(rows: Sequence[GateRow]) -> str:
    """Return the text of `gate.yaml` (docs/gate.md)."""
    lines = [_HEADER.format(items=sum(row.sample_count for row in rows)), "rows:" if rows else "rows: []"]
    for row in rows:
        lines += [
            f"\n  - tier: {row.tier}",
            f"    steps: {row.step_count}",
            f"    difference_low: {row.difference_low_ppm / _MILLION:.6f}",
            f"    n: {row.sample_count}",
            f"    measured_on: {row.measured_on}",
        ]
    return "\n".join(lines).replace("\n\n", "\n") + "\n"
