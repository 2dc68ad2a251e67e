"""demo-arithmetic: exact where it answers, plain where it does not."""

import operator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_demo.specialists.answering import Budget, CannotAnswerError, Earlier
from podium_demo.specialists.expressions import evaluate

from .asking import ask, declined


@pytest.mark.parametrize(
    ("instruction", "answer"),
    [
        ("Multiply 17 by 23", "391"),
        ("what is 12*12?", "144"),
        ("What is (3+4)*2 - 10/4", "11.5"),
        ("The sum of 3, 4 and 5", "12"),
        ("Add 1,250 and 3", "1253"),
        ("How many more is 12 than 5?", "7"),
        ("How much less is 5 than 12?", "7"),
        ("15% of 80", "12"),
        ("what percent of 80 is 12", "15"),
        ("Increase 200 by 10%", "220"),
        ("2**10", "1024"),
        ("2^3^2", "512"),
        ("-2**2", "-4"),
        ("2**-2", "0.25"),
        ("10 % 3", "1"),
        ("-7 % 3", "2"),
        ("7 // 2", "3"),
        ("1/3+1/6", "0.5"),
        ("1/3", "1/3"),
        ("0.1+0.2", "0.3"),
        ("seventeen times twenty-three", "391"),
        ("square root of 144 plus 5", "17"),
        ("3 squared", "9"),
        ("half of 50", "25"),
        ("round 10/3 to 2 decimal places", "3.33"),
        ("round 2.5 to the nearest whole number", "3"),
        ("sum of the digits of 391", "13"),
        ("the largest of 3, 9 and 4", "9"),
        ("What is the remainder when 17 is divided by 5?", "2"),
        ("5 \N{MULTIPLICATION SIGN} 6 \N{MINUS SIGN} 2", "28"),
        ("Multiply 17 by 23, then add 5 to it.", "396"),
        ("What is 2+3 and what is 4*5? Then add both results.", "25"),
        ("What is 2+3? And what is 4*5?", "5; 20"),
        ("0**0", "1"),
        ("1**99999999999", "1"),
    ],
)
def test_it_calculates_exactly(instruction: str, answer: str) -> None:
    assert ask("arithmetic", instruction) == answer


@pytest.mark.parametrize(
    ("instruction", "results", "answer"),
    [
        ("add both results", ("144", "59"), "203"),
        ("Add them together.", ("144", "59"), "203"),
        ("multiply the two numbers", ("3", "5"), "15"),
        ("add 5", ("391",), "396"),
        ("add 5 to it", ("Sure! 17 times 23 = 391.",), "396"),
        ("the result times 3", ("7",), "21"),
        ("multiply it by itself", ("7",), "49"),
        ("divide by 7", ("391",), "391/7"),
        ("double it", ("-4",), "-8"),
        ("subtract 1", ("1/3",), "-2/3"),
    ],
)
def test_it_works_on_earlier_results(instruction: str, results: tuple[str, ...], answer: str) -> None:
    assert ask("arithmetic", instruction, *results) == answer


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        ("9**9**9", "3,900 digits"),
        ("2**-99999999", "3,900 digits"),
        ("1/0", "divides by zero"),
        ("5 % 0", "divides by zero"),
        ("0**-1", "divides by zero"),
        ("4**0.5", "whole number"),
        ("square root of 2", "not rational"),
        ("square root of -4", "no real square root"),
        ("(" * 60 + "1" + ")" * 60, "nested"),
        ("-" * 1_500 + "1", "nested"),
        ("(1", "not closed"),
        ("9" * 1_001, "1000 digits"),
        ("200 + 10%", "two readings"),
        ("How many days are there from 2026-01-01 to 2026-03-01?", "date"),
        ("add 5", "no earlier result"),
        ("__import__('os').system('true')", "not a calculation"),
        ("1e400", "not a calculation"),
        ("two three", "one number"),
        ("", "not a calculation"),
    ],
)
def test_it_says_what_it_cannot_do(instruction: str, why: str) -> None:
    answer = ask("arithmetic", instruction)
    assert declined(answer)
    assert why in answer
    assert "demo-arithmetic is a demo specialist that can calculate" in answer


def test_a_declined_step_is_not_built_upon() -> None:
    refusal = ask("arithmetic", "9**9**9")
    assert any(character.isdigit() for character in refusal), "it holds numbers that are no results"
    assert "no result to work on" in ask("arithmetic", "add 5", refusal)
    assert "no result to work on" in ask("arithmetic", "add both results", "4", refusal)


def test_more_work_than_allowed_is_declined() -> None:
    readings = iter(range(0, 10**12, 10**8))
    with pytest.raises(CannotAnswerError, match="more work"):
        evaluate("+".join(["1"] * 400), Earlier(()), Budget(lambda: next(readings)))


_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@st.composite
def _expressions(draw: st.DrawFn, depth: int = 4) -> tuple[str, Fraction]:
    if depth == 0 or draw(st.booleans()):
        value = Fraction(draw(st.integers(0, 10_000)), 10 ** draw(st.integers(0, 2)))
        return f"{float(value):.2f}", value
    (left, a), (right, b) = draw(_expressions(depth=depth - 1)), draw(_expressions(depth=depth - 1))
    name = draw(st.sampled_from(sorted(_OPERATORS)))
    if name == "/" and b == 0:
        name = "+"
    return f"({left}{name}{right})", _OPERATORS[name](a, b)


@given(_expressions())
def test_expressions_have_their_exact_value(expression: tuple[str, Fraction]) -> None:
    text, value = expression
    assert evaluate(text, Earlier(()), Budget(lambda: 0)) == value
