"""Tries the greedy policy on fixed tasks: the dev figures that choose a checkpoint."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from podium_core.domain.plan import MAX_STEPS, Step
from podium_core.plan_model.model import PlanModel
from podium_train.environments.composites import COMPOSITE, DemoItem, demo_items, one_step, one_step_makers
from podium_train.environments.demo_pool import demo_workers
from podium_train.environments.port import Outcome, Task
from podium_train.environments.replay import ReplayEnvironment
from podium_train.learning.rollouts import Rollout, greedy
from podium_train.learning.sources import DemoSource, Question
from podium_train.outcomes.cards import measure_cards
from podium_train.outcomes.items import RecordedSet, Source
from podium_train.outcomes.pools import TaskMaker, training_pool
from podium_train.outcomes.splits import Split, select


@dataclass(frozen=True, slots=True)
class Measured:
    """Accuracy over some tasks, with how many steps the plans had."""

    accuracy: float
    count: int
    steps: Mapping[int, int]

    @property
    def mean_steps(self) -> float:
        """Steps of a plan, on average."""
        return sum(steps * count for steps, count in self.steps.items()) / max(self.count, 1)


def measured(model: PlanModel, questions: Sequence[Question], max_steps: int = MAX_STEPS) -> Measured:
    """Return what the greedy plans for `questions` gave; unscorable ones are left out."""
    tried = [greedy(model, question, max_steps) for question in questions]
    scored: list[Rollout] = [rollout for rollout in tried if rollout.reward is not None]
    right = sum(rollout.outcome.is_right for rollout in scored)
    steps = Counter(len(rollout.rows) for rollout in scored)
    return Measured(right / max(len(scored), 1), len(scored), dict(sorted(steps.items())))


def composite_questions(split: Split, per_template: int, seed: int = 1) -> list[Question]:
    """Return composite tasks of a split with the demo pool in random order, cards as they ship."""
    count = per_template * 40
    items = [i for i in demo_items(split, count, seed, one_step_share=0.0) if i.kind == COMPOSITE]
    kept: Counter[str] = Counter()
    chosen = []
    for item in items:
        kept[item.family] += 1
        if kept[item.family] <= per_template:
            chosen.append(item)
    return _asked(chosen, seed)


def one_step_questions(split: Split, per_phrasing: int, seed: int = 1) -> list[Question]:
    """Return one-step tasks of a split's phrasings, likewise."""
    rng = random.Random(f"one-step {split.value} {seed}")  # noqa: S311 - reproducible, not secret
    items = [
        one_step(skill, maker, f"demo/{split.value}/one-step/{skill}/{maker}/{number}", rng)
        for skill, makers in one_step_makers(split).items()
        for maker in makers
        for number in range(per_phrasing)
    ]
    return _asked(items, seed)


def replay_questions(recorded: RecordedSet, split: Split, limit: int, seed: int = 1) -> list[Question]:
    """Return recorded reasoning-gym items of a split with random pools of known workers, at most `limit`."""
    models = training_pool(recorded.of(Source.REASONING_GYM).models)
    maker = TaskMaker(measure_cards(recorded), models)
    environment = ReplayEnvironment(recorded)
    items = select(recorded.of(Source.REASONING_GYM), [split])
    tasks = maker.draw_all(items, seed, at_least=2, at_most=4)
    questions = []
    for task in tasks[:: max(1, len(tasks) // limit)][:limit]:
        score = partial(_score, environment, task)
        questions.append(Question(task, score, None, Source.REASONING_GYM.value))
    return questions


def _score(environment: ReplayEnvironment, task: Task, steps: Sequence[Step], rollout: int) -> Outcome:
    return environment.score_plan(steps, task, rollout)


def _asked(items: Sequence[DemoItem], seed: int) -> list[Question]:
    source = DemoSource(count=0)
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    questions = []
    for item in items:
        workers = list(demo_workers())
        rng.shuffle(workers)
        questions.append(source.question(item, workers))
    return questions
