"""Training tasks over recorded answers: what every way of training a language model starts from."""

from dataclasses import dataclass
from pathlib import Path

from podium_core.domain.errors import invalid
from podium_train.environments.port import Task
from podium_train.environments.replay import ReplayEnvironment
from podium_train.outcomes.cards import Grain, measure_cards
from podium_train.outcomes.folder import read_folder
from podium_train.outcomes.pools import TaskMaker, is_informative, training_pool
from podium_train.outcomes.splits import Split, select

NOISE_SAMPLES = 50
"""Cards show what so many graded items a skill would have shown: none is trusted to the last point."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Tasks, and the environment that scores plans for them."""

    tasks: tuple[Task, ...]
    environment: ReplayEnvironment


def replayed(data: Path, *, seed: int, split: Split = Split.TRAIN, grain: Grain = Grain.CATEGORY) -> Replayed:
    """Return one task with a random pool for each item of `split` where the choice of worker matters.

    The same folder, seed and split give the same tasks in the same order, on every machine. Held-out workers
    stand in no pool. Raises PodiumError for a folder that cannot be read, or that leaves no task.
    """
    recorded = read_folder(data)
    models = training_pool(recorded.models)
    items = select(recorded, [split])
    telling = items.keep(item for item in items.items if is_informative(item, models))
    maker = TaskMaker(measure_cards(recorded, grain), models, NOISE_SAMPLES)
    tasks = maker.draw_all(telling, seed)
    if not tasks:
        raise invalid(
            f"the data folder leaves no task of the split {split.value} with three workers to choose from"
        )
    return Replayed(tasks, ReplayEnvironment(recorded))
