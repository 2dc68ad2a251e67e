"""Which differences a suite's report states: each Conductor and each baseline against what it must beat."""

from collections.abc import Sequence

from podium_train.evaluation.budget import Budget, budgets
from podium_train.evaluation.comparison import compare
from podium_train.evaluation.report import BEST_SINGLE, ORACLE, SuiteReport
from podium_train.evaluation.results import SuiteRuns
from podium_train.evaluation.systems import ABLATION, RIVAL, WORKER

TEXT_ROUTER = "TF-IDF + logistic"
MOA = "MoA"
RULES = "rules planner"
EQUAL_MONEY = "best single, equal money"
_REFERENCES = (BEST_SINGLE, EQUAL_MONEY, TEXT_ROUTER, f"{TEXT_ROUTER}, knows all", MOA, RULES)


def concluded(
    runs: SuiteRuns, conductors: Sequence[str], *, seed: int, resamples: int, is_whole: bool
) -> SuiteReport:
    """Return the report of one suite.

    Conductors are compared with best single, text router, MoA and the conductors named before them;
    ablations with the conductor they come from; baselines with best single.
    """
    present = [name for name in conductors if name in runs.systems]
    comparisons = compare(runs, _pairs(runs, present), seed=seed, resamples=resamples)
    spent: list[Budget] = []
    if is_whole and MOA in runs.systems:
        rivals = [*present, *([BEST_SINGLE] if BEST_SINGLE in runs.systems else [])]
        for name in rivals:
            spent += budgets(runs, name, MOA, seed=seed, resamples=resamples)
    return SuiteReport(runs, present, comparisons, spent)


def _pairs(runs: SuiteRuns, conductors: Sequence[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for k, name in enumerate(conductors):
        references = (*_REFERENCES, *conductors[:k])
        pairs += [(name, reference) for reference in references if reference in runs.systems]
        pairs += [(ablated, name) for ablated in ablations_of(runs, name)]
        pairs += [
            (ablated, BEST_SINGLE) for ablated in ablations_of(runs, name) if BEST_SINGLE in runs.systems
        ]
    if BEST_SINGLE in runs.systems:
        pairs += [(name, BEST_SINGLE) for name in _baselines(runs, conductors)]
    return pairs


def ablations_of(runs: SuiteRuns, conductor: str) -> list[str]:
    """Return the ablations of one conductor: they are called after it."""
    return [
        name
        for name, system in runs.systems.items()
        if ABLATION in system.marks and name.startswith(f"{conductor}, ")
    ]


def _baselines(runs: SuiteRuns, conductors: Sequence[str]) -> list[str]:
    left_out = {*conductors, BEST_SINGLE, ORACLE, "random"}
    return [
        name
        for name, system in runs.systems.items()
        if name not in left_out and not {ABLATION, RIVAL, WORKER} & set(system.marks)
    ]
