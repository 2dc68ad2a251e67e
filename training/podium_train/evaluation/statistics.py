"""How sure a measured difference is: family-clustered bootstrap, McNemar's exact test, Holm, power.

Items of one task family succeed and fail together, so intervals that treat items as independent are too
narrow. The bootstrap draws families first and items within them second (Davison and Hinkley, Bootstrap
Methods and their Application, §3.8), and it draws *differences*, since systems see the same items.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000
_CHUNK = 500
_LOW, _HIGH = 2.5, 97.5
_Z_TWO_SIDED_95 = 1.959964
_Z_POWER_80 = 0.841621

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, its 95 % bootstrap interval, and the two-sided bootstrap p of zero.

    `detectable` is the smallest true difference that such data would show (two-sided 5 %, power 80 %).
    """

    mean: float
    low: float
    high: float
    detectable: float
    p: float


def clustered_intervals(
    differences: Floats, families: Sequence[str], *, seed: int, resamples: int = RESAMPLES
) -> list[Interval]:
    """Return one interval per column of `differences` (items x comparisons), all from the same draws.

    Every resample draws as many families as there are, with replacement, and as many items within each
    drawn family as it has, with replacement. Fewer families than two cannot be resampled: then items alone.
    """
    if differences.ndim != 2 or len(differences) != len(families) or not len(differences):  # noqa: PLR2004
        raise ValueError("differences must be items x comparisons, with one family per item")
    draws = _resampled_means(differences, families, np.random.default_rng(seed), resamples)
    means = differences.mean(axis=0)
    return [_interval(float(means[k]), draws[:, k]) for k in range(differences.shape[1])]


def _resampled_means(
    differences: Floats, families: Sequence[str], rng: np.random.Generator, resamples: int
) -> Floats:
    names, codes = np.unique(np.array(families), return_inverse=True)
    by_family = differences[np.argsort(codes, kind="stable")]
    sizes = np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    parts: list[Floats] = []
    for begin in range(0, resamples, _CHUNK):
        rows = min(_CHUNK, resamples - begin)
        times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=rows)
        drawn = (times * sizes).ravel()
        # One entry per drawn item: its resample, and a place in its family, evenly.
        family = np.repeat(np.tile(np.arange(len(names)), rows), drawn)
        row = np.repeat(np.arange(rows), times @ sizes)
        item = starts[family] + (rng.random(len(family)) * sizes[family]).astype(np.int64)
        counts = np.bincount(row * len(by_family) + item, minlength=rows * len(by_family))
        weights = counts.reshape(rows, len(by_family)).astype(np.float64)
        parts.append(weights @ by_family / weights.sum(axis=1, keepdims=True))
    return np.concatenate(parts)


def _interval(mean: float, draws: Floats) -> Interval:
    low, high = np.percentile(draws, [_LOW, _HIGH])
    at_most = (int((draws <= 0).sum()) + 1) / (len(draws) + 1)
    at_least = (int((draws >= 0).sum()) + 1) / (len(draws) + 1)
    p = min(1.0, 2 * min(at_most, at_least))
    detectable = (_Z_TWO_SIDED_95 + _Z_POWER_80) * float(draws.std(ddof=1))
    return Interval(mean, float(low), float(high), detectable, p)


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p that two systems are equally often the only one that is right.

    McNemar 1947 with the binomial distribution in place of chi-squared.
    """
    total = only_first + only_second
    if total == 0:
        return 1.0
    fewer = min(only_first, only_second)
    tail = sum(math.comb(total, k) for k in range(fewer + 1))
    share: float = 2 * tail / 2**total
    return min(1.0, share)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for their number by Holm's step-down rule (1979), in the given order."""
    order = sorted(range(len(p_values)), key=lambda k: p_values[k])
    adjusted = [0.0] * len(p_values)
    floor = 0.0
    for rank, k in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[k]))
        adjusted[k] = floor
    return adjusted


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the training seeds lie apart. `deviation` is the sample's; 0 for a single seed."""

    count: int
    lowest: float
    highest: float
    deviation: float


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of one figure over seeds; raise ValueError when there is none."""
    if not values:
        raise ValueError("a spread needs at least one seed")
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Spread(len(values), min(values), max(values), deviation)
