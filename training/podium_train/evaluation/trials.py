"""Environments behind the port that evaluation tries plans with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from podium_core.domain.errors import invalid
from podium_core.domain.plan import Step
from podium_core.domain.plan_format import render_plan
from podium_core.domain.plan_prompt import PlanPrompt
from podium_train.environments.port import Environment, Outcome, Task
from podium_train.environments.replay import ReplayEnvironment


@dataclass(frozen=True, slots=True)
class ReplayTrial:
    """Recorded answers, by the direct path. All systems draw the same recorded sample at the same step."""

    environment: ReplayEnvironment

    async def perform(self, rounds: Sequence[Sequence[Step]], task: Task) -> Outcome:
        """Return what became of the plans."""
        return self.environment.score_rounds(rounds, task)


@dataclass(frozen=True, slots=True)
class EnvironmentTrial:
    """Any other environment: plans are written as text for it. One round."""

    environment: Environment

    async def perform(self, rounds: Sequence[Sequence[Step]], task: Task) -> Outcome:
        """Return what became of the plan; raise PodiumError for more than one round."""
        if len(rounds) != 1:
            raise invalid("this environment plays one round; evaluate without --rounds")
        (steps,) = rounds
        ids = tuple(worker.worker_id for worker in task.workers)
        text = render_plan(
            [ids.index(step.worker_id) for step in steps],
            [step.subtask for step in steps],
            [step.access for step in steps],
        )
        return await self.environment.score(PlanPrompt("", task.question, "", ids), text, task)


class PlanScoring(Protocol):
    """An environment that performs steps directly."""

    def score_plan(self, steps: Sequence[Step], task: Task) -> Outcome:
        """Return what became of one round's plan."""
        ...


@dataclass(frozen=True, slots=True)
class DirectTrial:
    """An environment with a direct path and one round: a later round without steps accepts the answer."""

    environment: PlanScoring

    async def perform(self, rounds: Sequence[Sequence[Step]], task: Task) -> Outcome:
        """Return what became of the plan; raise PodiumError for more than one round."""
        if len(rounds) != 1:
            raise invalid("this environment plays one round; evaluate without --rounds")
        return self.environment.score_plan(rounds[0], task)
