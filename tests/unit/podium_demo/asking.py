"""Asks a specialist in tests."""

from podium_demo.answer import SPECIALISTS, answer
from podium_demo.specialists.answering import DECLINES
from podium_demo.worker_prompt import Task


def ask(model: str, instruction: str, *results: str) -> str:
    """Return the answer of `demo-<model>`; CPU time stands still."""
    return answer(SPECIALISTS[f"demo-{model}"], Task(instruction, results), lambda: 0)


def declined(text: str) -> bool:
    return text.startswith(DECLINES)
