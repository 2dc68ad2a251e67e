"""Routers that need no library: each says how likely every worker of a task is to be right.

Unknown workers (no record on the train split) are scored by the mean of their card, as the protocol asks.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from podium_core.domain.pool import Card
from podium_train.environments.port import Task
from podium_train.outcomes.cards import worker_id
from podium_train.outcomes.items import RecordedItem, RecordedSet

Key = tuple[str, ...]
_PPM = 1_000_000
_PRIOR_ITEMS = 2.0


class Scorer(Protocol):
    """Says how good each worker of a task's pool is for it."""

    def scores(self, task: Task) -> Mapping[str, float]:
        """Return one score per worker id of the pool; the highest is asked."""
        ...


def chosen(scorer: Scorer, task: Task) -> str:
    """Return the worker with the highest score; the id decides ties."""
    scores = scorer.scores(task)
    return max(sorted(scores), key=lambda worker: scores[worker])


def card_mean(task: Task) -> dict[str, float]:
    """Return the mean accuracy on each worker's card, over the skills of the task's level.

    Where a card has no skill of that level, all of its skills count.
    """
    return {worker.worker_id: _card_mean(worker.card, task.difficulty) for worker in task.workers}


def _card_mean(card: Card, difficulty: str) -> float:
    is_hard = [skill.name.endswith(f", {difficulty}") for skill in card.skills]
    of_level = is_hard if any(is_hard) else [", " not in skill.name for skill in card.skills]
    kept = [skill.accuracy_ppm for skill, keep in zip(card.skills, of_level, strict=True) if keep]
    return sum(kept) / len(kept) / _PPM if kept else card.mean_accuracy_ppm / _PPM


def source_of(task_id: str) -> str:
    """Return which source an item is from: the first part of its id."""
    return task_id.partition("/")[0]


def level_key(item: RecordedItem) -> Key:
    """Return source and difficulty."""
    return source_of(item.item_id), item.difficulty


def family_key(item: RecordedItem) -> Key:
    """Return source, difficulty and family."""
    return (*level_key(item), item.family)


@dataclass(frozen=True, slots=True)
class RandomScorer:
    """Any worker, evenly; the task's seed and this one decide."""

    seed: int = 0

    def scores(self, task: Task) -> Mapping[str, float]:
        """Return random numbers."""
        rng = random.Random(f"{self.seed} {task.seed} {task.task_id}")  # noqa: S311 - a baseline's dice
        return {worker: rng.random() for worker in sorted(w.worker_id for w in task.workers)}


@dataclass(frozen=True, slots=True)
class CardScorer:
    """The mean of each card: what can be known of a worker that nobody recorded."""

    def scores(self, task: Task) -> Mapping[str, float]:
        """Return card means."""
        return card_mean(task)


class BestSingle:
    """One worker per pool whatever is asked: the best on `chosen_on` among items of the same level."""

    def __init__(self, chosen_on: RecordedSet) -> None:
        self._means = _means(chosen_on, level_key)

    def scores(self, task: Task) -> Mapping[str, float]:
        """Return each worker's mean."""
        key = (source_of(task.task_id), task.difficulty)
        known = {worker: table[key].mean for worker, table in self._means.items() if key in table}
        return {worker: known.get(worker, mean) for worker, mean in card_mean(task).items()}


class FamilyTable:
    """The best worker of the task's true family. It is told the family, which no real router is.

    Small families are shrunk towards the worker's mean at that level, as if two items more had been seen.
    """

    def __init__(self, learnt_on: RecordedSet) -> None:
        self._levels = _means(learnt_on, level_key)
        self._families = _means(learnt_on, family_key)

    def scores(self, task: Task) -> Mapping[str, float]:
        """Return each worker's shrunk mean in the family."""
        level = (source_of(task.task_id), task.difficulty)
        return {
            worker: self._score(worker, level, (*level, task.family), mean)
            for worker, mean in card_mean(task).items()
        }

    def _score(self, worker: str, level: Key, family: Key, card: float) -> float:
        seen = self._levels.get(worker, {}).get(level)
        if seen is None:
            return card
        entry = self._families[worker].get(family, _Mean())
        return (entry.total + _PRIOR_ITEMS * seen.mean) / (entry.count + _PRIOR_ITEMS)


@dataclass(slots=True)
class _Mean:
    total: float = 0.0
    count: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


@dataclass(slots=True)
class _Table:
    rows: dict[str, dict[Key, _Mean]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(_Mean)))


def _means(recorded: RecordedSet, key_of: Callable[[RecordedItem], Key]) -> Mapping[str, Mapping[Key, _Mean]]:
    table = _Table()
    for item in recorded.items:
        key = key_of(item)
        for model in item.answers:
            entry = table.rows[worker_id(model)][key]
            entry.total += item.accuracy(model) or 0.0
            entry.count += 1
    return {worker: dict(rows) for worker, rows in table.rows.items()}


def ranked_models(recorded: RecordedSet, models: Sequence[str]) -> list[str]:
    """Return the models from the best to the worst by mean accuracy on the items that all of them answered.

    Where they share none, each one's own items count.
    """
    shared = recorded.shared_by(models)
    items = shared.items or recorded.items

    def accuracy(model: str) -> float:
        known = [share for item in items if (share := item.accuracy(model)) is not None]
        return sum(known) / len(known) if known else 0.0

    return sorted(models, key=lambda model: (-accuracy(model), model))
