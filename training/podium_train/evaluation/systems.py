"""What can be measured: systems that answer tasks, and the two ports they stand on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from podium_core.domain.plan import Plan, PlanSource, Step
from podium_core.domain.plan_format import PlanFormatError, parse_plan
from podium_core.domain.pool import Worker
from podium_core.domain.run import Caps
from podium_core.domain.usage import Usage
from podium_train.environments.performing import invalid_outcome
from podium_train.environments.port import Outcome, Task, Verdict
from podium_train.evaluation.results import Answered, answered

PEEKS = "peeks"
"""Mark of a system that is told what no real one knows: the reference, or the true family."""
ABLATION = "ablation"
"""Mark of a system that is a Conductor with something taken away."""
RIVAL = "spends what the Conductor spends"
"""Mark of a baseline whose budget is a Conductor's."""
PROMPTED = "prompted, not trained"
"""Mark of a language model that writes plans by the serving prompt alone."""
WORKER = "worker"
"""Mark of a single worker that answers everything itself."""


class System(Protocol):
    """Answers tasks one by one. `run` numbers repeated runs, so that chance can differ between them."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def marks(self) -> tuple[str, ...]:
        """What a reader of its row must know."""
        ...

    async def answer(self, task: Task, run: int) -> Answered:
        """Return what became of one task. Never raises for what a plan or a worker did."""
        ...


class Trial(Protocol):
    """Tries plans: an environment, seen from the evaluation."""

    async def perform(self, rounds: Sequence[Sequence[Step]], task: Task) -> Outcome:
        """Return what became of one plan per round."""
        ...


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What a Conductor is asked. The order of `workers` carries no meaning."""

    question: str
    workers: tuple[Worker, ...]
    caps: Caps
    seed: int
    round: int = 0
    previous_plan: Plan | None = None
    previous_answer: str = ""


@dataclass(frozen=True, slots=True)
class WrittenPlan:
    """A plan as text. `worker_ids[k]` is what it calls model k; `usage` is what writing it took."""

    completion: str
    worker_ids: tuple[str, ...]
    usage: Usage = Usage()
    cost_usd_micros: int = 0


class PlanWriter(Protocol):
    """A Conductor: question and cards in, plan text out."""

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        """Return the plan text, valid or not."""
        ...


@dataclass(frozen=True, slots=True)
class Conducted:
    """A Conductor whose plans are tried. `writers` has one per training seed; run k uses the k-th.

    With `max_rounds` above one it is shown the answer of its plan and may write another, or accept.
    """

    name: str
    writers: tuple[PlanWriter, ...]
    trial: Trial
    caps: Caps = Caps()
    max_rounds: int = 1
    marks: tuple[str, ...] = ()

    async def answer(self, task: Task, run: int) -> Answered:
        """Return what became of the plan that the run's writer wrote for `task`."""
        writer = self.writers[run % len(self.writers)]
        asked = PlanQuestion(task.question, task.workers, self.caps, task.seed)
        written = await writer.write(asked)
        usage, cost = written.usage, written.cost_usd_micros
        try:
            rounds = [_steps(written, asked)]
        except PlanFormatError as error:
            return answered(task, invalid_outcome(error), usage, cost)
        outcome = await self.trial.perform(rounds, task)
        while len(rounds) < self.max_rounds and outcome.verdict is Verdict.SCORED:
            asked = _later(asked, rounds[-1], outcome)
            written = await writer.write(asked)
            usage, cost = usage + written.usage, cost + written.cost_usd_micros
            try:
                more = _steps(written, asked)
            except PlanFormatError:
                break  # as in serving: the answer there is stays
            if not more:
                break
            rounds.append(more)
            outcome = await self.trial.perform(rounds, task)
        return answered(task, outcome, usage, cost)


def _steps(written: WrittenPlan, asked: PlanQuestion) -> tuple[Step, ...]:
    return parse_plan(
        written.completion, written.worker_ids, max_steps=asked.caps.max_steps, round_index=asked.round
    )


def _later(asked: PlanQuestion, steps: Sequence[Step], outcome: Outcome) -> PlanQuestion:
    return replace(
        asked,
        round=asked.round + 1,
        previous_plan=Plan(tuple(steps), PlanSource.MODEL, asked.round),
        previous_answer=outcome.steps[-1].answer if outcome.steps else "",
    )
