"""The supervised warm start: which worker answers a question, from recorded outcomes as soft targets.

It teaches the choice of a worker, and that questions with recorded answers are given to one worker. Of
composite tasks it knows no outcome and shows no plan. There it keeps both shapes open, and gives hints of
language: a cut is likelier where a request begins, a look at an earlier result where a part points back, and
joining where several results are left. Which cuts, who sees whom and when to join is left to reinforcement.
"""

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from podium_core.plan_model.breaks import leans_on_earlier, starts_request
from podium_core.plan_model.choices import SHAPES, Choice, Kind, Shape
from podium_core.plan_model.deciding import Seen
from podium_core.plan_model.features import Duty, access_features, join_features
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.words import Floats
from podium_train.learning.rollouts import see
from podium_train.learning.sources import Question, QuestionSource
from podium_train.policy.twin import Batch, Twin, batches_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WarmOptions:
    """How the warm start learns.

    `sharpness` is the temperature of the soft targets over recorded accuracies; `alone_chance` how likely a
    question with recorded answers should be given to one worker, `parts_chance` how likely one without
    should be taken apart, and `hint_chance` how likely the hints of language are followed.
    """

    questions: int = 6_000
    epochs: int = 6
    batch: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    sharpness: float = 0.2
    alone_chance: float = 0.9
    parts_chance: float = 0.6
    hint_chance: float = 0.8
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Lesson:
    """A choice with the probabilities it should have had."""

    choice: Choice
    target: tuple[float, ...]


def lessons_of(model: PlanModel, question: Question, options: WarmOptions) -> list[Lesson]:
    """Return what a question with recorded answers teaches."""
    seen = see(model, question)
    lessons = [] if question.accuracies is None else _worker_lessons(seen, question.accuracies, options)
    favoured = Shape.PARTS if question.accuracies is None else Shape.ALONE
    chance = options.parts_chance if question.accuracies is None else options.alone_chance
    allowed = seen.allowed_shapes()
    if sum(allowed) > 1 and allowed[SHAPES.index(favoured)]:
        rest = (1.0 - chance) / (sum(allowed) - 1)
        target = tuple(
            (chance if shape is favoured else rest) if may else 0.0
            for shape, may in zip(SHAPES, allowed, strict=True)
        )
        lessons.append(Lesson(Choice(Kind.SHAPE, seen.shape, allowed, 0), target))
    return lessons if question.accuracies is not None else [*lessons, *_hints(seen, options)]


def _hints(seen: Seen, options: WarmOptions) -> list[Lesson]:
    """Return hints of language: where a request begins, which part points back at which, and to join."""
    both = (True, True)

    def hint(kind: Kind, features: Floats, *, is_likelier: bool) -> Lesson:
        yes = options.hint_chance if is_likelier else 1.0 - options.hint_chance
        return Lesson(Choice(kind, features, both, 0), (1.0 - yes, yes))

    hints = [
        hint(Kind.CUT, features, is_likelier=starts_request(part.text))
        for features, part in zip(seen.cuts, seen.parts[1:], strict=True)
    ]
    for step in range(1, len(seen.parts)):
        back = leans_on_earlier(seen.parts[step].text)
        for earlier in range(step):
            features = access_features(seen.parts, step, earlier, is_unused=earlier == step - 1)
            hints.append(hint(Kind.ACCESS, features, is_likelier=back and earlier == step - 1))
    if len(seen.parts) > 1:
        features = join_features(seen.whole, seen.parts, len(seen.parts))
        hints.append(hint(Kind.JOIN, features, is_likelier=True))
    return hints


def _worker_lessons(seen: Seen, accuracies: tuple[float, ...], options: WarmOptions) -> list[Lesson]:
    """Return who should have been asked, whether the question is all there is or a part of more."""
    scores = np.asarray(accuracies) / options.sharpness
    weights = np.exp(scores - scores.max())
    target = tuple((weights / weights.sum()).tolist())
    everyone = (True,) * len(accuracies)
    return [
        Lesson(Choice(Kind.WORKER, seen.workers(seen.whole, duty), everyone, 0), target)
        for duty in (Duty.WHOLE, Duty.PART, Duty.SOLVER)
    ]


def draw_lessons(
    model: PlanModel, sources: Sequence[tuple[QuestionSource, float]], options: WarmOptions
) -> list[Lesson]:
    """Return the lessons of `options.questions` questions, drawn from the sources by their weights."""
    rng = random.Random(f"warm start {options.seed}")  # noqa: S311 - reproducible, not secret
    lessons: list[Lesson] = []
    for number in range(options.questions):
        source = rng.choices([s for s, _ in sources], [w for _, w in sources])[0]
        lessons += lessons_of(model, source.draw(rng), options)
        if number % 1_000 == 0:
            _log.info("warm start: %d questions read", number)
    return lessons


def learn_warm_start(twin: Twin, lessons: Sequence[Lesson], options: WarmOptions) -> float:
    """Fit the twin to the lessons and return the last epoch's mean loss, in nats."""
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    optimiser = torch.optim.AdamW(
        twin.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
    )
    steps = options.epochs * (len(lessons) // options.batch)
    step, mean = 0, 0.0
    for epoch in range(options.epochs):
        order, losses = rng.permutation(len(lessons)), []
        for start in range(0, len(order) - options.batch + 1, options.batch):
            chosen = [lessons[i] for i in order[start : start + options.batch]]
            for group in optimiser.param_groups:
                group["lr"] = options.learning_rate * (1.0 - step / max(steps, 1))
            loss = _loss(twin, chosen)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            step += 1
        mean = float(np.mean(losses))
        _log.info("warm start: epoch %d, loss %.4f", epoch, mean)
    return mean


def _loss(twin: Twin, lessons: Sequence[Lesson]) -> Tensor:
    total = torch.zeros(())
    for kind, batch in batches_of([lesson.choice for lesson in lessons]).items():
        logs = functional.log_softmax(twin.logits_of(kind, batch), dim=1).masked_fill(~batch.allowed, 0.0)
        total = total - (_targets(batch, lessons) * logs).sum()
    return total / len(lessons)


def _targets(batch: Batch, lessons: Sequence[Lesson]) -> Tensor:
    target = torch.zeros(batch.allowed.shape)
    for row, place in enumerate(batch.places.tolist()):
        wanted = lessons[place].target
        target[row, : len(wanted)] = torch.tensor(wanted)
    return target
