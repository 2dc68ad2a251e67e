"""demo-numerals: every notation, both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_demo.specialists.notations import Notation, from_roman, read, roman, written
from podium_demo.specialists.number_words import cardinal, ordinal, ordinal_digits, parse

from .asking import ask, declined


@pytest.mark.parametrize(
    ("instruction", "answer"),
    [
        ("Write 2026 in Roman numerals.", "MMXXVI"),
        ("What is MMXXVI in Arabic numerals?", "2026"),
        ("What is the value of the Roman numeral XIV", "14"),
        ("What is the Roman numeral for 14?", "XIV"),
        ("What is 255 in hexadecimal", "FF"),
        ("convert 1010 from binary to decimal", "10"),
        ("Convert binary 1010 to decimal", "10"),
        ("convert 0xff to decimal", "255"),
        ("convert the hexadecimal number ff to binary", "11111111"),
        ("Convert octal 17 to decimal", "15"),
        ("write -5 in binary", "-101"),
        ("Spell out 391", "three hundred and ninety-one"),
        ("write 1,250 in words", "one thousand two hundred and fifty"),
        ("What number is three hundred and ninety-one?", "391"),
        ("Write 'twenty-first' as a number", "21"),
        ("write 21 as an ordinal", "21st"),
        ("write 21 as an ordinal in words", "twenty-first"),
        ("express forty-two in binary", "101010"),
    ],
)
def test_it_converts(instruction: str, answer: str) -> None:
    assert ask("numerals", instruction) == answer


@pytest.mark.parametrize(
    ("instruction", "results", "answer"),
    [
        ("write the result as a Roman numeral", ("391",), "CCCXCI"),
        ("Convert it to binary", ("The product is 10.",), "1010"),
        ("spell out the result in words", ("12",), "twelve"),
        ("Convert the result to decimal", ("XIV",), "14"),
        ("convert both results to roman numerals", ("4", "5"), "IV; V"),
    ],
)
def test_it_works_on_earlier_results(instruction: str, results: tuple[str, ...], answer: str) -> None:
    assert ask("numerals", instruction, *results) == answer


@pytest.mark.parametrize(
    "instruction",
    [
        "Write 4000 in roman numerals",
        "Write 0 in roman numerals",
        "convert XIIII to decimal",
        "convert 1010 to decimal",
        "Write 3.5 in words",
        "write " + "9" * 40 + " in words",
        "write -3 as an ordinal",
        "What is 12*12",
        "uppercase hello",
        "",
    ],
)
def test_it_says_what_it_cannot_do(instruction: str) -> None:
    assert declined(ask("numerals", instruction))


def test_roman_numerals_are_a_bijection() -> None:
    numerals = [roman(value) for value in range(1, 4000)]
    assert len(set(numerals)) == 3999
    assert [from_roman(text) for text in numerals] == list(range(1, 4000))


@given(st.integers(-(10**36) + 1, 10**36 - 1))
def test_number_words_give_the_number_back(value: int) -> None:
    assert parse(cardinal(value)) == value
    if value >= 0:
        assert parse(ordinal(value)) == value
        assert ordinal_digits(value)[:-2] == str(value)


@given(
    st.sampled_from([Notation.BINARY, Notation.OCTAL, Notation.HEXADECIMAL]), st.integers(-(10**100), 10**100)
)
def test_bases_give_the_number_back(notation: Notation, value: int) -> None:
    assert read(written(value, notation), notation) == value


@given(st.text("abdefhinorstuvwy -", max_size=40))
def test_what_is_no_number_word_is_none(text: str) -> None:
    value = parse(text)
    assert value is None or parse(cardinal(value)) == value
