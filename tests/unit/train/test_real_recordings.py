"""What holds for the real recordings, where `PODIUM_TRAIN_DATA` names a folder of them."""

import os
import random
from pathlib import Path

import pytest

from podium_core.domain.plan import Access, Step
from podium_train.environments.performing import Performer
from podium_train.environments.port import Task
from podium_train.environments.replay import ReplayEnvironment
from podium_train.environments.roles import EXAMPLES
from podium_train.outcomes.cards import measure_cards
from podium_train.outcomes.folder import read_folder
from podium_train.outcomes.items import RecordedSet, Source
from podium_train.outcomes.pools import TaskMaker, clean_pool, training_pool
from podium_train.outcomes.splits import HELD_OUT_WORKERS, Split, select
from tests.fakes.ids import CountingIds, FakeClock

DATA = os.environ.get("PODIUM_TRAIN_DATA", "")

pytestmark = pytest.mark.skipif(not DATA, reason="PODIUM_TRAIN_DATA names no folder of recorded answers")


@pytest.fixture(scope="module")
def gym() -> RecordedSet:
    return read_folder(Path(DATA), [Source.REASONING_GYM])


def test_every_split_has_items_and_training_pools_have_no_held_out_worker(gym: RecordedSet) -> None:
    assert all(select(gym, [split]).items for split in Split)
    families = {split: {item.family for item in select(gym, [split]).items} for split in Split}
    assert not families[Split.UNSEEN] & (families[Split.TRAIN] | families[Split.DEV] | families[Split.TEST])
    assert not HELD_OUT_WORKERS & set(training_pool(gym.models))
    questions = {
        split: {" ".join(item.question.split()) for item in select(gym, [split]).items} for split in Split
    }
    assert not questions[Split.TRAIN] & (questions[Split.TEST] | questions[Split.DEV])


def random_plan(task: Task, rng: random.Random) -> tuple[Step, ...]:
    subtasks = ["", *EXAMPLES.values()]
    return tuple(
        Step(
            rng.choice(task.workers).worker_id,
            rng.choice(subtasks),
            Access(tuple(sorted(rng.sample(range(index), rng.randint(0, index))))),
        )
        for index in range(rng.randint(1, 5))
    )


async def test_the_direct_path_equals_the_runner_on_real_answers(gym: RecordedSet) -> None:
    rng = random.Random(7)
    tasks = TaskMaker(measure_cards(gym), clean_pool(gym.models)).draw_all(select(gym, [Split.DEV]), seed=7)
    served = ReplayEnvironment(gym, performer=Performer(FakeClock(), CountingIds()))
    direct = ReplayEnvironment(gym)
    for task in rng.sample(tasks, min(100, len(tasks))):
        plan = random_plan(task, rng)
        assert await served.score_by_runner([plan], task, 3) == direct.score_plan(plan, task, 3)
