"""Composite demo tasks: solvable by their parts, by no single specialist, and scored as the runner would."""

import random
from collections.abc import AsyncGenerator

import pytest

from podium_core.domain.plan import Access, Step
from podium_core.domain.usage import Usage
from podium_core.orchestration.ports import Completion, Delta, Permitted, StepCall, WorkerEvent
from podium_core.plan_model.breaks import JOIN, subtask_of
from podium_demo.answer import SPECIALISTS, answer
from podium_demo.worker_prompt import read_task
from podium_train.environments.composite_templates import TEMPLATES
from podium_train.environments.composites import (
    COMPOSITE,
    DemoItem,
    composite,
    demo_items,
    one_step_makers,
)
from podium_train.environments.demo import DemoEnvironment, demo_task
from podium_train.environments.demo_pool import demo_workers
from podium_train.environments.performing import Performer
from podium_train.outcomes.splits import Split
from tests.fakes.ids import CountingIds, FakeClock

EVERY = [template for templates in TEMPLATES.values() for template in templates]
ENVIRONMENT = DemoEnvironment()


def ideal(item: DemoItem) -> list[Step]:
    """Return the plan that gives each part to its specialist."""
    sides, _, end = item.family.partition(" : ")
    lengths = [len(side.split()) for side in sides.split(" & ")]
    starts = [sum(lengths[:side]) for side in range(len(lengths))]
    ends = tuple(start + length - 1 for start, length in zip(starts, lengths, strict=True))
    steps = []
    for index, part in enumerate(item.parts):
        sees = ends if index == sum(lengths) else () if index in starts else (index - 1,)
        steps.append(Step(part.specialist, subtask_of(part.text, has_input=bool(sees)), Access(sees)))
    if end == "joined":
        steps.append(Step("demo-text", JOIN, Access(ends)))
    return steps


@pytest.mark.parametrize("template", EVERY)
def test_its_parts_solve_it_and_no_specialist_does_alone(template: str) -> None:
    for seed in range(6):
        item = composite(template, f"demo/{seed}", random.Random(seed))
        task = demo_task(item, demo_workers())
        assert ENVIRONMENT.score_plan(ideal(item), task).reward == 1.0, item.question
        for worker in task.workers:
            assert ENVIRONMENT.score_plan([Step(worker.worker_id, "")], task).reward == 0.5


def unordered(template: str) -> tuple[frozenset[str], str]:
    sides, _, end = template.partition(" : ")
    return frozenset(sides.split(" & ")), end


def part_names(split: Split) -> set[str]:
    return {
        name
        for template in TEMPLATES[split]
        for name in template.replace(" & ", " ").partition(" : ")[0].split()
    }


def test_no_template_and_no_phrasing_is_in_two_splits() -> None:
    assert len(EVERY) == len(set(map(unordered, EVERY)))
    assert len(TEMPLATES[Split.TEST]) >= 30
    train, held = one_step_makers(Split.TRAIN), one_step_makers(Split.TEST)
    assert all(not set(train[skill]) & set(held[skill]) for skill in train)


def test_held_out_templates_have_parts_that_nothing_else_has() -> None:
    own = part_names(Split.TEST) - part_names(Split.TRAIN) - part_names(Split.DEV)
    having = [t for t in TEMPLATES[Split.TEST] if own & set(t.replace(" & ", " ").split())]
    assert len(having) >= len(TEMPLATES[Split.TEST]) / 3


def test_items_are_the_same_for_the_same_seed_only() -> None:
    assert demo_items(Split.DEV, 20, 1) == demo_items(Split.DEV, 20, 1)
    assert demo_items(Split.DEV, 20, 1) != demo_items(Split.DEV, 20, 2)


class Specialists:
    """The demo provider's specialists, given the very messages that the runner sends."""

    async def complete(self, call: StepCall) -> AsyncGenerator[WorkerEvent, None]:
        pieces = "".join(piece.text for piece in call.prompt.pieces)
        messages = [
            *((m.role, m.text) for m in call.prompt.history),
            ("user", pieces or call.prompt.question.text),
        ]
        text = answer(SPECIALISTS[call.worker_id], read_task(messages), lambda: 0)
        yield Permitted(0)
        yield Completion("stop", Usage(1, 1), 0, 1, message=Delta(text))


async def test_the_direct_path_equals_the_runner() -> None:
    rng = random.Random(3)
    performer = Performer(FakeClock(), CountingIds())
    for item in demo_items(Split.TRAIN, 30, 5):
        task = demo_task(item, demo_workers())
        plans = [[Step(rng.choice(task.workers).worker_id, "")]]
        if item.kind == COMPOSITE:
            plans += [
                ideal(item),
                [*ideal(item)[:1], Step(rng.choice(task.workers).worker_id, "", Access((0,)))],
            ]
        for plan in plans:
            finished = await performer.perform([plan], task, Specialists())
            said = finished.answer.text if finished.answer else None
            assert ENVIRONMENT.score_plan(plan, task).steps[-1].answer == said
