"""Demo tasks as suites: real execution, real decomposition, templates split before any training."""

from collections.abc import Sequence

from podium_train.baselines.rules.writer import RulesPlanner
from podium_train.baselines.scorers import Scorer
from podium_train.baselines.single_step import OneWorker, Oracle, Routed
from podium_train.environments.composites import COMPOSITE, DemoItem, demo_items
from podium_train.environments.demo_pool import demo_workers
from podium_train.environments.port import Task
from podium_train.evaluation.bars import COMPOSITES, ONE_STEPS
from podium_train.evaluation.suites import Suite
from podium_train.evaluation.systems import Conducted, System, Trial
from podium_train.outcomes.splits import Split

_DEV_ITEMS = 400


def demo_suites(count: int, seed: int) -> list[Suite]:
    """Return held-out composite tasks, and one-step tasks in held-out phrasings, about `count` in all."""
    items = demo_items(Split.TEST, count, seed)
    composite = [demo_task(item, seed) for item in items if item.kind == COMPOSITE]
    single = [demo_task(item, seed) for item in items if item.kind != COMPOSITE]
    return [
        Suite(
            COMPOSITES,
            "Composite demo tasks, held-out templates",
            tuple(composite),
            is_whole=True,
            is_ablated=True,
        ),
        Suite(ONE_STEPS, "One-step demo tasks, held-out phrasings", tuple(single), is_whole=True),
    ]


def demo_task(item: DemoItem, seed: int) -> Task:
    """Return a demo item as a task for all four specialists."""
    number = int(item.item_id.rpartition("/")[2])
    return Task(
        item.item_id,
        item.question,
        item.answer,
        item.family,
        item.kind,
        item.kind,
        demo_workers(),
        seed * 1_000_003 + number,
    )


async def best_specialist(trial: Trial, seed: int) -> Scorer:
    """Return the scorer of the one specialist that is right most often on the dev templates."""
    tasks = [demo_task(item, seed) for item in demo_items(Split.DEV, _DEV_ITEMS, seed)]
    rights = {
        worker.worker_id: sum(
            [(await OneWorker(worker.worker_id, trial).answer(task, 0)).is_right for task in tasks]
        )
        for worker in demo_workers()
    }
    return _Fixed({worker: float(right) for worker, right in rights.items()})


def demo_systems(trial: Trial, best: Scorer) -> Sequence[System]:
    """Return the baselines of demo tasks: each specialist, the best one, the rules planner, the oracle."""
    alone: list[System] = [OneWorker(worker.worker_id, trial) for worker in demo_workers()]
    return [
        *alone,
        Routed("best single", best, trial),
        Conducted("rules planner", (RulesPlanner(),), trial),
        Oracle(best, trial, name="oracle"),
    ]


class _Fixed:
    def __init__(self, scores: dict[str, float]) -> None:
        self._scores = scores

    def scores(self, task: Task) -> dict[str, float]:
        return {worker.worker_id: self._scores[worker.worker_id] for worker in task.workers}
