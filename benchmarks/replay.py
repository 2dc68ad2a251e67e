"""How many rollouts a second the replay environment scores: `python -m benchmarks.replay [DATA]`.

Without a data folder it records invented answers. Counts CPU seconds of this process, one core.
"""

import asyncio
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from podium_core.domain.clock import SystemClock
from podium_core.domain.ids import RandomIds
from podium_core.domain.plan import Access, Step
from podium_core.domain.plan_format import render_plan
from podium_core.domain.plan_prompt import build_prompt
from podium_core.domain.run import Caps
from podium_train.environments.performing import Performer, question_of
from podium_train.environments.port import Task
from podium_train.environments.replay import ReplayEnvironment
from podium_train.environments.roles import EXAMPLES
from podium_train.outcomes.cards import measure_cards
from podium_train.outcomes.folder import read_folder
from podium_train.outcomes.items import RecordedAnswer, RecordedItem, RecordedSet, Source
from podium_train.outcomes.pools import TaskMaker, clean_pool

_DIRECT, _RUNNER = 4_000, 400


def invented(count: int) -> RecordedSet:
    """Return items that five models answered, rightly about half the time."""
    rng = random.Random(1)
    return RecordedSet(
        tuple(
            RecordedItem(
                f"reasoning_gym/easy/sums/{number}",
                Source.REASONING_GYM,
                "sums",
                "arithmetic",
                "easy",
                f"What is {number} plus {number}?",
                str(2 * number),
                {
                    f"x/model-{k}": tuple(
                        RecordedAnswer(right, str(2 * number + 1 - right), 200)
                        for right in rng.choices((0, 1), k=3)
                    )
                    for k in range(5)
                },
            )
            for number in range(count)
        )
    )


def plan(task: Task, rng: random.Random, steps: int) -> tuple[Step, ...]:
    return tuple(
        Step(
            rng.choice(task.workers).worker_id,
            rng.choice(["", *EXAMPLES.values()]),
            Access(tuple(sorted(rng.sample(range(index), rng.randint(0, index))))),
        )
        for index in range(steps)
    )


def told(name: str, count: int, started_s: float) -> None:
    print(f"{name:<42} {count / (time.process_time() - started_s):>9,.0f} rollouts/s")


async def measure(recorded: RecordedSet, tasks: Sequence[Task]) -> None:
    rng = random.Random(2)
    clock = SystemClock()
    direct = ReplayEnvironment(recorded)
    served = ReplayEnvironment(recorded, performer=Performer(clock, RandomIds(clock)))
    drawn = [rng.choice(tasks) for _ in range(_DIRECT)]
    single = [(plan(task, rng, 1), task) for task in drawn]
    several = [(plan(task, rng, rng.randint(1, 5)), task) for task in drawn]
    for name, pairs in (("direct, one step", single), ("direct, 1 to 5 steps", several)):
        started_s = time.process_time()
        for steps, task in pairs:
            direct.score_plan(steps, task)
        told(name, _DIRECT, started_s)
    asked = []
    for steps, task in several[:_RUNNER]:
        prompt = build_prompt(question_of(task), task.workers, Caps(), seed=task.seed)
        ordinals = [prompt.worker_ids.index(step.worker_id) for step in steps]
        text = render_plan(ordinals, [s.subtask for s in steps], [s.access for s in steps])
        asked.append((prompt, text, task))
    for name, environment in (
        ("direct, 1 to 5 steps, parsed", direct),
        ("runner, 1 to 5 steps, parsed", served),
    ):
        started_s = time.process_time()
        for prompt, text, task in asked:
            await environment.score(prompt, text, task)
        told(name, _RUNNER, started_s)


def main() -> None:
    recorded = read_folder(Path(sys.argv[1]), [Source.REASONING_GYM]) if sys.argv[1:] else invented(500)
    maker = TaskMaker(measure_cards(recorded), clean_pool(recorded.models))
    asyncio.run(measure(recorded, maker.draw_all(recorded, seed=1)))


if __name__ == "__main__":
    main()
