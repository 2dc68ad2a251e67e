"""All baselines of one data folder, fitted and ready to answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from podium_core.domain.errors import invalid
from podium_train.baselines.ensembles import Majority, MixtureOfAgents, SelfConsistency, SelfRefine
from podium_train.baselines.scorers import BestSingle, FamilyTable, RandomScorer, Scorer, source_of
from podium_train.baselines.single_step import OneWorker, Oracle, Routed
from podium_train.environments.port import Task
from podium_train.evaluation.systems import PEEKS, System, Trial
from podium_train.outcomes.cards import worker_id
from podium_train.outcomes.items import RecordedSet
from podium_train.outcomes.splits import HELD_OUT_WORKERS, UNCLEAN_WORKERS, Split, select


class TextRouter(Protocol):
    """Makes a router that reads the question."""

    def __call__(self, train: RecordedSet, dev: RecordedSet, *, by_level: bool) -> Scorer:
        """Return it, fitted; `by_level` tells it each item's level."""
        ...


NAMES = (
    "workers",
    "best-single",
    "random",
    "family-table",
    "tfidf",
    "knn",
    "self-consistency",
    "majority",
    "moa",
    "self-refine",
    "oracle",
)
"""What --systems may name."""
_ONE_FOR_ALL = "TF-IDF + logistic, one for all levels"
_TOLD_LEVEL = "told the level"
_KNOWS_ALL = "learnt held-out workers"


@dataclass(frozen=True, slots=True)
class TextRouters:
    """How the routers that need scikit-learn are made; None where it is not installed."""

    logistic: TextRouter
    neighbours: TextRouter


class Lineup:
    """Fits each baseline once, without the held-out workers, and gives those that a suite can use."""

    def __init__(
        self, recorded: RecordedSet, trial: Trial, names: Sequence[str], routers: TextRouters | None
    ) -> None:
        unknown = sorted(set(names) - set(NAMES))
        if unknown:
            raise invalid(f"--systems does not know {', '.join(unknown)}; it knows {', '.join(NAMES)}")
        self._trial, self._names = trial, frozenset(names)
        every_train = without_models(select(recorded, [Split.TRAIN]), UNCLEAN_WORKERS)
        every_dev = without_models(select(recorded, [Split.DEV]), UNCLEAN_WORKERS)
        train = without_models(every_train, HELD_OUT_WORKERS)
        dev = without_models(every_dev, HELD_OUT_WORKERS)
        self._leveled = _leveled_sources(train)
        self.best = BestSingle(dev)
        self._families = FamilyTable(train)
        self._texts = _text_systems(self._names, routers, train, dev)
        self._held_out = {worker_id(model) for model in HELD_OUT_WORKERS & set(recorded.models)}
        self._knowing = _knowing_systems(self._names, routers, every_train, every_dev)

    def systems(self, tasks: Sequence[Task], *, is_whole: bool) -> list[System]:
        """Return the systems for these tasks; the dear ensembles only where whole pools are asked."""
        trial, best = self._trial, self.best
        made: list[System] = []
        if "workers" in self._names and is_whole:
            made += [OneWorker(worker, trial) for worker in _in_every_pool(tasks)]
        is_leveled = any(source_of(task.task_id) in self._leveled for task in tasks)
        made += self._cheap(is_leveled=is_leveled)
        if any(worker.worker_id in self._held_out for task in tasks for worker in task.workers):
            made += [Routed(name, scorer, trial, marks) for name, scorer, marks in self._knowing]
        if is_whole:
            dear: Mapping[str, Sequence[System]] = {
                "self-consistency": [SelfConsistency(best, trial)],
                "majority": [Majority(best, trial, 3), Majority(best, trial)],
                "moa": [MixtureOfAgents(best, trial)],
                "self-refine": [SelfRefine(best, trial)],
            }
            made += [system for name, group in dear.items() if name in self._names for system in group]
        if "oracle" in self._names:
            made.append(Oracle(best, trial))
        return made

    def _cheap(self, *, is_leveled: bool) -> Iterable[System]:
        trial = self._trial
        if "random" in self._names:
            yield Routed("random", RandomScorer(), trial)
        if "best-single" in self._names:
            yield Routed("best single", self.best, trial)
        if "family-table" in self._names:
            yield Routed("true-family table", self._families, trial, (PEEKS,))
        for name, scorer, marks in self._texts:
            if is_leveled or name != _ONE_FOR_ALL:
                yield Routed(name, scorer, trial, marks)


def without_models(recorded: RecordedSet, models: Iterable[str]) -> RecordedSet:
    """Return the items less what these models answered; items that nobody else answered go."""
    dropped = frozenset(models)
    kept = []
    for item in recorded.items:
        answers = {model: given for model, given in item.answers.items() if model not in dropped}
        if answers:
            kept.append(replace(item, answers=answers))
    return recorded.keep(kept)


def _text_systems(
    names: frozenset[str], routers: TextRouters | None, train: RecordedSet, dev: RecordedSet
) -> list[tuple[str, Scorer, tuple[str, ...]]]:
    if not names & {"tfidf", "knn"} or not train.items:
        return []
    if routers is None:
        raise invalid(
            "the systems tfidf and knn need scikit-learn: install requirements/train.txt, or leave them out"
            " of --systems"
        )
    made: list[tuple[str, Scorer, tuple[str, ...]]] = []
    if "tfidf" in names:
        made += [
            ("TF-IDF + logistic", routers.logistic(train, dev, by_level=True), (_TOLD_LEVEL,)),
        ]
        leveled = _leveled_sources(train)
        if leveled:
            both = _of_sources(train, leveled), _of_sources(dev, leveled)
            made.append((_ONE_FOR_ALL, routers.logistic(*both, by_level=False), ()))
    if "knn" in names:
        made.append(("kNN", routers.neighbours(train, dev, by_level=True), (_TOLD_LEVEL,)))
    return made


def _knowing_systems(
    names: frozenset[str], routers: TextRouters | None, train: RecordedSet, dev: RecordedSet
) -> list[tuple[str, Scorer, tuple[str, ...]]]:
    """Return routers that also learnt from the held-out workers' answers, as no Conductor did.

    They are fitted where such workers were recorded, so nowhere in a folder without them.
    """
    sources = {source_of(item.item_id) for item in train.items if HELD_OUT_WORKERS & set(item.answers)}
    train, dev = _of_sources(train, sources), _of_sources(dev, sources)
    if not train.items:
        return []
    made: list[tuple[str, Scorer, tuple[str, ...]]] = []
    if "family-table" in names:
        made.append(("true-family table, knows all", FamilyTable(train), (PEEKS, _KNOWS_ALL)))
    if "tfidf" in names and routers is not None:
        router = routers.logistic(train, dev, by_level=True)
        made.append(("TF-IDF + logistic, knows all", router, (_TOLD_LEVEL, _KNOWS_ALL)))
    return made


def _leveled_sources(recorded: RecordedSet) -> set[str]:
    """Return the sources whose items have more than one difficulty."""
    levels: dict[str, set[str]] = {}
    for item in recorded.items:
        levels.setdefault(source_of(item.item_id), set()).add(item.difficulty)
    return {source for source, found in levels.items() if len(found) > 1}


def _of_sources(recorded: RecordedSet, sources: set[str]) -> RecordedSet:
    return recorded.keep(item for item in recorded.items if source_of(item.item_id) in sources)


def _in_every_pool(tasks: Sequence[Task]) -> list[str]:
    pools = [{worker.worker_id for worker in task.workers} for task in tasks]
    return sorted(set.intersection(*pools)) if pools else []
