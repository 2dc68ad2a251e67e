"""Second rounds as training rows of their own: a first plan was tried, the Conductor may revise or accept.

One action an episode is all that the engines know, so the first round stands in the prompt; the paper (arXiv
2512.04388) trains both in one episode. First plans come from random workers, so that right and wrong first
answers both come, whatever the Conductor itself would have planned.
"""

from collections.abc import Sequence
from random import Random
from typing import Protocol, runtime_checkable

from podium_core.domain.plan import Plan, PlanSource, Step
from podium_core.domain.plan_format import PlanFormatError, parse_plan
from podium_train.environments.port import Environment, Outcome, Task, Verdict
from podium_train.learning.prompts import Draw, Earlier


@runtime_checkable
class RoundsEnvironment(Environment, Protocol):
    """An environment that also performs plans in rounds."""

    def score_rounds(self, rounds: Sequence[Sequence[Step]], task: Task, rollout: int = 0) -> Outcome:
        """Return the outcome of a first plan and those after it; one without steps accepts the answer."""
        ...


class FirstAttempts:
    """Tries a first plan for a task: its question as it stands, to one random worker of its pool."""

    def __init__(self, environment: RoundsEnvironment) -> None:
        self._environment = environment

    def __call__(self, task: Task, random: Random) -> Earlier | None:
        """Return the plan and the answer it led to; None when it could not be tried."""
        plan = Plan((Step(random.choice(task.workers).worker_id, ""),), PlanSource.MODEL)
        outcome = self._environment.score_rounds((plan.steps,), task)
        if outcome.verdict is not Verdict.SCORED:
            return None
        return Earlier(plan, outcome.steps[-1].answer)


def score_later(environment: RoundsEnvironment, draw: Draw, earlier: Earlier, completion: str) -> Outcome:
    """Return the outcome of a second round; three empty lists accept what the first one answered."""
    try:
        text = draw.prompt.prefill + completion
        steps = parse_plan(text, draw.prompt.worker_ids, round_index=1)
    except PlanFormatError as error:
        return Outcome(Verdict.INVALID, 0.0, reason=error.reason)
    return environment.score_rounds((earlier.plan.steps, steps), draw.task)
