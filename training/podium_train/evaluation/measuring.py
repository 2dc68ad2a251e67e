"""Lets systems answer the tasks of a suite and gathers what became of them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from podium_core.domain.errors import PodiumError
from podium_train.environments.port import Task
from podium_train.evaluation.results import Answered, SuiteRuns, SystemRuns
from podium_train.evaluation.suites import Suite
from podium_train.evaluation.systems import System

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Entrant:
    """A system and how often it runs: once, or once per training seed."""

    system: System
    run_count: int = 1


async def measured(suite: Suite, entrants: Sequence[Entrant], *, concurrency: int, told: Told) -> SuiteRuns:
    """Return what every entrant did with every task. `told` hears one line per system.

    At most `concurrency` tasks are under way at once; order does not depend on which ends first.
    """
    systems: dict[str, SystemRuns] = {}
    for entrant in entrants:
        name = entrant.system.name
        if name in systems:
            raise ValueError(f"two systems are called {name}")
        runs = [await _run(entrant.system, suite.tasks, run, concurrency) for run in range(entrant.run_count)]
        systems[name] = SystemRuns(name, tuple(runs), entrant.system.marks)
        told(f"{suite.name}: {name}")
    return SuiteRuns(suite.name, suite.title, _meaningful(systems), suite.group)


async def _run(system: System, tasks: Sequence[Task], run: int, concurrency: int) -> tuple[Answered, ...]:
    answers: list[Answered | None] = [None] * len(tasks)
    waiting = iter(enumerate(tasks))

    async def work() -> None:
        for k, task in waiting:
            answers[k] = await system.answer(task, run)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(tasks))):
                group.create_task(work())
    except* PodiumError as failures:
        raise _first(failures) from None
    return tuple(answer for answer in answers if answer is not None)


def _first(failures: BaseExceptionGroup[PodiumError]) -> PodiumError:
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _meaningful(systems: Mapping[str, SystemRuns]) -> dict[str, SystemRuns]:
    """Leave out systems that could be scored nowhere, such as a worker that stands in no pool."""
    return {name: runs for name, runs in systems.items() if any(line.is_scorable for line in runs.lines)}
