"""Graders of plain answers, made from a reference text: choice, string, number, currency, per cent.

Numbers count within 0.1 % of the reference, as sums rounded on the way differ in their last digits.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from podium_core.domain.errors import PodiumError, invalid
from podium_core.grading.extraction import answer_in, plain
from podium_core.grading.graders import Choice, Number, Text
from podium_core.grading.numbers import Quantity, after_equals, quantities_in
from podium_core.grading.result import Graded, Grader, judged, unreadable

TOLERANCE = Fraction(1, 1000)
"""Relative to the reference."""
_SCALES = {
    "k": 10**3, "thousand": 10**3, "m": 10**6, "mn": 10**6, "million": 10**6, "millions": 10**6,
    "b": 10**9, "bn": 10**9, "billion": 10**9, "billions": 10**9, "trillion": 10**12, "trillions": 10**12,
}  # fmt: skip
_CURRENCIES = (
    ("USD", re.compile(r"\$|\bUSD\b|\bdollars?\b", re.IGNORECASE)),
    ("EUR", re.compile(r"\u20ac|\bEUR\b|\beuros?\b", re.IGNORECASE)),
    ("GBP", re.compile(r"\u00a3|\bGBP\b|\bpounds?\b", re.IGNORECASE)),
    ("JPY", re.compile(r"\u00a5|\bJPY\b|\byen\b", re.IGNORECASE)),
    ("INR", re.compile(r"\u20b9|\bINR\b|\brupees?\b", re.IGNORECASE)),
    ("CHF", re.compile(r"\bCHF\b|\bSwiss francs?\b", re.IGNORECASE)),
)


class AnswerKind(StrEnum):
    """How a reference is meant."""

    CHOICE = "choice"
    STRING = "string"
    NUMBER = "number"
    CURRENCY = "currency"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Money:
    """Right is the amount within `tolerance` (absolute); a currency may be left out, not be another."""

    gold: Fraction
    currency: str = ""
    tolerance: Fraction = Fraction(0)

    def grade(self, text: str) -> Graded:
        """Return the grade of a whole answer text."""
        if unread := unreadable(text):
            return unread
        answer = answer_in(text)
        for reading in answer.readings:
            said = after_equals(reading)
            found = _amounts_in(said)
            if len(found) != 1 and (answer.is_tagged or reading != answer.readings[-1]):
                continue
            if found:
                currency = _currency_in(said)
                if self.currency and currency and currency != self.currency:
                    return judged(answer.first, is_right=False, reason="other_currency")
                return judged(answer.first, is_right=abs(found[-1] - self.gold) <= self.tolerance)
        return judged(answer.first, is_right=False, reason="no_single_amount")


def grader_for(kind: AnswerKind, reference: str, options: Sequence[str] = ()) -> Grader:
    """Return the grader of a reference; raises INVALID_REQUEST when the reference is none of its kind."""
    makers = {
        AnswerKind.NUMBER: _number,
        AnswerKind.CURRENCY: _money,
        AnswerKind.PERCENT: _percent,
        AnswerKind.STRING: _string,
    }
    if kind is AnswerKind.CHOICE:
        return _choice(reference, options)
    return makers[kind](reference)


def _string(reference: str) -> Grader:
    if not plain(reference):
        raise _bad("string", reference)
    return Text((reference,))


def _choice(reference: str, options: Sequence[str]) -> Grader:
    letter = plain(reference)
    gold = ord(letter) - ord("a") if len(letter) == 1 else -1
    if not 0 <= gold < len(options):
        raise _bad("choice", reference)
    return Choice(gold, tuple(options))


def _number(reference: str) -> Grader:
    found = _single(reference, "number")
    units = (found.unit,) if found.unit else ()
    value = found.value / 100 if found.is_percent else found.value
    return Number(value, abs(value) * TOLERANCE, units)


def _percent(reference: str) -> Grader:
    found = _single(reference, "percent")
    return Number(found.value, abs(found.value) * TOLERANCE, is_percent=True)


def _money(reference: str) -> Grader:
    amounts = _amounts_in(reference)
    if len(amounts) != 1:
        raise _bad("currency", reference)
    return Money(amounts[0], _currency_in(reference), abs(amounts[0]) * TOLERANCE)


def _single(reference: str, kind: str) -> Quantity:
    found = quantities_in(reference)
    if len(found) != 1:
        raise _bad(kind, reference)
    return found[0]


def _amounts_in(text: str) -> list[Fraction]:
    return [found.value * _SCALES.get(found.unit.casefold(), 1) for found in quantities_in(text)]


def _currency_in(text: str) -> str:
    return next((name for name, pattern in _CURRENCIES if pattern.search(text)), "")


def _bad(kind: str, reference: str) -> PodiumError:
    return invalid(
        f"{reference[:80]!r} is no reference of the kind {kind}: correct it, or name another kind",
        reason="BAD_REFERENCE",
        param="reference",
    )
