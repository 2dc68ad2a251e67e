"""Graders read what models write, and never raise."""

from collections.abc import Sequence
from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.grading.constraints import Rules
from podium_core.grading.graders import Choice, Day, Json, Listing, Number, Text
from podium_core.grading.interval import wilson
from podium_core.grading.result import MAX_CHARS, Grade, Grader

ANIMALS = ("a cat", "a dog", "an owl")
HALF = Number(Fraction(1, 2))
GRADERS: Sequence[Grader] = (
    Text(("Oslo",)),
    Text(("Oslo",), fold_case=False),
    HALF,
    Number(Fraction(25), units=("km",)),
    Number(Fraction(25), is_percent=True),
    Choice(1, ANIMALS),
    Listing(("a", "b")),
    Listing(("a", "b"), is_ordered=True),
    Day(date(2026, 11, 30)),
    Json('{"a": [1, null]}'),
    Rules(
        word_count=2, sentence_count=1, initials="ab", case="upper", forbidden_letters="z", words_per_line=1
    ),
)


@pytest.mark.parametrize(
    ("grader", "text"),
    [
        (Text(("Oslo",)), "<answer>oslo</answer>"),
        (Text(("Oslo",)), "I think.\n<ANSWER>\n“Oslo”.\n</ANSWER>\nBye"),
        (Text(("Oslo",)), "<answer>Bergen</answer> no: <answer>Oslo</answer>"),
        (Text(("Oslo",)), "<think><answer>Rome</answer></think>\nThe answer is **Oslo**."),
        (Text(("Oslo",)), "Some words.\nFinal answer: Oslo"),
        (Text(("Oslo",)), "We get $\\boxed{Oslo}$"),
        (Text(("Oslo",)), "So the capital is **Oslo**."),
        (Number(Fraction(1234567)), "1,234,567"),
        (Number(Fraction(1234567)), "1 234 567"),
        (Number(Fraction(1234567)), "1.234.567"),
        (Number(Fraction(12345, 10)), "1.234,50"),
        (Number(Fraction(15, 10)), "1,5"),
        (Number(Fraction(-5)), "\u22125"),
        (Number(Fraction(-5)), "-$5"),
        (Number(Fraction(1299, 100)), "€12.99"),
        (Number(Fraction(1299, 100)), "USD 12.99"),
        (Number(Fraction(391)), "17 \u00d7 23 = **391**"),
        (Number(Fraction(391)), "<answer>17 * 23 = 391 apples.</answer>"),
        (Number(Fraction(4)), "<answer>x = 4</answer>"),
        (Number(Fraction(7, 4)), "1 3/4"),
        (Number(Fraction(7, 4)), "\\frac{7}{4}"),
        (Number(Fraction(3200)), "3.2 \u00d7 10^3"),
        (Number(Fraction(3200)), "3.2e3"),
        (HALF, "50%"),
        (HALF, ".5"),
        (Number(Fraction(50), is_percent=True), "50 percent"),
        (Number(Fraction(50), is_percent=True), "50"),
        (Number(Fraction(25), units=("km", "kilometres")), "25 kilometres"),
        (Number(Fraction(25), units=("km",)), "25"),
        (Number(Fraction(3), tolerance=Fraction(1, 10)), "about 3.05"),
        (Choice(1, ANIMALS), "B"),
        (Choice(1, ANIMALS), "(b)"),
        (Choice(1, ANIMALS), "B) a dog"),
        (Choice(1, ANIMALS), "<answer>a dog</answer>"),
        (Choice(1, ANIMALS), "The correct answer is option B."),
        (Listing(("pear", "fig")), "[fig, 'pear']"),
        (Listing(("pear", "fig")), "Here:\n- fig\n- pear\n"),
        (Listing(("pear", "fig"), is_ordered=True), "<answer>1. pear\n2. fig</answer>"),
        (Listing(("pear", "fig")), "pear and fig"),
        (Listing(()), "None."),
        (Listing(("-3", "12"), is_ordered=True), "-3, 12"),
        (Day(date(2026, 11, 30)), "30 November 2026"),
        (Day(date(2026, 11, 30)), "It is Monday, Nov. 30th, 2026."),
        (Day(date(2026, 11, 30)), "2026-11-30"),
        (Day(date(2026, 11, 30)), "30.11.2026"),
        (Day(date(2026, 11, 30)), "11/30/2026"),
        (Json('{"a": 1, "b": [true]}'), 'Sure:\n```json\n{"b": [true], "a": 1.0}\n```\nDone.'),
        (Json('{"a": 1}'), '<answer>{"a":1}</answer>'),
        (Json('{"a": 1}'), 'First {"a": 2} but then {"a": 1}'),
        (
            Rules(word_count=3, last_word="end"),
            "<answer>this is the-end end</answer>".replace("the-end ", ""),
        ),
        (Rules(line_count=2, words_per_line=2, case="lower"), "one two\n\nthree four\n"),
        (Rules(sentence_count=2, includes=("tea",)), "I like tea. Truly 3.5 cups!"),
    ],
)
def test_right_however_it_is_written(grader: Grader, text: str) -> None:
    assert grader.grade(text).grade is Grade.RIGHT


@pytest.mark.parametrize(
    ("grader", "text"),
    [
        (Text(("Oslo",), fold_case=False), "oslo"),
        (Text(("Oslo",)), "<answer>Oslo or Bergen</answer>"),
        (Text(("Oslo",)), "Oslo is what I would have said, but it is Bergen"),
        (Number(Fraction(4)), "<answer>4 or 5</answer>"),
        (Number(Fraction(4)), "none"),
        (Number(Fraction(50)), "50%"),
        (Number(Fraction(25), units=("km",)), "25 miles"),
        (Number(Fraction(12)), "1,2"),
        (Number(Fraction(4)), "x4"),
        (Choice(1, ANIMALS), "A"),
        (Choice(1, ANIMALS), "A dog, surely B"),
        (Choice(1, ANIMALS), "Z"),
        (Listing(("pear", "fig"), is_ordered=True), "fig, pear"),
        (Listing(("pear", "pear")), "pear"),
        (Listing(("pear",)), "none"),
        (Day(date(2026, 3, 4)), "03/04/2026"),
        (Day(date(2026, 2, 28)), "2026-02-30"),
        (Json("1"), "true"),
        (Json('{"a": 1}'), '[{"a": 1}]'),
        (Json('{"a": 1}'), '{"a": "1"}'),
        (Json("[]"), "not json"),
        (Rules(word_count=3), "only two"),
        (Rules(case="upper"), "Mixed"),
        (Rules(are_words_distinct=True), "tea Tea"),
        (Rules(forbidden_letters="e"), "TEA"),
        (Rules(first_word="a"), "the a"),
        (Rules(initials="ab"), "bread and"),
    ],
)
def test_wrong_stays_wrong(grader: Grader, text: str) -> None:
    assert grader.grade(text).grade is Grade.WRONG


@pytest.mark.parametrize("text", ["", " \n\t", "x" * (MAX_CHARS + 1)])
def test_nothing_to_judge(text: str) -> None:
    assert {grader.grade(text).grade for grader in GRADERS} == {Grade.UNSCORABLE}


PIECES = st.sampled_from(
    ["<answer>", "</answer>", "</think>", "\\boxed{", "}", "{", "[", "]", '"', "```", "**", "Answer:", "-", "1,", "9" * 80,
     "1e999", "/0", "3/", "%", "$", "½", "²", "٣", "\ud800", "\x00", "\u2028", "İ", "and", "30 Feb 2026", "2026-", "A)", "null"]
)  # fmt: skip


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=30).map(" ".join))
def test_no_text_makes_a_grader_raise(text: str) -> None:
    for grader in GRADERS:
        assert grader.grade(text).grade in Grade


@pytest.mark.parametrize(
    "unit", ["[", "{", "(", "9", "9,", "1.", "1 ", "<answer>", "**", "- a\n", "``` ", "\\boxed{", "answer "]
)
def test_long_hostile_texts_are_quick(unit: str) -> None:
    text = unit * (MAX_CHARS // len(unit))
    for grader in GRADERS:
        assert grader.grade(text).grade in Grade


@given(st.integers(-(10**12), 10**12))
def test_any_spelling_of_a_whole_number_is_read(value: int) -> None:
    grader = Number(Fraction(value))
    for text in (f"{value}", f"{value:,}", f"{value:_}", f"<answer>{value:,}.00</answer>", f"It is {value}."):
        assert grader.grade(text).is_right
    assert not grader.grade(f"{value + 1:,}").is_right


def test_wilson_is_wider_the_less_was_measured() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(90, 100)
    assert (round(low, 4), round(high, 4)) == (0.8256, 0.9448)
    assert wilson(9, 10)[0] < low
    assert wilson(10, 10)[1] == pytest.approx(1.0)
