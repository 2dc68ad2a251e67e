"""Where a question may be cut, and what its parts look like as subtasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.plan_model.breaks import breaks_of, leans_on_earlier, points_back, starts_request, subtask_of
from podium_core.plan_model.deciding import spans


def parts(question: str) -> list[str]:
    return [question[a:b].strip() for a, b in spans(breaks_of(question), len(question))]


def test_marks_and_connecting_words_that_follow_each_other_are_one_place() -> None:
    assert parts("Multiply 2 by 3, and then reverse it. Spell it out.") == [
        "Multiply 2 by 3",
        "reverse it",
        "Spell it out.",
    ]


def test_words_that_only_connect_are_no_part() -> None:
    assert parts("First, add 2 and 3. Finally, double it.") == ["First, add 2 and 3", "double it."]


@pytest.mark.parametrize(
    ("question", "taken_apart"),
    [
        ("Sort the words pear, apple and fig alphabetically.", 1),
        ("Sort the words pear, apple, and fig alphabetically, then count the letters.", 2),
        ("Join the words violin, meadow, jigsaw with a hyphen. Finally, reverse it.", 2),
        ("Join 'a, b', \"c\" and 'd' with a dash; reverse it", 2),
        ("Add 12, 40 and 7, and write the result as a Roman numeral.", 2),
        ("How many days lie between 1956-03-01 and 1957-02-03?", 1),
        ("Translate apple juice, orange peel and fig to French and count the letters", 2),
    ],
)
def test_a_list_stays_whole(question: str, taken_apart: int) -> None:
    assert len(parts(question)) == taken_apart


@pytest.mark.parametrize(
    "question",
    [
        "Reverse lantern, multiply 3 by 4 and count the vowels in 'x'",
        "Multiply 3 by 4, result in Roman numerals, and reverse it",
        "Multiply 6 by 7, then double and spell out",
    ],
)
def test_requests_after_a_comma_are_no_list(question: str) -> None:
    assert len(parts(question)) == 3


def test_nothing_inside_quotes_is_a_place_and_long_questions_have_none() -> None:
    assert len(parts('Reverse "one, two, then three".')) == 1
    assert breaks_of("word, " * 400) == ()
    assert breaks_of("Add it, " * 30) == ()


@given(st.text(max_size=400))
def test_parts_are_in_order_and_never_overlap(question: str) -> None:
    ends = 0
    for start, end in spans(breaks_of(question), len(question)):
        assert ends <= start <= end <= len(question)
        ends = end


@pytest.mark.parametrize(
    ("part", "has_input", "subtask"),
    [
        ("then reverse it", True, "Reverse it."),
        ("what is 2 plus 3", False, "What is 2 plus 3?"),
        ("and double", True, "Using the earlier result: double."),
    ],
)
def test_a_part_becomes_a_sentence_of_its_own(part: str, has_input: bool, subtask: str) -> None:
    assert subtask_of(part, has_input=has_input) == subtask


def test_references_and_requests_are_told_from_names() -> None:
    assert points_back("multiply the result by 3")
    assert not points_back("reverse 'it'")
    assert leans_on_earlier("reverse the letters")
    assert leans_on_earlier("multiply by 3")
    assert not leans_on_earlier("reverse the word hello")
    assert not leans_on_earlier("add 2 and 3")
    assert starts_request("and then count the letters")
    assert not starts_request("lantern, pebble and marble")
