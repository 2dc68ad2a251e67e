"""Baselines that ask several times: self-consistency, majority, mixture of agents, self-refinement.

Votes are those of replay's aggregating step: answers are compared as text without case and blanks, missing
answers do not vote, and ties go to the highest-ranked worker's answer.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from podium_core.domain.plan import Access, Step
from podium_train.baselines.scorers import Scorer, chosen
from podium_train.baselines.single_step import ranked
from podium_train.environments.port import Outcome, PerformedStep, Task, Verdict
from podium_train.environments.roles import EXAMPLES, Role
from podium_train.evaluation.results import Answered, answered
from podium_train.evaluation.systems import RIVAL, System, Trial

MAX_VOTES = 5


@dataclass(frozen=True, slots=True)
class SelfConsistency:
    """The best single worker answers `votes` times; the majority counts (Wang et al., 2023)."""

    scorer: Scorer
    trial: Trial
    votes: int = 3
    marks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Names the number of answers."""
        return f"self-consistency x {self.votes}"

    async def answer(self, task: Task, run: int) -> Answered:  # noqa: ARG002 - every run is the same
        """Ask the same worker again and again and count."""
        worker = chosen(self.scorer, task)
        return answered(task, await voted(self.trial, [worker] * self.votes, task))


@dataclass(frozen=True, slots=True)
class Majority:
    """The `count` best workers of the pool (None: all) answer; code counts, so nobody compares."""

    scorer: Scorer
    trial: Trial
    count: int | None = None
    marks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Names how many vote."""
        return "majority of all" if self.count is None else f"majority of top {self.count}"

    async def answer(self, task: Task, run: int) -> Answered:  # noqa: ARG002 - every run is the same
        """Ask the best ones and count."""
        return answered(task, await voted(self.trial, ranked(self.scorer, task)[: self.count], task))


@dataclass(frozen=True, slots=True)
class MixtureOfAgents:
    """All workers propose, the best single one aggregates (Wang et al., 2024): one layer."""

    scorer: Scorer
    trial: Trial
    name: str = "MoA"
    marks: tuple[str, ...] = ()

    async def answer(self, task: Task, run: int) -> Answered:  # noqa: ARG002 - every run is the same
        """Perform the two-layer plan."""
        order = ranked(self.scorer, task)
        proposals = [Step(worker, "") for worker in order]
        everything = Access(tuple(range(len(order))))
        plan = [*proposals, Step(order[0], EXAMPLES[Role.AGGREGATE], everything)]
        return answered(task, await self.trial.perform([plan], task))


@dataclass(frozen=True, slots=True)
class SelfRefine:
    """The best single worker corrects itself, up to five steps in all (Madaan et al., 2023). Simulated."""

    scorer: Scorer
    trial: Trial
    steps: int = 5
    name: str = "self-refine x 5"
    marks: tuple[str, ...] = ()

    async def answer(self, task: Task, run: int) -> Answered:  # noqa: ARG002 - every run is the same
        """Perform solve, then check and correct in turns."""
        worker = chosen(self.scorer, task)
        plan = [Step(worker, "")]
        for k in range(1, self.steps):
            role = Role.VERIFY if k % 2 else Role.REFINE
            plan.append(Step(worker, EXAMPLES[role], Access(tuple(range(k)))))
        return answered(task, await self.trial.perform([plan], task))


@dataclass(frozen=True, slots=True)
class EqualMoney:
    """The best single worker with as many votes as the rival's plan paid for, at least one, at most five."""

    scorer: Scorer
    trial: Trial
    rival: System
    name: str = "best single, equal money"
    marks: tuple[str, ...] = (RIVAL,)

    async def answer(self, task: Task, run: int) -> Answered:
        """Ask the rival first, then spend the same."""
        paid = (await self.rival.answer(task, run)).cost_usd_micros
        worker = chosen(self.scorer, task)
        once = await voted(self.trial, [worker], task)
        price = max(1, sum(step.cost_usd_micros for step in once.steps))
        votes = max(1, min(MAX_VOTES, paid // price))
        outcome = once if votes == 1 else await voted(self.trial, [worker] * votes, task)
        return answered(task, outcome)


async def voted(trial: Trial, workers: Sequence[str], task: Task) -> Outcome:
    """Return the outcome of independent answers by `workers` and a vote taken in code."""
    outcome = await trial.perform([[Step(worker, "") for worker in workers]], task)
    if outcome.verdict is not Verdict.SCORED or len(outcome.steps) != len(workers):
        return outcome
    is_right = bool(outcome.steps[winner(outcome.steps)].is_right)
    return replace(outcome, is_right=is_right, reward=1.0 if is_right else 0.5)


def winner(steps: Sequence[PerformedStep]) -> int:
    """Return which step's answer has most votes; the earlier step on a tie, the first when none answered."""
    ballots = ["".join(step.answer.split()).casefold() for step in steps]
    counts = Counter(ballot for ballot in ballots if ballot)
    if not counts:
        return 0
    most = max(counts.values())
    return next(k for k, ballot in enumerate(ballots) if ballot and counts[ballot] == most)
