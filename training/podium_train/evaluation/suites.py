"""The settings in which systems are compared: which items, which pools. What data lacks is left out.

Items come from the test split, or from families that nobody trained on. Pools of known workers leave out the
workers that are held out of training; "clean" pools hold them, known by their cards alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from podium_train.baselines.scorers import ranked_models
from podium_train.environments.port import Task
from podium_train.outcomes.cards import CardRack, worker_id
from podium_train.outcomes.items import RecordedItem, RecordedSet, Source
from podium_train.outcomes.pools import TaskMaker, clean_pool, training_pool
from podium_train.outcomes.splits import HELD_OUT_WORKERS, Split, select

_FEWEST, _MOST = 3, 5
_SIZES = range(2, 7)
_MMLU_SIZES = range(2, 8)


@dataclass(frozen=True, slots=True)
class Suite:
    """One setting. `is_whole`: all workers stand in every pool, so the dear ensembles make sense.

    `is_ablated`: what Conductors are without a part of theirs is measured here too.
    """

    name: str
    title: str
    tasks: tuple[Task, ...]
    group: str = ""
    is_whole: bool = False
    is_ablated: bool = False


@dataclass(frozen=True, slots=True)
class SuiteMaker:
    """Makes the suites of one data folder. Cards are those of `rack`; the seed draws pools.

    `size_items` is how many items, drawn evenly by their ids, each pool size is measured on at most.
    """

    recorded: RecordedSet
    rack: CardRack
    seed: int
    card_samples: int | None = None
    size_items: int = 600

    def suites(self) -> list[Suite]:
        """Return every suite that the folder has items for."""
        made = [*self._reasoning_gym(), *self._mmlu_pro(), *self._zeroeval()]
        return [suite for suite in made if suite.tasks]

    def _maker(self, models: Iterable[str]) -> TaskMaker:
        return TaskMaker(self.rack, tuple(models), self.card_samples)

    def _reasoning_gym(self) -> Iterable[Suite]:
        recorded = self.recorded.of(Source.REASONING_GYM)
        test, unseen = select(recorded, [Split.TEST]), select(recorded, [Split.UNSEEN])
        clean, known = clean_pool(recorded.models), training_pool(recorded.models)
        held_out = {worker_id(model) for model in HELD_OUT_WORKERS}
        drawn = self._drawn(clean, test)
        title = "Held-out items, random pools of 3 to 5 from the clean pool"
        yield Suite("rg-clean", title, drawn, is_ablated=True)
        answered = tuple(task for task in drawn if _all_answered(recorded.by_id[task.task_id], task))
        yield Suite("rg-answered", f"{title}: those that the whole pool answered readably", answered)
        yield Suite(
            "rg-known",
            "Families and workers known, random pools of 3 to 5",
            self._drawn(known, test),
        )
        yield Suite(
            "rg-unseen-workers",
            "Unseen workers in the pool, known by their cards; families known",
            tuple(task for task in drawn if held_out & {worker.worker_id for worker in task.workers}),
            is_ablated=True,
        )
        yield Suite("rg-unseen-families", "Unseen families, workers known", self._drawn(known, unseen))
        yield Suite("rg-unseen-both", "Unseen families, clean pool", self._drawn(clean, unseen))
        yield from self._whole(select(recorded, [Split.TEST, Split.UNSEEN]), clean)
        dominant = _dominant(select(recorded, [Split.DEV]), clean)
        yield Suite(
            "rg-without-dominant",
            f"The best worker on dev ({worker_id(dominant)}) removed, random pools of 3 to 5"
            if dominant
            else "",
            self._drawn([model for model in clean if model != dominant], test),
        )
        yield from (self._sized("rg", "Reasoning-gym, clean pool", test, clean, k) for k in _SIZES)

    def _mmlu_pro(self) -> Iterable[Suite]:
        recorded = self.recorded.of(Source.MMLU_PRO)
        test = select(recorded, [Split.TEST])
        for k in _MMLU_SIZES:
            yield self._sized("mmlu", "MMLU-Pro, all recorded models", test, recorded.models, k)

    def _zeroeval(self) -> Iterable[Suite]:
        recorded = self.recorded.of(Source.ZEROEVAL)
        tasks = self._drawn(recorded.models, select(recorded, [Split.TEST]))
        yield Suite("zeroeval", "ZeroEval (GSM8K, CRUXEval), random pools of 3 to 5", tasks)

    def _drawn(self, models: Sequence[str], items: RecordedSet) -> tuple[Task, ...]:
        if len(models) < _FEWEST:
            return ()
        return self._maker(models).draw_all(items, self.seed, _FEWEST, _MOST)

    def _sized(self, name: str, title: str, items: RecordedSet, models: Sequence[str], size: int) -> Suite:
        drawn = self._maker(models).draw_all(items, self.seed, size, size) if len(models) >= size else ()
        tasks = evenly(drawn, self.size_items)
        return Suite(f"{name}-size-{size}", f"{title}: pools of {size}", tasks, group=f"{name}-size")

    def _whole(self, items: RecordedSet, models: Sequence[str]) -> Iterable[Suite]:
        """All workers that were recorded at a level, on the items that all of them answered."""
        tasks: list[Task] = []
        for level in sorted({item.difficulty for item in items.items}):
            at_level = items.keep(item for item in items.items if item.difficulty == level)
            there = [model for model in models if _covers(at_level, model)]
            shared = self._maker(there).whole(at_level.shared_by(there), self.seed) if there else ()
            tasks += shared
            title = f"All held-out {level} items, all clean workers in the pool"
            yield Suite(f"rg-all-{level}", title, shared, is_whole=True)
        yield Suite(
            "rg-all", "All held-out items, all clean workers in the pool", tuple(tasks), is_whole=True
        )


def evenly(tasks: Sequence[Task], most: int) -> tuple[Task, ...]:
    """Return at most `most` of the tasks, drawn by a hash of their ids."""
    return tuple(sorted(tasks, key=_place)[:most])


def _all_answered(item: RecordedItem, task: Task) -> bool:
    """Return whether an answer could be extracted from everything that the pool said."""
    models = {worker.provider_model for worker in task.workers}
    return all(given.answer is not None for model in models for given in item.answers[model])


def _place(task: Task) -> bytes:
    return sha256(task.task_id.encode()).digest()


def _covers(items: RecordedSet, model: str) -> bool:
    """Return whether a model answered at least half of the items."""
    return 2 * sum(model in item.answers for item in items.items) >= len(items.items)


def _dominant(dev: RecordedSet, models: Sequence[str]) -> str | None:
    return next(iter(ranked_models(dev, models)), None)
