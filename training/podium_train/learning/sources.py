"""Where training questions come from: recorded items with random pools, and the demo tasks."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Protocol

import numpy as np

from podium_core.domain.plan import Step
from podium_core.domain.pool import Skill, Worker
from podium_train.environments.composites import COMPOSITE, DemoItem, demo_items
from podium_train.environments.demo import DemoEnvironment, demo_task
from podium_train.environments.demo_pool import demo_workers
from podium_train.environments.port import Outcome, Task
from podium_train.environments.replay import ReplayEnvironment
from podium_train.outcomes.cards import CardRack, Grain, measure_cards, noisy, only_skills
from podium_train.outcomes.items import RecordedItem, RecordedSet, Source
from podium_train.outcomes.pools import TaskMaker, is_informative
from podium_train.outcomes.splits import HELD_OUT_WORKERS, Split, select

_FOLDS = 4
_NOISE_COUNTS = (None, 60, 30)


@dataclass(frozen=True, slots=True)
class Question:
    """A task with what tries plans for it.

    `accuracies` are the workers' recorded shares of right answers to this very question, in the order of the
    task's workers; None where nothing was recorded. They teach the warm start and are never shown to the
    model.
    """

    task: Task
    score: Callable[[Sequence[Step], int], Outcome]
    accuracies: tuple[float, ...] | None
    kind: str


class QuestionSource(Protocol):
    """Draws questions."""

    def draw(self, rng: random.Random) -> Question:
        """Return a question; the same generator state gives the same one."""
        ...


class ReplaySource:
    """Recorded items of the train split with random pools.

    Cards are measured on the other folds of the train split, so that no card knows the question at hand;
    sometimes they are redrawn with the noise of few samples, and sometimes the question's own skill is taken
    off all cards, so that the model learns to judge by skills that are near.
    """

    def __init__(
        self,
        recorded: RecordedSet,
        *,
        hidden_share: float = 0.4,
        only_informative: bool = True,
        sizes: tuple[int, int] = (2, 5),
        source_weights: Mapping[Source, float] | None = None,
    ) -> None:
        train = select(recorded, [Split.TRAIN])
        self._models = tuple(model for model in train.models if model not in HELD_OUT_WORKERS)
        self._environment = ReplayEnvironment(recorded)
        self._hidden_share, self._sizes = hidden_share, sizes
        self._racks = _fold_racks(train)
        self._items: dict[Source, list[RecordedItem]] = {}
        for item in train.items:
            known = [model for model in self._models if model in item.answers]
            if len(known) >= sizes[0] and (not only_informative or is_informative(item, known)):
                self._items.setdefault(item.source, []).append(item)
        weights = source_weights or {Source.REASONING_GYM: 0.75, Source.MMLU_PRO: 0.2, Source.ZEROEVAL: 0.05}
        self._sources = [source for source in self._items if weights.get(source, 0.0) > 0]
        self._weights = [weights[source] for source in self._sources]

    def draw(self, rng: random.Random) -> Question:
        """Return a recorded item with a pool of its own."""
        while True:
            source = rng.choices(self._sources, self._weights)[0]
            item = rng.choice(self._items[source])
            rack = self._racks[fold_of(item)]
            task = TaskMaker(rack, self._models, rng.choice(_NOISE_COUNTS)).draw(item, rng, *self._sizes)
            if task is not None:
                return self._question(item, task, rng)

    def _question(self, item: RecordedItem, task: Task, rng: random.Random) -> Question:
        if rng.random() < self._hidden_share:
            task = replace(task, workers=_without_skill(task.workers, item))
        accuracies = tuple(item.accuracy(worker.provider_model) or 0.0 for worker in task.workers)

        def score(steps: Sequence[Step], rollout: int) -> Outcome:
            return self._environment.score_plan(steps, task, rollout)

        return Question(task, score, accuracies, item.source.value)


class DemoSource:
    """Demo tasks of the templates that train; pools are the four specialists in random order, cards noisy."""

    def __init__(
        self, split: Split = Split.TRAIN, *, count: int = 4_000, seed: int = 0, share: float = 0.35
    ) -> None:
        self._items = demo_items(split, count, seed, one_step_share=share)
        self._environment = DemoEnvironment()

    def draw(self, rng: random.Random) -> Question:
        """Return a demo task."""
        item = rng.choice(self._items)
        workers = [_renoised(worker, rng) for worker in demo_workers()]
        rng.shuffle(workers)
        return self.question(item, workers)

    def question(self, item: DemoItem, workers: Sequence[Worker]) -> Question:
        """Return `item` as a question for these workers."""
        task = demo_task(item, workers)

        def score(steps: Sequence[Step], rollout: int) -> Outcome:
            del rollout  # the specialists always say the same
            return self._environment.score_plan(steps, task)

        known: tuple[float, ...] | None = None
        if item.kind != COMPOSITE:
            alone = [score((Step(worker.worker_id, ""),), 0).is_right for worker in workers]
            known = tuple(map(float, alone))
        return Question(task, score, known, item.kind)


def fold_of(item: RecordedItem) -> int:
    """Return the fold of the train split that an item is in."""
    return sha256(f"fold {item.question}".encode()).digest()[0] % _FOLDS


def _fold_racks(train: RecordedSet) -> list[CardRack]:
    """Return for each fold the cards measured on all others."""
    return [
        measure_cards(train.keep(item for item in train.items if fold_of(item) != fold))
        for fold in range(_FOLDS)
    ]


def _without_skill(workers: Sequence[Worker], item: RecordedItem) -> tuple[Worker, ...]:
    """Return the workers without the item's own skill on their cards, at any level, if others are left."""
    own = Grain.FAMILY.skill_of(item)

    def is_other(skill: Skill) -> bool:
        return skill.name.partition(",")[0] != own

    return tuple(
        only_skills(worker, [skill.name for skill in worker.card.skills if is_other(skill)])
        for worker in workers
    )


def _renoised(worker: Worker, rng: random.Random) -> Worker:
    """Return the worker with a card as another calibration might have measured it."""
    return noisy(worker, np.random.default_rng(rng.getrandbits(32)), rng.choice((20, 60, 200)))
