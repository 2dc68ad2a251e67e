"""Plans for training questions: decided by the model, written, parsed again, and tried."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium_core.domain.plan import MAX_STEPS
from podium_core.domain.plan_format import PlanFormatError, parse_plan
from podium_core.plan_model.choices import Choice, Chooser, Shape, drawn, likeliest
from podium_core.plan_model.deciding import Decided, Deciding, Seen
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.writing import written
from podium_train.environments.port import Outcome, Verdict
from podium_train.learning.sources import Question

_log = logging.getLogger(__name__)
SCORER_FAILED = "SCORER_FAILED"
"""Why a plan is unscorable whose scorer raised."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One plan that was tried. `reward` is None when the surroundings failed."""

    choices: tuple[Choice, ...]
    shape: Shape
    rows: tuple[int, ...]
    outcome: Outcome
    sights: int = 0
    """How many earlier results steps were shown, all steps together."""

    @property
    def reward(self) -> float | None:
        """0 for no plan, 0.5 for a wrong answer, 1 for a right one."""
        return self.outcome.reward


def see(model: PlanModel, question: Question, max_steps: int = MAX_STEPS) -> Seen:
    """Return the question as the model sees it."""
    return Seen(model, question.task.question, question.task.workers, max_steps)


def roll(seen: Seen, question: Question, choose: Chooser, rollout: int) -> Rollout:
    """Decide, write, parse and try one plan."""
    decided = Deciding(seen, choose).decide()
    sights = sum(len(access.steps) for access in decided.access)
    outcome = tried(decided, question, rollout)
    return Rollout(tuple(decided.choices), decided.shape, tuple(decided.rows), outcome, sights)


def tried(decided: Decided, question: Question, rollout: int) -> Outcome:
    """Return what became of a decided plan; it passes the parser like any other.

    A scorer that raises leaves the plan unscored: its fault is not the plan's.
    """
    worker_ids = [worker.worker_id for worker in question.task.workers]
    try:
        steps = parse_plan(written(decided), worker_ids)
    except PlanFormatError as error:
        return Outcome(Verdict.INVALID, 0.0, reason=error.reason or "")
    try:
        return question.score(steps, rollout)
    except Exception:  # noqa: BLE001 - logged, and judged by how many there are
        _log.exception("a scorer failed; the plan is left out", extra={"task_id": question.task.task_id})
        return Outcome(Verdict.UNSCORABLE, None, reason=SCORER_FAILED)


def sampled(seen: Seen, question: Question, count: int, seed: Sequence[int]) -> list[Rollout]:
    """Return `count` drawn plans for one question; the same seed draws the same ones."""
    generator = np.random.default_rng(list(seed))
    return [roll(seen, question, drawn(generator), number) for number in range(count)]


def greedy(model: PlanModel, question: Question, max_steps: int = MAX_STEPS) -> Rollout:
    """Return the likeliest plan for one question, tried."""
    return roll(see(model, question, max_steps), question, likeliest, 0)
