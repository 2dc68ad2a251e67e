"""What the cards of a pool say about a text: each worker's chance to answer it right, and how sure that is.

Workers are compared by cards alone, so a worker never seen before is read like any other. A card's numbers
are noisy counts: an accuracy over n items varies by p(1-p)/n, and weighs less the larger that is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium_core.domain.pool import Worker
from podium_core.plan_model.skills import SkillSpace
from podium_core.plan_model.words import Floats

Doubles = npt.NDArray[np.float64]

MAX_SKILLS = 160
"""Skills of a pool that are looked at; the commonest on the cards come first."""

_TEMPERATURES = (0.05, 0.12, 0.3)
_LENGTHS = (0.12, 0.4)
_SIGNAL_VARIANCE = 0.04
_ABSENT = 1e4
_PRIOR_COUNT = 4.0
_UNMEASURED = 0.4
_PPM = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What the cards say about one text.

    `expected` is [workers, views] of accuracies: one view per way of weighing skills by likeness. `doubt` is
    [workers], the deviation of the last view. `nearest` is the likeness of the nearest skill, -1 to 1, and
    `spread` how many skills share the weight, as a logarithm.
    """

    expected: Floats
    doubt: Floats
    nearest: float
    spread: float


VIEWS = len(_TEMPERATURES) + len(_LENGTHS)
"""Columns of `Reading.expected`."""


class PoolCards:
    """The cards of one pool, prepared for reading texts. Rows follow the order of `workers`."""

    def __init__(self, workers: Sequence[Worker], space: SkillSpace) -> None:
        self.workers = tuple(workers)
        names = _skill_names(workers)
        self._vectors = space.vectors(names).astype(np.float64)
        self._accuracy, self._count = _table(workers, names)
        self.mean, self._common = _levels(self._accuracy)
        own = np.where(np.isnan(self._accuracy), 0.0, self._accuracy - self.mean[:, None] - self._common)
        likely = self.mean[:, None] + self._common
        weight = self._count / (self._count + _PRIOR_COUNT)
        self._shrunk = np.clip(likely + weight * own, 0.0, 1.0)
        self._own = own
        self._kernels = tuple(self._kernel(length) for length in _LENGTHS)
        self._solved = tuple(self._solve(kernel) for kernel in self._kernels)
        self.best = self._shrunk.max(axis=1, initial=0.0) if names else np.full(len(workers), _UNMEASURED)
        self.sample_count = self._count.sum(axis=1)
        self.skill_count = (self._count > 0).sum(axis=1)

    def read(self, vector: Floats) -> Reading:
        """Return what the cards say about the text of `vector`."""
        workers = len(self.workers)
        if not self._vectors.shape[0]:
            flat = np.repeat(self.mean[:, None], VIEWS, axis=1).astype(np.float32)
            return Reading(flat, np.full(workers, np.sqrt(_SIGNAL_VARIANCE), np.float32), -1.0, 0.0)
        likeness = self._vectors @ vector.astype(np.float64)
        views = [self._shrunk @ _softmax(likeness / temperature) for temperature in _TEMPERATURES]
        doubt = np.zeros(workers)
        for length, (alpha, inverse, common) in zip(_LENGTHS, self._solved, strict=True):
            near = np.exp((likeness - 1.0) / length)
            views.append(np.clip(self.mean + near @ common + alpha @ near, -0.5, 1.5))
            doubt = np.sqrt(np.maximum(1.0 - np.einsum("s,wst,t->w", near, inverse, near), 1e-4))
        weights = _softmax(likeness / _TEMPERATURES[0])
        spread = float(-(weights * np.log(np.maximum(weights, 1e-12))).sum())
        expected = np.stack(views, axis=1).astype(np.float32)
        return Reading(expected, doubt.astype(np.float32), float(likeness.max()), spread)

    def _kernel(self, length: float) -> Doubles:
        return np.asarray(np.exp((self._vectors @ self._vectors.T - 1.0) / length), np.float64)

    def _solve(self, kernel: Doubles) -> tuple[Doubles, Doubles, Doubles]:
        """Return the weights of each worker's own part, the inverses behind them, and the common weights."""
        skills, workers = kernel.shape[0], len(self.workers)
        if not skills:
            return np.zeros((workers, 0)), np.zeros((workers, 0, 0)), np.zeros(0)
        smoothed = (np.nan_to_num(self._accuracy, nan=0.5) * self._count + 1.0) / (self._count + 2.0)
        noise = smoothed * (1.0 - smoothed) / np.maximum(self._count, 1.0) / _SIGNAL_VARIANCE
        noise = np.where(self._count > 0, noise + 0.02, _ABSENT)
        covariances = kernel[None] + np.eye(skills)[None] * noise[:, :, None]
        inverse = np.linalg.inv(covariances)
        alpha = np.einsum("wst,wt->ws", inverse, self._own)
        common = np.linalg.solve(kernel + 0.1 * np.eye(skills), self._common)
        return alpha, np.asarray(inverse, np.float64), np.asarray(common, np.float64)


def _skill_names(workers: Sequence[Worker]) -> list[str]:
    counts: dict[str, int] = {}
    for worker in workers:
        for skill in worker.card.skills:
            counts[skill.name] = counts.get(skill.name, 0) + 1
    return sorted(sorted(counts), key=lambda name: -counts[name])[:MAX_SKILLS]


def _table(workers: Sequence[Worker], names: Sequence[str]) -> tuple[Doubles, Doubles]:
    """Return accuracies (NaN: not measured) and counts: [workers, skills] each."""
    column = {name: index for index, name in enumerate(names)}
    accuracy = np.full((len(workers), len(names)), np.nan)
    count = np.zeros((len(workers), len(names)))
    for row, worker in enumerate(workers):
        for skill in worker.card.skills:
            if skill.name in column:
                accuracy[row, column[skill.name]] = skill.accuracy_ppm / _PPM
                count[row, column[skill.name]] = max(skill.sample_count, 1)
    return accuracy, count


def _levels(accuracy: Doubles) -> tuple[Doubles, Doubles]:
    """Return each worker's level [workers] and how far each skill lies above it for all [skills].

    Fitted together, so that a worker measured on hard skills only is not taken for a weak one.
    """
    known = ~np.isnan(accuracy)
    filled = np.nan_to_num(accuracy)
    per_worker, per_skill = known.sum(axis=1), known.sum(axis=0)
    common = np.zeros(accuracy.shape[1])
    mean = np.full(accuracy.shape[0], _UNMEASURED)
    for _ in range(3):
        levels = np.where(known, filled - common[None], 0.0).sum(axis=1) / np.maximum(per_worker, 1)
        mean = np.where(per_worker > 0, levels, _UNMEASURED)
        common = np.where(known, filled - mean[:, None], 0.0).sum(axis=0) / np.maximum(per_skill, 1)
    return mean, common


def _softmax(values: Doubles) -> Doubles:
    raised = np.exp(values - values.max())
    return np.asarray(raised / raised.sum(), np.float64)
