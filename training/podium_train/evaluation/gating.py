"""The best single worker at a Conductor's money, and the gate table that comes of the two."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from podium_core.domain.plan_prompt import TIER
from podium_train.baselines.ensembles import EqualMoney
from podium_train.baselines.scorers import Scorer
from podium_train.evaluation.gate_table import gate_file, gate_rows
from podium_train.evaluation.measuring import Entrant
from podium_train.evaluation.report import SuiteReport
from podium_train.evaluation.saving import save
from podium_train.evaluation.systems import RIVAL, Trial


def with_rival(conductors: Sequence[Entrant], best: Scorer, trial: Trial) -> list[Entrant]:
    """Return the Conductors, and the best single worker with the money of the last unablated one, if any.

    The last one counts, as it is the one that a list of stages ends with; later rounds are not gated.
    """
    plain = [entrant for entrant in conductors if not entrant.system.marks and not _has_rounds(entrant)]
    if not plain:
        return list(conductors)
    rival = EqualMoney(best, trial, plain[-1].system)
    return [*conductors, Entrant(rival, plain[-1].run_count)]


def write_gate(path: Path, reports: Sequence[SuiteReport], *, seed: int, today: datetime) -> None:
    """Write the gate table of the first suite that has a rival at equal money; nothing without one."""
    for report in reports:
        rivals = [runs for runs in report.runs.systems.values() if RIVAL in runs.marks]
        for rival in rivals:
            judged = [name for name in report.conductors if not name.endswith("rounds")]
            conductor = report.runs.systems[judged[-1]]
            rows = gate_rows(conductor, rival, tier=TIER, measured_on=today.date(), seed=seed)
            save(path, gate_file(rows))
            return


def _has_rounds(entrant: Entrant) -> bool:
    return entrant.system.name.endswith("rounds")
