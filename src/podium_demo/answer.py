"""One request to one specialist: commands in order, each seeing the results before it."""

from collections.abc import Callable

from podium_demo.sentences import split_commands
from podium_demo.specialists import arithmetic, dates, numerals, text
from podium_demo.specialists.answering import (
    DECLINES,
    MAX_INSTRUCTION_CHARS,
    Budget,
    CannotAnswerError,
    Earlier,
    Specialist,
)
from podium_demo.worker_prompt import Task

SPECIALISTS: dict[str, Specialist] = {
    specialist.model: specialist
    for specialist in (arithmetic.SPECIALIST, text.SPECIALIST, dates.SPECIALIST, numerals.SPECIALIST)
}
"""Every demo model by name."""

_MAX_COMMANDS = 20


def answer(specialist: Specialist, task: Task, cpu_ns: Callable[[], int]) -> str:
    """Return the exact answer, or a plain sentence that says why there is none and what would work.

    `cpu_ns` reads the CPU time of the current thread. Never raises for any text.
    """
    try:
        return _answered(specialist, task, Budget(cpu_ns))
    except CannotAnswerError as reason:
        return (
            f"{DECLINES} {reason}. {specialist.model} is a demo specialist that can {specialist.abilities}."
        )


def _answered(specialist: Specialist, task: Task, budget: Budget) -> str:
    if len(task.instruction) > MAX_INSTRUCTION_CHARS:
        raise CannotAnswerError(f"the request is longer than {MAX_INSTRUCTION_CHARS} characters")
    commands = split_commands(task.instruction)
    if len(commands) > _MAX_COMMANDS:
        raise CannotAnswerError(f"the request has more than {_MAX_COMMANDS} parts")
    answers: list[str] = []
    for command in commands or [task.instruction]:
        earlier = Earlier((*task.results, *answers))
        try:
            result = specialist.solve(command, earlier, budget)
        except CannotAnswerError as reason:
            if len(commands) < 2:  # noqa: PLR2004 - a single command is the whole request
                raise
            raise CannotAnswerError(f'at "{command[:_QUOTED_CHARS]}", {reason}') from None
        # A result that builds on earlier answers stands in their place.
        answers[max(len(answers) - earlier.used, 0) :] = [result]
    return "; ".join(answers)


_QUOTED_CHARS = 60
