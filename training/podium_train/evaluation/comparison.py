"""Systems against references, item by item."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium_train.evaluation.results import SuiteRuns, SystemRuns
from podium_train.evaluation.statistics import (
    RESAMPLES,
    Floats,
    Interval,
    clustered_intervals,
    holm,
    mcnemar_p,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """System less reference, in accuracy, over the items of one suite; invalid plans count as wrong.

    `mcnemar` holds the exact p of each pair of single runs (each seed against the reference's first run).
    `holm_p` is `interval.p` adjusted for all comparisons of the table it stands in.
    """

    system: str
    reference: str
    item_count: int
    interval: Interval
    holm_p: float
    per_seed: tuple[float, ...]
    mcnemar: tuple[float, ...]


def compare(
    suite: SuiteRuns,
    pairs: Sequence[tuple[str, str]],
    *,
    seed: int,
    positions: Sequence[int] | None = None,
    resamples: int = RESAMPLES,
) -> list[Comparison]:
    """Return one comparison per (system, reference) of `pairs`, adjusted together.

    Runs over several seeds are averaged per item first. `positions` narrows to some of the scorable items.
    """
    chosen = suite.scorable if positions is None else list(positions)
    if not chosen or not pairs:
        return []
    right = {name: right_matrix(suite.systems[name], chosen) for pair in pairs for name in pair}
    columns = [right[system].mean(axis=0) - right[reference].mean(axis=0) for system, reference in pairs]
    some = next(iter(suite.systems.values())).runs[0]
    families = [some[k].family for k in chosen]
    intervals = clustered_intervals(np.stack(columns, axis=1), families, seed=seed, resamples=resamples)
    adjusted = holm([interval.p for interval in intervals])
    return [
        Comparison(
            system=system,
            reference=reference,
            item_count=len(chosen),
            interval=interval,
            holm_p=p,
            per_seed=tuple(float(run.mean() - right[reference].mean()) for run in right[system]),
            mcnemar=tuple(_mcnemar(run, right[reference][0]) for run in right[system]),
        )
        for (system, reference), interval, p in zip(pairs, intervals, adjusted, strict=True)
    ]


def right_matrix(system: SystemRuns, positions: Sequence[int]) -> Floats:
    """Return runs x items, 1 where the answer was right."""
    return np.array([[float(run[k].is_right) for k in positions] for run in system.runs])


def _mcnemar(first: Floats, second: Floats) -> float:
    return mcnemar_p(int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum()))
