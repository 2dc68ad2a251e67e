"""What a system spends beside a dearer reference, as ratios, on all items and on those of several steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium_train.evaluation.results import Answered, SuiteRuns
from podium_train.evaluation.statistics import RESAMPLES, Interval, clustered_intervals

ALL_ITEMS = "all items"
SEVERAL_STEPS = "items of two or more steps"


@dataclass(frozen=True, slots=True)
class Budget:
    """Spending of `system` as a share of what `reference` spent on the same items, and what it won or lost.

    `own_included` counts the Conductor's own tokens; `pair_count` counts items times runs.
    """

    system: str
    reference: str
    subset: str
    pair_count: int
    worker_tokens: float
    own_included: float
    money: float
    difference: Interval


def budgets(
    suite: SuiteRuns, system: str, reference: str, *, seed: int, resamples: int = RESAMPLES
) -> list[Budget]:
    """Return the ratios over all items, and over those that the system gave two or more steps, if any."""
    positions = suite.scorable
    dear = suite.systems[reference].runs[0]
    pairs = [(run[k], dear[k]) for run in suite.systems[system].runs for k in positions]
    several = [pair for pair in pairs if len(pair[0].worker_ids) > 1]
    return [
        _budget((system, reference, subset), chosen, seed, resamples)
        for subset, chosen in ((ALL_ITEMS, pairs), (SEVERAL_STEPS, several))
        if chosen
    ]


def _budget(
    names: tuple[str, str, str], pairs: Sequence[tuple[Answered, Answered]], seed: int, resamples: int
) -> Budget:
    system, reference, subset = names
    # The runs of one item belong to one family, so resampled families carry all of an item's runs.
    differences = np.array([[float(ours.is_right) - float(theirs.is_right)] for ours, theirs in pairs])
    families = [ours.family for ours, _ in pairs]
    (interval,) = clustered_intervals(differences, families, seed=seed, resamples=resamples)
    return Budget(
        system,
        reference,
        subset,
        len(pairs),
        _ratio(
            [o.worker_usage.total_tokens for o, _ in pairs], [t.worker_usage.total_tokens for _, t in pairs]
        ),
        _ratio([ours.tokens for ours, _ in pairs], [theirs.tokens for _, theirs in pairs]),
        _ratio([ours.cost_usd_micros for ours, _ in pairs], [theirs.cost_usd_micros for _, theirs in pairs]),
        interval,
    )


def _ratio(ours: Sequence[int], theirs: Sequence[int]) -> float:
    return sum(ours) / sum(theirs) if sum(theirs) else float("inf")
