"""Number notations: Roman numerals, bases 2, 8 and 16, words, ordinals and plain digits, both ways."""

import re
from collections.abc import Callable
from enum import Enum

from podium_demo.specialists.answering import CannotAnswerError
from podium_demo.specialists.exact import MAX_LITERAL_DIGITS, MAX_NUMBER_BITS, integer, literal
from podium_demo.specialists.number_words import (
    LIMIT,
    cardinal,
    is_ordinal,
    ordinal,
    ordinal_digits,
    parse,
)

_ROMAN_LIMIT = 3_999
_ROMAN_PARTS = (
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
)
_ROMAN_VALUES = {symbol: value for value, symbol in _ROMAN_PARTS if len(symbol) == 1}
_ROMAN = re.compile(r"[IVXLCDM]{1,15}", re.IGNORECASE)
_DECIMAL = re.compile(r"[-\N{MINUS SIGN}]?[0-9]+(?:,[0-9]{3})*(?:\.0+)?")
_ORDINAL = re.compile(r"(-?[0-9]+)(?:st|nd|rd|th)", re.IGNORECASE)
_PREFIXED = re.compile(r"(-?)0([box])([0-9a-f]+)", re.IGNORECASE)


class Notation(Enum):
    """A way to write a whole number."""

    DECIMAL = "decimal"
    ROMAN = "Roman"
    BINARY = "binary"
    OCTAL = "octal"
    HEXADECIMAL = "hexadecimal"
    WORDS = "words"
    ORDINAL = "ordinal"
    ORDINAL_WORDS = "ordinal words"


_BASES = {Notation.BINARY: 2, Notation.OCTAL: 8, Notation.DECIMAL: 10, Notation.HEXADECIMAL: 16}
_PREFIX_BASES = {"b": 2, "o": 8, "x": 16}


def roman(value: int) -> str:
    """Return the Roman numeral; decline outside 1 to 3999."""
    if not 1 <= value <= _ROMAN_LIMIT:
        raise CannotAnswerError(f"Roman numerals reach from 1 to {_ROMAN_LIMIT}")
    parts: list[str] = []
    for size, symbol in _ROMAN_PARTS:
        count, value = divmod(value, size)
        parts.append(symbol * count)
    return "".join(parts)


def from_roman(text: str) -> int | None:
    """Return the value of a well-formed Roman numeral, or None."""
    if not _ROMAN.fullmatch(text):
        return None
    values = [_ROMAN_VALUES[symbol] for symbol in text.upper()]
    total = sum(
        -value if index + 1 < len(values) and value < values[index + 1] else value
        for index, value in enumerate(values)
    )
    return total if 1 <= total <= _ROMAN_LIMIT and roman(total) == text.upper() else None


def written(value: int, notation: Notation) -> str:
    """Return `value` in `notation`; decline what the notation cannot hold."""
    if notation is Notation.ROMAN:
        return roman(value)
    if notation in _BASES:
        return format(value, {2: "b", 8: "o", 10: "d", 16: "X"}[_BASES[notation]])
    if notation is Notation.ORDINAL:
        return ordinal_digits(_ordinary(value))
    if abs(value) >= LIMIT:
        raise CannotAnswerError("I have words only for numbers below 10**36")
    return cardinal(value) if notation is Notation.WORDS else ordinal(_ordinary(value))


def _ordinary(value: int) -> int:
    if value < 0:
        raise CannotAnswerError("negative numbers have no ordinals")
    return value


def read(text: str, notation: Notation) -> int:
    """Return the number that `text` writes in `notation`; decline when it does not."""
    plain = text.strip().replace(" ", "").replace("_", "")
    if notation is Notation.ROMAN:
        value = from_roman(plain)
    elif notation in _BASES:
        value = _in_base(plain.replace(",", ""), _BASES[notation])
    elif notation is Notation.ORDINAL:
        match = _ORDINAL.fullmatch(plain)
        value = int(match.group(1)) if match and len(plain) < MAX_LITERAL_DIGITS else None
    else:
        value = parse(text)
    if value is None:
        raise CannotAnswerError(f"that is not a number in {notation.value} notation")
    return value


def _in_base(digits: str, base: int) -> int | None:
    if len(digits) * base.bit_length() > MAX_NUMBER_BITS:
        raise CannotAnswerError("the number is too long")
    try:
        return int(digits, base)
    except ValueError:
        return None


def recognise(text: str) -> tuple[int, Notation] | None:
    """Return the number `text` is, with the notation it gives away by itself, or None."""
    plain = text.strip()
    if len(plain) > MAX_LITERAL_DIGITS:
        raise CannotAnswerError("the number is too long")
    for find in _RECOGNISERS:
        if found := find(plain):
            return found
    return None


def _decimal(text: str) -> tuple[int, Notation] | None:
    if not _DECIMAL.fullmatch(text):
        return None
    is_negative = not text[0].isdigit()
    value = integer(literal(text[is_negative:]), "a number to convert")
    return -value if is_negative else value, Notation.DECIMAL


def _prefixed(text: str) -> tuple[int, Notation] | None:
    match = _PREFIXED.fullmatch(text)
    base = _PREFIX_BASES[match.group(2).lower()] if match else 0
    value = _in_base(match.group(1) + match.group(3), base) if match else None
    return None if value is None else (value, next(n for n, b in _BASES.items() if b == base))


def _ordinal(text: str) -> tuple[int, Notation] | None:
    match = _ORDINAL.fullmatch(text)
    return (int(match.group(1)), Notation.ORDINAL) if match else None


def _roman(text: str) -> tuple[int, Notation] | None:
    value = from_roman(text)
    return None if value is None else (value, Notation.ROMAN)


def _spelled(text: str) -> tuple[int, Notation] | None:
    value = parse(text)
    notation = Notation.ORDINAL_WORDS if is_ordinal(text) else Notation.WORDS
    return None if value is None else (value, notation)


_RECOGNISERS: tuple[Callable[[str], tuple[int, Notation] | None], ...] = (
    _decimal,
    _prefixed,
    _ordinal,
    _roman,
    _spelled,
)
