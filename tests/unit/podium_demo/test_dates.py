"""demo-dates: calendar questions and unit conversions."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .asking import ask, declined


@pytest.mark.parametrize(
    ("instruction", "answer"),
    [
        ("how many days are there from 2026-01-01 to 2026-03-01", "59"),
        ("How many days are there from 2026-03-01 to 2026-01-01", "-59"),
        ("How many days are between 1 March 2026 and January 5, 2026?", "55"),
        ("How many weeks are there between 2026-01-01 and 2026-03-01", "8 weeks and 3 days"),
        ("What date is 30 days after 2026-01-31?", "2026-03-02"),
        ("add 3 months to 2026-01-31", "2026-04-30"),
        ("add one year to 2024-02-29", "2025-02-28"),
        ("add 2 weeks and 3 days to 2026-01-01", "2026-01-18"),
        ("subtract two weeks from 15 May 2026", "2026-05-01"),
        ("What day of the week is 2026-11-30?", "Monday"),
        ("Which weekday was the 4th of July 1776?", "Thursday"),
        ("Is 1900 a leap year?", "no"),
        ("next leap year after 2026", "2028"),
        ("How many days are in February 2024?", "29"),
        ("What date is 30 days after 2026-01-01, and which weekday is it?", "Saturday"),
        ("convert 5 km to miles", "about 3.106856 miles"),
        ("How many inches are in 3 feet?", "36 inches"),
        ("What is 98.6 degrees Fahrenheit in Celsius", "37 \N{DEGREE SIGN}C"),
        ("convert 0 kelvin to celsius", "-273.15 \N{DEGREE SIGN}C"),
        ("how many seconds are there in a week", "604800 seconds"),
        ("convert 1 mm to miles", "about 0.000000621371 miles"),
        ("convert five pounds to kg", "2.26796185 kg"),
    ],
)
def test_it_knows_dates_and_units(instruction: str, answer: str) -> None:
    assert ask("dates", instruction) == answer


@pytest.mark.parametrize(
    ("instruction", "results", "answer"),
    [
        ("add 10 days to it", ("2026-03-01",), "2026-03-11"),
        ("Which weekday is that?", ("The date is 2026-11-30.",), "Monday"),
        ("is it a leap year", ("2024",), "yes"),
        ("convert it to miles", ("8 km",), "about 4.97097 miles"),
        ("convert the result from km to miles", ("144",), "about 89.477452 miles"),
    ],
)
def test_it_works_on_earlier_results(instruction: str, results: tuple[str, ...], answer: str) -> None:
    assert ask("dates", instruction, *results) == answer


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        ("2026-02-30 plus 1 day", "does not exist"),
        ("what date is 3999999 days after 2026-01-01", "1 to 9999"),
        ("convert 5 km to kg", "do not measure the same"),
        ("what day is today", "no clock"),
        ("add 10 days to it", "no earlier result"),
        ("Multiply 17 by 23", "neither"),
        ("", "neither"),
    ],
)
def test_it_says_what_it_cannot_do(instruction: str, why: str) -> None:
    answer = ask("dates", instruction)
    assert declined(answer)
    assert why in answer


@given(st.dates(date(1, 1, 1), date(9000, 1, 1)), st.integers(0, 300_000))
def test_adding_days_and_counting_them_agree(start: date, days: int) -> None:
    end = start + timedelta(days)
    assert ask("dates", f"add {days} days to {start}") == end.isoformat()
    assert ask("dates", f"how many days are there from {start} to {end}") == str(days)
