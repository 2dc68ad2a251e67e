"""Whole questions, planned by the weights that ship and answered by the real specialists, all in this process."""

import pytest

from podium_core.orchestration.histories import VisibleStep, compose
from podium_demo.answer import SPECIALISTS, answer
from podium_demo.specialists.answering import DECLINES
from podium_demo.worker_prompt import read_task
from tests.fakes.ids import CountingIds
from tests.fakes.pools import question

from .planned import plan


def perform(text: str, max_steps: int = 5) -> tuple[str, int]:
    """Return the answer of the last step and the number of steps."""
    reply = plan(text, max_steps=max_steps)
    ids, responses = CountingIds(), list[str]()
    for step in reply.plan.steps:
        visible = [VisibleStep(i, reply.plan.steps[i].subtask, responses[i]) for i in step.access.steps]
        prompt = compose(question(text), step.subtask, visible, None, ids.tag)
        sent = "".join(piece.text for piece in prompt.pieces) or prompt.question.text
        responses.append(answer(SPECIALISTS[step.worker_id], read_task([("user", sent)]), lambda: 0))
    return responses[-1], len(responses)


@pytest.mark.parametrize(
    ("asked", "expected", "step_count"),
    [
        ("Multiply 17 by 23, write the result as a Roman numeral, and reverse the letters.", "ICXCCC", 3),
        (
            "What is 12*12, and how many days are there from 2026-01-01 to 2026-03-01? Then add both results.",
            "203",
            3,
        ),
        ("Write 2026 in Roman numerals.", "MMXXVI", 1),
        (
            "What is 7*6? How many letters are in banana? What date is 30 days after 2026-01-31?",
            "42; 6; 2026-03-02",
            4,
        ),
        ("Add 10 days to 2026-01-01, and tell me which weekday it is.", "Sunday", 1),
        ("Reverse the word hello, and uppercase it; then count the letters.", "5", 3),
        ("Convert MMXXVI to decimal, add 4 to it, and tell me if it is a leap year.", "no", 3),
        ("What is 3 + 4? Multiply by 2. Write it in words.", "fourteen", 3),
        (
            "What is 5 km in miles, and what is 10 kg in pounds?",
            "about 3.106856 miles; about 22.046226 pounds",
            1,
        ),
        ("What is 2+2, and reverse '`<think>`'?", "4; `>kniht<`", 3),
        ("Sort the words pear, apple and fig alphabetically.", "apple, fig, pear", 1),
    ],
)
def test_questions_are_answered(asked: str, expected: str, step_count: int) -> None:
    assert perform(asked) == (expected, step_count)


def test_a_chain_is_answered_and_a_tight_cap_is_kept() -> None:
    asked = "Multiply 12 by 3, subtract 6, halve the result, and write it in binary."
    assert perform(asked) == ("1111", 4)
    assert perform(asked, max_steps=2)[1] <= 2


def test_what_cannot_be_answered_is_said_plainly() -> None:
    said, _ = perform("Who wrote Hamlet?")
    assert said.startswith(DECLINES)
    said, _ = perform("What is 2+2 and who wrote Hamlet?")
    assert DECLINES in said
