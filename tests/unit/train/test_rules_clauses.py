"""Questions fall apart where a new request starts, and references are understood."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_train.baselines.rules.clauses import MAX_CLAUSES, MAX_QUESTION_CHARS, Refers, clauses_of
from podium_train.baselines.rules.skills import worker_for
from tests.fakes.pools import worker


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("What is 1.5 + 2?", ["What is 1.5 + 2"]),
        ("Add 3, 4 and 5", ["Add 3, 4 and 5"]),
        (
            "Multiply 2 by 3 and then reverse it; uppercase it.",
            ["Multiply 2 by 3", "reverse it", "uppercase it"],
        ),
        ("First, add 2 and 3. Second, double it.", ["add 2 and 3", "double it"]),
        (
            "Reverse 'one, then count two. Then add.' please",
            ["Reverse 'one, then count two. Then add.' please"],
        ),
        ("Between March 1, 2026 and March 3, 2026", ["Between March 1, 2026 and March 3, 2026"]),
    ],
)
def test_questions_are_split(question: str, texts: list[str]) -> None:
    assert [clause.text.rstrip("?") for clause in clauses_of(question)] == [
        text.rstrip("?") for text in texts
    ]


@pytest.mark.parametrize(
    ("clause", "refers"),
    [
        ("reverse the letters", Refers.LATEST),
        ("reverse the word hello", Refers.NOTHING),
        ("write it in binary", Refers.LATEST),
        ("write the result as a Roman numeral", Refers.LATEST),
        ("convert to binary", Refers.LATEST),
        ("multiply by 3", Refers.LATEST),
        ("add 10 days", Refers.LATEST),
        ("add 10 days to 2026-01-01", Refers.NOTHING),
        ("take the first 2 letters", Refers.LATEST),
        ("add both results", Refers.ALL),
        ("join them with a comma", Refers.ALL),
        ("add the two results together", Refers.ALL),
        ("what is the sum of 3 and 4", Refers.NOTHING),
        ("reverse 'it'", Refers.NOTHING),
        ("what is 2+2", Refers.NOTHING),
    ],
)
def test_references_are_understood(clause: str, refers: Refers) -> None:
    assert [c.refers for c in clauses_of(f"What is 1+1? {clause}.")][1] is refers


def test_questions_out_of_bounds_are_left_whole() -> None:
    assert clauses_of("add 1 and 2. " * (MAX_CLAUSES + 1)) == []
    assert clauses_of("x" * (MAX_QUESTION_CHARS + 1)) == []


@given(st.text(max_size=400))
def test_clauses_are_pieces_of_the_question(question: str) -> None:
    for clause in clauses_of(question):
        assert clause.text.removesuffix("?") in question


ALL_SKILLS = tuple(
    worker(name, skills={name: 900_000}) for name in ("arithmetic", "text", "dates", "units", "numerals")
)


@pytest.mark.parametrize(
    ("text", "skill"),
    [
        ("Multiply 17 by 23", "arithmetic"),
        ("What is 12*12?", "arithmetic"),
        ("What is 15% of 80?", "arithmetic"),
        ("Add both results", "arithmetic"),
        ("Reverse the letters", "text"),
        ("How many r's are in strawberry?", "text"),
        ("Count the digits", "text"),
        ("Spell 'stressed' backwards", "text"),
        ("How many days are there from 2026-01-01 to 2026-03-01?", "dates"),
        ("Add 10 days to March 1, 2026", "dates"),
        ("Which weekday is it", "dates"),
        ("How many hours are in 3 days?", "units"),
        ("Convert 5 km to miles", "units"),
        ("What is 98.6 degrees Fahrenheit in Celsius?", "units"),
        ("Write 2026 in Roman numerals", "numerals"),
        ("Write it in words", "numerals"),
        ("Spell out 391", "numerals"),
        ("Convert it to binary", "numerals"),
        ("Who wrote Hamlet?", None),
        ("What does the word love mean?", None),
    ],
)
def test_words_point_at_skills(text: str, skill: str | None) -> None:
    found = worker_for(text, ALL_SKILLS)
    assert (found[0].worker_id if found else None) == skill
