"""Which workers may answer which task: the clean pool, random pools, and tasks made of recorded items."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from podium_core.domain.pool import Worker
from podium_train.environments.port import Task
from podium_train.outcomes.cards import CardRack, noisy
from podium_train.outcomes.items import RecordedItem, RecordedSet
from podium_train.outcomes.splits import HELD_OUT_WORKERS, UNCLEAN_WORKERS

_SEED_BITS = 63


def clean_pool(models: Iterable[str]) -> tuple[str, ...]:
    """Return the models less those whose answers could often not be extracted, in alphabetical order."""
    return tuple(sorted(set(models) - UNCLEAN_WORKERS))


def training_pool(models: Iterable[str]) -> tuple[str, ...]:
    """Return the clean pool less the held-out workers: who may stand in a training pool."""
    return tuple(model for model in clean_pool(models) if model not in HELD_OUT_WORKERS)


@dataclass(frozen=True, slots=True)
class TaskMaker:
    """Makes tasks of recorded items, each with a pool of its own.

    `models` may stand in a pool, if they answered the item. `noise_sample_count` None gives cards as
    measured; a number redraws them as that many graded items a skill would have shown them.
    """

    rack: CardRack
    models: tuple[str, ...]
    noise_sample_count: int | None = None

    def task(self, item: RecordedItem, models: Sequence[str], seed: int) -> Task:
        """Return the item as a task for exactly these models, in this order."""
        workers = tuple(self._worker(model, seed) for model in models)
        return Task(
            task_id=item.item_id,
            question=item.question,
            reference=item.reference,
            family=item.family,
            category=item.category,
            difficulty=item.difficulty,
            workers=workers,
            seed=seed,
        )

    def draw(
        self, item: RecordedItem, rng: random.Random, at_least: int = 3, at_most: int = 5
    ) -> Task | None:
        """Return the item with a random pool of `at_least` to `at_most` workers, in random order.

        None when fewer than `at_least` of the models answered it.
        """
        answered = [model for model in self.models if model in item.answers]
        if len(answered) < at_least:
            return None
        size = rng.randint(at_least, min(at_most, len(answered)))
        return self.task(item, rng.sample(answered, size), rng.getrandbits(_SEED_BITS))

    def draw_all(
        self, recorded: RecordedSet, seed: int, at_least: int = 3, at_most: int = 5
    ) -> tuple[Task, ...]:
        """Return one task for each item that enough models answered.

        An item's pool depends on the seed and the item alone, not on which other items are there.
        """
        tasks = (self.draw(item, _random(seed, item), at_least, at_most) for item in recorded.items)
        return tuple(task for task in tasks if task is not None)

    def whole(self, recorded: RecordedSet, seed: int) -> tuple[Task, ...]:
        """Return one task for each item, its pool all of the models that answered it."""
        tasks = []
        for item in recorded.items:
            answered = [model for model in self.models if model in item.answers]
            if answered:
                rng = _random(seed, item)
                tasks.append(self.task(item, answered, rng.getrandbits(_SEED_BITS)))
        return tuple(tasks)

    def _worker(self, model: str, seed: int) -> Worker:
        worker = self.rack.worker(model)
        if self.noise_sample_count is None:
            return worker
        rng = np.random.default_rng([seed, *model.encode()])
        return noisy(worker, rng, self.noise_sample_count)


def is_informative(item: RecordedItem, models: Iterable[str]) -> bool:
    """Return whether the choice of worker matters: some of the models are right, and some wrong."""
    shares = [share for model in models if (share := item.accuracy(model)) is not None]
    return bool(shares) and min(shares) < max(shares)


def _random(seed: int, item: RecordedItem) -> random.Random:
    return random.Random(f"{seed} {item.item_id}")  # noqa: S311 - draws pools, guards nothing
