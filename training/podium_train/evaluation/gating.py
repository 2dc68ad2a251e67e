"""Measures the gate table of the first Conductor that was evaluated, and writes `gate.yaml`."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from podium_core.domain.plan_prompt import MAX_TIER, TIER
from podium_train.baselines.ensembles import EqualMoney
from podium_train.baselines.scorers import Scorer
from podium_train.evaluation.gate_table import gate_file, gate_rows
from podium_train.evaluation.measuring import Entrant, measured
from podium_train.evaluation.suites import Suite
from podium_train.evaluation.systems import Trial

GATE_SUITE = "rg-clean"
"""The suite of the gate's figures; the first one where a folder has no such items."""


def write_gate(
    folder: Path,
    suites: Sequence[Suite],
    conductors: Sequence[Entrant],
    best: Scorer,
    trial: Trial,
    *,
    seed: int,
    today: datetime,
) -> Path | None:
    """Write `gate.yaml` into `folder` and return its path; None, and nothing, without a Conductor.

    The last-named unablated Conductor counts: the one that a list of stages ends with.
    """
    plain = [entrant for entrant in conductors if not entrant.system.marks]
    if not plain:
        return None
    conductor = plain[-1]
    suite = next((suite for suite in suites if suite.name == GATE_SUITE), suites[0])
    rival = EqualMoney(best, trial, conductor.system)
    runs = asyncio.run(
        measured(
            suite,
            [conductor, Entrant(rival, conductor.run_count)],
            concurrency=1,
            told=lambda _line: None,
        )
    )
    tier = MAX_TIER if conductor.system.name.endswith("rounds") else TIER
    rows = gate_rows(
        runs.systems[conductor.system.name],
        runs.systems[rival.name],
        tier=tier,
        measured_on=today.date(),
        seed=seed,
    )
    path = folder / "gate.yaml"
    path.write_text(gate_file(rows), encoding="utf-8")
    return path
