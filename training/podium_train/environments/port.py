"""The one interface of every environment: a prompt, a completion and a task go in, an outcome comes out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.domain.pool import Worker
from podium_core.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class Task:
    """One question with the pool that may answer it.

    `workers` is this task's own pool (random k of n in training). `reference` never reaches a prompt.
    """

    task_id: str
    question: str
    reference: str
    family: str
    category: str
    difficulty: str
    workers: tuple[Worker, ...]
    seed: int


class Verdict(StrEnum):
    """Whether an outcome may be learnt from."""

    SCORED = "scored"
    INVALID = "invalid"
    """The completion is no plan: the Conductor's fault, reward 0."""
    UNSCORABLE = "unscorable"
    """The surroundings failed (timeout, refused call, sandbox): left out, never counted as wrong."""


@dataclass(frozen=True, slots=True)
class PerformedStep:
    """One step as it was performed. `role` is what a simulator took the subtask for; empty when real."""

    worker_id: str
    answer: str
    is_right: bool | None
    usage: Usage
    cost_usd_micros: int
    latency_us: int
    role: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one completion.

    `reward` is None exactly when the verdict is UNSCORABLE. `is_exact` says that every effect came from
    recorded or real answers; simulated ones never share a table with exact ones unmarked.
    """

    verdict: Verdict
    reward: float | None
    is_right: bool = False
    reason: str = ""
    steps: Sequence[PerformedStep] = field(default_factory=tuple)
    rounds: int = 0
    is_exact: bool = True

    @property
    def usage(self) -> Usage:
        """Tokens of all workers together."""
        total = Usage()
        for step in self.steps:
            total += step.usage
        return total


class Environment(Protocol):
    """Tries completions. Cancelling a call frees what it holds."""

    async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
        """Return what became of `completion`, written for `prompt` (whose `worker_ids` are its ordinals).

        Never raises for what a completion or a worker did: that is an outcome.
        """
        ...
