"""What systems did with tasks, item by item: the one thing every metric, table and plot is made of."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from podium_core.domain.usage import Usage
from podium_train.environments.port import Outcome, Task, Verdict

CHARS_PER_TOKEN = 4
"""Recorded answers come without token counts: tokens are estimated as characters / 4, rounded up."""


def estimated_tokens(text: str) -> int:
    """Return the estimate for `text`: characters / 4, rounded up."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Answered:
    """What one system did with one task.

    `conductor_usage` is what the plans themselves cost in tokens: zero for systems without a language model.
    """

    task_id: str
    family: str
    difficulty: str
    pool: tuple[str, ...]
    verdict: Verdict
    is_right: bool
    is_exact: bool
    worker_ids: tuple[str, ...]
    rounds: int = 1
    worker_usage: Usage = field(default_factory=Usage)
    conductor_usage: Usage = field(default_factory=Usage)
    cost_usd_micros: int = 0

    @property
    def is_scorable(self) -> bool:
        """Whether the item counts at all: the surroundings did not fail."""
        return self.verdict is not Verdict.UNSCORABLE

    @property
    def tokens(self) -> int:
        """All tokens, the Conductor's own included."""
        return self.worker_usage.total_tokens + self.conductor_usage.total_tokens


def answered(
    task: Task, outcome: Outcome, own: Usage | None = None, own_cost_usd_micros: int = 0
) -> Answered:
    """Return the line of `outcome`; `own` are the tokens spent on writing the plan."""
    return Answered(
        task_id=task.task_id,
        family=task.family,
        difficulty=task.difficulty,
        pool=tuple(worker.worker_id for worker in task.workers),
        verdict=outcome.verdict,
        is_right=outcome.is_right,
        is_exact=outcome.is_exact,
        worker_ids=tuple(step.worker_id for step in outcome.steps),
        rounds=outcome.rounds,
        worker_usage=outcome.usage,
        conductor_usage=own or Usage(),
        cost_usd_micros=sum(step.cost_usd_micros for step in outcome.steps) + own_cost_usd_micros,
    )


@dataclass(frozen=True, slots=True)
class SystemRuns:
    """All runs of one system over the same tasks in the same order: one per training seed, or a single one.

    `marks` says what a reader must know: `bound` (peeks at the reference), `ablation`, ...
    """

    name: str
    runs: tuple[tuple[Answered, ...], ...]
    marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.runs or len({tuple(line.task_id for line in run) for run in self.runs}) != 1:
            raise ValueError(f"the runs of {self.name} must cover the same tasks in the same order")

    @property
    def lines(self) -> Sequence[Answered]:
        """All lines of all runs."""
        return [line for run in self.runs for line in run]

    @property
    def is_exact(self) -> bool:
        """Whether nothing in it was simulated."""
        return all(line.is_exact for line in self.lines)


@dataclass(frozen=True, slots=True)
class SuiteRuns:
    """One setting (items, pools) and all systems that were measured in it, oracle and best single by name."""

    name: str
    title: str
    systems: Mapping[str, SystemRuns]
    group: str = ""
    """Suites of one group differ in one number (a pool's size) and share a table."""
    is_part: bool = False
    """One level of another suite."""

    def __post_init__(self) -> None:
        ids = {tuple(line.task_id for line in runs.runs[0]) for runs in self.systems.values()}
        if len(ids) > 1:
            raise ValueError(f"the systems of suite {self.name} must cover the same tasks in the same order")

    @property
    def scorable(self) -> list[int]:
        """The positions of the tasks that every run of every system could be scored on."""
        runs = [run for system in self.systems.values() for run in system.runs]
        return [k for k in range(len(runs[0])) if all(run[k].is_scorable for run in runs)] if runs else []

    def levels(self) -> list["SuiteRuns"]:
        """Return the suite apart by difficulty; nothing when there is only one level."""
        some = next(iter(self.systems.values())).runs[0]
        names = sorted({line.difficulty for line in some})
        return [self._level(name) for name in names] if len(names) > 1 else []

    def _level(self, difficulty: str) -> "SuiteRuns":
        narrowed = {
            name: replace(
                system,
                runs=tuple(
                    tuple(line for line in run if line.difficulty == difficulty) for run in system.runs
                ),
            )
            for name, system in self.systems.items()
        }
        title = f"{self.title}: {difficulty} items"
        group = f"{self.name}-levels"
        return SuiteRuns(f"{self.name}-{difficulty}", title, narrowed, group, is_part=True)
