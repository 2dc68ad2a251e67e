"""What a simulated worker takes a subtask for."""

import pytest

from podium_core.domain.few_shots import FEW_SHOTS
from podium_train.environments.roles import EXAMPLES, Role, role_of


def read(subtask: str, *, sees: bool = True, last: bool = False) -> Role:
    return role_of(subtask, sees_answers=sees, is_answer=last)


@pytest.mark.parametrize("role", Role)
def test_every_role_has_a_subtask_that_reads_as_it(role: Role) -> None:
    assert read(EXAMPLES[role]) is role


@pytest.mark.parametrize(
    ("subtask", "role"),
    [
        ("", Role.SOLVE),
        ("Solve the puzzle.", Role.SOLVE),
        ("Work out which day it is and name it.", Role.SOLVE),
        ("Compare both solutions, find any error, and give the final answer.", Role.AGGREGATE),
        ("Take the majority answer.", Role.AGGREGATE),
        ("Pick the best of the replies.", Role.AGGREGATE),
        ("Vergleiche die beiden Antworten.", Role.AGGREGATE),
        ("Verify the result of step 0.", Role.VERIFY),
        ("Double-check the arithmetic, then correct any slip.", Role.VERIFY),
        ("Prüfe die Reihenfolge gegen jede Bedingung.", Role.VERIFY),
        ("Correct the answer using the review.", Role.REFINE),
        ("Improve the draft.", Role.REFINE),
        ("Outline the cases to tell apart; do not solve yet.", Role.PLAN),
        ("Break the problem down into parts.", Role.PLAN),
    ],
)
def test_words_decide_and_the_first_named_role_counts(subtask: str, role: Role) -> None:
    assert read(subtask) is role


@pytest.mark.parametrize("role", [Role.VERIFY, Role.REFINE, Role.AGGREGATE])
def test_a_step_that_sees_no_answer_has_nothing_to_check_or_compare(role: Role) -> None:
    assert read(EXAMPLES[role], sees=False) is Role.SOLVE


def test_the_answering_step_never_only_plans() -> None:
    assert read(EXAMPLES[Role.PLAN], last=True) is Role.SOLVE


def test_words_inside_other_words_do_not_count() -> None:
    assert read("Say what a checkerboard and a planet are; explain planning permission.") is Role.SOLVE


def test_the_worked_example_with_a_review_reads_as_one() -> None:
    chain = FEW_SHOTS[-1]
    assert [read(subtask) for subtask in chain.subtasks[2:3]] == [Role.VERIFY]
