"""demo-text: what it does to text, and to earlier results."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .asking import ask, declined


@pytest.mark.parametrize(
    ("instruction", "answer"),
    [
        ("reverse the word hello", "olleh"),
        ("Reverse the letters of 'abc def'.", "fed cba"),
        ("Spell 'stressed' backwards", "desserts"),
        ("Reverse the order of the words in the sentence one two three", "three two one"),
        ("Convert hello world to upper case", "HELLO WORLD"),
        ("make \u201cHello\u201d lowercase", "hello"),
        ("convert 'the quick fox' to title case", "The Quick Fox"),
        ("Capitalise each word of hello big world", "Hello Big World"),
        ("How many letters are in the word banana?", "6"),
        ("count the vowels in education", "5"),
        ("how many words does 'a b c' have?", "3"),
        ("How many r's are in strawberry?", "3"),
        ("How many times does the letter 'a' occur in banana?", "3"),
        ("sort the words pear apple fig alphabetically", "apple fig pear"),
        ("Sort 10, 9, 2", "2, 9, 10"),
        ("sort 3, 1, 2 in descending order", "3, 2, 1"),
        ("sort the letters of hello", "ehllo"),
        ("the first 3 letters of banana", "ban"),
        ("What is the last letter of banana?", "a"),
        ("give the first two words of 'one two three'", "one two"),
        ("replace 'a' with 'o' in 'banana'", "bonono"),
        ("remove the vowels from banana", "bnn"),
        ("repeat ab 3 times", "ababab"),
        ("join the words foo and bar with a hyphen", "foo-bar"),
        ("concatenate 'foo' and 'bar'", "foobar"),
        ("is 'racecar' a palindrome?", "yes"),
        ("uppercase hello and then reverse it", "OLLEH"),
        ("reverse the phrase 'stop, then count the letters in it'", "ti ni srettel eht tnuoc neht ,pots"),
    ],
)
def test_it_changes_and_counts_text(instruction: str, answer: str) -> None:
    assert ask("text", instruction) == answer


@pytest.mark.parametrize(
    ("instruction", "results", "answer"),
    [
        ("Reverse the letters.", ("CCCXCI",), "ICXCCC"),
        ("Using the earlier result: reverse the letters.", ("CCCXCI",), "ICXCCC"),
        ("uppercase it", ("abc",), "ABC"),
        ("write the result in lowercase", ("ABC",), "abc"),
        ("count the letters", ("CCC",), "3"),
        ("replace I with 1", ("XIII",), "X111"),
        ("Join all the results together, separated by a semicolon.", ("144", "59"), "144; 59"),
        ("join both results with a comma", ("1", "2"), "1, 2"),
        ("combine them", ("a", "b", "c"), "a b c"),
    ],
)
def test_it_works_on_earlier_results(instruction: str, results: tuple[str, ...], answer: str) -> None:
    assert ask("text", instruction, *results) == answer


@pytest.mark.parametrize(
    "instruction",
    [
        "Write 2026 in Roman numerals",
        "What is 12*12?",
        "reverse it",
        "repeat abc 9999 times",
        "",
        "hello there",
    ],
)
def test_it_says_what_it_cannot_do(instruction: str) -> None:
    assert declined(ask("text", instruction))


@given(st.text(st.characters(exclude_characters="\"'`\u201c\u2018"), min_size=1, max_size=60))
def test_reversing_a_quoted_text_twice_gives_it_back(text: str) -> None:
    once = ask("text", f'Reverse "{text}"')
    assert once == text[::-1]
    assert ask("text", "reverse the result", once) == text
