"""The unit half of demo-dates: lengths, masses, temperatures and times, exact where the answer ends."""

import re
from dataclasses import dataclass
from fractions import Fraction

from podium_demo.specialists.answering import CannotAnswerError, Earlier
from podium_demo.specialists.exact import approximate, checked, literal
from podium_demo.specialists.number_words import parse
from podium_demo.specialists.references import points_at_one


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit: `base = value * factor + offset`, where each dimension has one base unit."""

    name: str
    dimension: str
    factor: Fraction
    offset: Fraction = Fraction(0)


_TABLE = """
length km = 1000 kilometre kilometres kilometer kilometers
length m = 1 metre metres meter meters
length cm = 0.01 centimetre centimetres centimeter centimeters
length mm = 0.001 millimetre millimetres millimeter millimeters
length miles = 1609.344 mile mi
length yards = 0.9144 yard yd
length feet = 0.3048 foot ft
length inches = 0.0254 inch
mass kg = 1 kilogram kilograms kilogramme kilogrammes kilo kilos
mass g = 0.001 gram grams gramme grammes
mass mg = 0.000001 milligram milligrams
mass tonnes = 1000 tonne t
mass pounds = 0.45359237 pound lb lbs
mass ounces = 0.028349523125 ounce oz
mass stone = 6.35029318 stones
time seconds = 1 second s sec secs
time milliseconds = 0.001 millisecond ms
time minutes = 60 minute min mins
time hours = 3600 hour h hr hrs
time days = 86400 day
time weeks = 604800 week
"""


def _units() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for line in _TABLE.strip().splitlines():
        (dimension, name, _, factor, *aliases) = line.split()
        unit = Unit(name, dimension, Fraction(factor))
        units |= dict.fromkeys([name, *aliases], unit)
    ninths = Fraction(5, 9)
    celsius = Unit("\N{DEGREE SIGN}C", "temperature", Fraction(1), Fraction(27315, 100))
    fahrenheit = Unit("\N{DEGREE SIGN}F", "temperature", ninths, Fraction(27315, 100) - 32 * ninths)
    units |= dict.fromkeys(["celsius", "c", "\N{DEGREE SIGN}c", "centigrade"], celsius)
    units |= dict.fromkeys(["fahrenheit", "f", "\N{DEGREE SIGN}f"], fahrenheit)
    return units | dict.fromkeys(["kelvin", "kelvins", "k"], Unit("K", "temperature", Fraction(1)))


_UNITS = _units()
_UNIT = "(?:degrees? )?(" + "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True)) + ")"
_LEAD = re.compile(
    r"^(?:convert|change|express|what is|what's|how much is|how long is|give|write|turn|show)\s+"
)
_TO = re.compile(rf"(?P<q>.+?)(?: from {_UNIT})? (?:to|in|into|as) {_UNIT}")
_HOW_MANY = re.compile(rf"how many {_UNIT}(?: are there| are| is| does| make)?(?: in)? (?P<q>.+?)(?: have)?")
_QUANTITY = re.compile(
    rf"(?P<n>[-\N{{MINUS SIGN}}]?[0-9][0-9,]*(?:\.[0-9]+)?|an?|[a-z][a-z -]{{0,120}}?) ?{_UNIT}"
)
_INSIDE = re.compile(rf"(?<![\w.])(-?[0-9][0-9,]*(?:\.[0-9]+)?) ?{_UNIT}(?!\w)")
_BARE = re.compile(r".*?(-?[0-9][0-9,]*(?:\.[0-9]+)?)\D*", re.DOTALL)


def solve_unit(text: str, earlier: Earlier) -> str | None:
    """Return the answer to a unit conversion (lower-case text), or None when it is none."""
    if match := _HOW_MANY.fullmatch(text):
        quantity = _quantity(match["q"], None, earlier)
        return _converted(quantity, _UNITS[match.group(1)]) if quantity else None
    if match := _TO.fullmatch(_LEAD.sub("", text)):
        quantity = _quantity(match["q"], match.group(2), earlier)
        return _converted(quantity, _UNITS[match.group(3)]) if quantity else None
    return None


def _converted(quantity: tuple[Fraction, Unit], target: Unit) -> str:
    value, unit = quantity
    if unit.dimension != target.dimension:
        raise CannotAnswerError(f"{unit.name} and {target.name} do not measure the same thing")
    base = value * unit.factor + unit.offset
    return f"{approximate(checked((base - target.offset) / target.factor))} {target.name}"


def _quantity(text: str, source: str | None, earlier: Earlier) -> tuple[Fraction, Unit] | None:
    text = text.strip()
    if points_at_one(text):
        return _from_result(earlier.latest().lower(), source)
    match = _QUANTITY.fullmatch(f"{text} {source}" if source else text)
    number = _number(match["n"]) if match else None
    return None if match is None or number is None else (number, _UNITS[match.group(2)])


def _from_result(result: str, source: str | None) -> tuple[Fraction, Unit]:
    if len(result) > _MAX_RESULT:
        raise CannotAnswerError("the earlier result is too long to be a quantity")
    if source is None:
        found = _INSIDE.findall(result)
        if not found:
            raise CannotAnswerError("the earlier result names no unit I know")
        return _signed(found[-1][0]), _UNITS[found[-1][1]]
    match = _BARE.fullmatch(result)
    if match is None:
        raise CannotAnswerError("the earlier result holds no number")
    return _signed(match.group(1)), _UNITS[source]


_MAX_RESULT = 2_000


def _number(text: str) -> Fraction | None:
    if text in ("a", "an"):
        return Fraction(1)
    if text[0].isdigit() or text[0] in "-\N{MINUS SIGN}":
        return _signed(text)
    value = parse(text)
    return None if value is None else Fraction(value)


def _signed(text: str) -> Fraction:
    digits = text.lstrip("-\N{MINUS SIGN}")
    return literal(digits) if digits == text else -literal(digits)
