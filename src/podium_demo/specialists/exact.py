"""Exact numbers: reading them from text, checking their size, and writing them back."""

import re
from fractions import Fraction

from podium_demo.specialists.answering import CannotAnswerError

MAX_LITERAL_DIGITS = 1_000
MAX_NUMBER_BITS = 13_000
"""Numerators and denominators stay below 2^13000, which is about 3,900 decimal digits."""

_NUMBER = re.compile(
    r"(?<![\w.])[-\N{MINUS SIGN}]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:/[0-9]+)?(?![\w/])"
)
_DATE = re.compile(r"\b[0-9]{1,4}-[0-9]{1,2}-[0-9]{1,4}\b")
_MAX_EXTRACTION_CHARS = 4_500
_MAX_DECIMALS = 30
_EXACT_PLACES = 12
_SIGNIFICANT = 6


def literal(digits: str) -> Fraction:
    """Return the value of a decimal literal such as `1,250.5`; decline when it is too long."""
    plain = digits.replace(",", "").replace("_", "")
    if len(plain) > MAX_LITERAL_DIGITS:
        raise CannotAnswerError(f"numbers may have at most {MAX_LITERAL_DIGITS} digits here")
    return Fraction(plain)


def checked(value: Fraction) -> Fraction:
    """Return `value`, or decline when it has grown too large."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_NUMBER_BITS:
        raise CannotAnswerError("a number in it would have more than 3,900 digits")
    return value


def number_in(text: str) -> Fraction:
    """Return the number an earlier result holds: what follows its last `=`, else its last number."""
    if len(text) > _MAX_EXTRACTION_CHARS:
        raise CannotAnswerError("the earlier result is too long to be a number")
    searched = _DATE.sub(" ", text)
    found = _NUMBER.findall(searched.rpartition("=")[2]) or _NUMBER.findall(searched)
    if not found:
        raise CannotAnswerError("the earlier result holds no number")
    return fraction_of(found[-1])


def fraction_of(text: str) -> Fraction:
    """Return the value of `-12`, `1,234.5` or `3/4`."""
    sign = -1 if text[0] in "-\N{MINUS SIGN}" else 1
    whole, _, divisor = text.lstrip("-\N{MINUS SIGN}").partition("/")
    below = literal(divisor) if divisor else Fraction(1)
    if below == 0:
        raise CannotAnswerError("the earlier result divides by zero")
    return checked(sign * literal(whole) / below)


def integer(value: Fraction, what: str) -> int:
    """Return `value` as an integer; decline when it has a fractional part."""
    if value.denominator != 1:
        raise CannotAnswerError(f"{what} must be a whole number")
    return value.numerator


def plain(value: Fraction) -> str:
    """Return `value` exactly: an integer, a decimal if it ends within 30 places, else a fraction."""
    checked(value)
    if value.denominator == 1:
        return str(value.numerator)
    places = decimal_places(value.denominator)
    if places is None or places > _MAX_DECIMALS:
        return f"{value.numerator}/{value.denominator}"
    return fixed(value, places)


def fixed(value: Fraction, places: int) -> str:
    """Return `value` with exactly `places` decimals, halves rounded away from zero."""
    scale = 10**places
    scaled = abs(value) * scale
    units = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    sign = "-" if value < 0 and units else ""
    whole, rest = divmod(units, scale)
    return f"{sign}{whole}.{rest:0{places}d}" if places else f"{sign}{whole}"


def rounded(value: Fraction, places: int) -> str:
    """Return `value` exactly when it ends within `places` decimals, else rounded, without trailing zeros."""
    exact = decimal_places(value.denominator)
    text = fixed(value, exact if exact is not None and exact <= places else places)
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimal_places(denominator: int) -> int | None:
    """Return how many decimals 1/`denominator` has, or None when they never end."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator //= 2
        twos += 1
    while denominator % 5 == 0:
        denominator //= 5
        fives += 1
    return max(twos, fives) if denominator == 1 else None


def approximate(value: Fraction) -> str:
    """Return `value` exactly if it ends within 12 decimals, else `about` its first 6 significant decimals."""
    places = decimal_places(value.denominator)
    if places is not None and places <= _EXACT_PLACES:
        return plain(value)
    leading_zeros = max(len(str(abs(value.denominator))) - len(str(abs(value.numerator))), 0)
    return f"about {rounded(value, _SIGNIFICANT + leading_zeros)}"
