"""demo-arithmetic: exact arithmetic on integers, decimals and fractions."""

import re
from collections.abc import Callable
from fractions import Fraction

from podium_demo.specialists.answering import Budget, CannotAnswerError, Earlier, Specialist
from podium_demo.specialists.exact import checked, fixed, integer, number_in, plain
from podium_demo.specialists.expressions import divided, evaluate, raised, remainder
from podium_demo.specialists.references import ALL, core, points_at_all

_MAX_PLACES = 30
_LEAD = re.compile(
    r"^(?:what is|what's|what are|what does|calculate|compute|work out|evaluate|find|give(?: me)?|"
    r"how much is|what do you get (?:if|when) you|determine|solve|"
    r"the(?=\s+\w+\s+(?:of|between|when|if|among|from|root)\b))\s+"
)
_TAIL = re.compile(r"\s*(?:=|\bequals?(?: to)?|\btogether|\bup|\bin total|\baltogether|\bmake|\bcome to)$")
_LIST_BREAK = re.compile(r",\s*and\s+|,\s+|\s+and\s+|\s*;\s*|,(?![0-9]{3}(?![0-9]))")
_ROUND = re.compile(r"round (.+?)(?: off)? to (?:(.+?) decimal places?|the nearest (?:whole number|integer))")
_ADD = re.compile(r"add (.+)")
_DIGITS = re.compile(r"(?:sum of|sum|add) (?:the |all )*digits (?:of|in) (.+)")

_Numbers = list[Fraction]
_Read = Callable[[str], Fraction]
_Fold = Callable[[_Numbers], Fraction]


def solve(instruction: str, earlier: Earlier, budget: Budget) -> str:
    """Return the exact result of the calculation that `instruction` asks for."""
    text = _bare(" ".join(core(instruction).lower().split()))

    def read(operand: str) -> Fraction:
        return evaluate(operand, earlier, budget)

    return _specially(text, read) or _by_rule(text, earlier, read) or plain(read(text))


def _specially(text: str, read: _Read) -> str | None:
    """Answer what does not end in a plain exact number: rounding and sums of digits."""
    if match := _ROUND.fullmatch(text):
        places = read(match.group(2)) if match.group(2) else Fraction(0)
        return fixed(read(match.group(1)), _places(places))
    if match := _DIGITS.fullmatch(text):
        whole = integer(abs(read(match.group(1))), "a number whose digits are added")
        return str(sum(int(digit) for digit in str(whole)))
    return None


def _by_rule(text: str, earlier: Earlier, read: _Read) -> str | None:
    """Answer a command in words, or return None when `text` is none of them."""
    for pattern, fold in _COMMANDS:
        if match := pattern.fullmatch(text):
            return plain(checked(fold([read(operand) for operand in match.groups()])))
    for pattern, fold in _ON_LATEST:
        if match := pattern.fullmatch(text):
            latest = number_in(earlier.latest())
            return plain(checked(fold([latest, *(read(operand) for operand in match.groups())])))
    if match := _ADD.fullmatch(text):
        values = _listed(match.group(1), earlier, read)
        return plain(_sum(values if len(values) > 1 else [number_in(earlier.latest()), *values]))
    for pattern, fold in _LISTS:
        if match := pattern.fullmatch(text):
            return plain(fold(_listed(match.group(1), earlier, read)))
    return None


def _bare(text: str) -> str:
    before = ""
    while text != before:
        before = text
        text = _TAIL.sub("", _LEAD.sub("", text)).strip()
    return text


def _listed(text: str, earlier: Earlier, read: _Read) -> _Numbers:
    """Return the values of `3, 4 and 5`, of `the result and 7`, or of `both results`."""
    if points_at_all(text):
        return [number_in(result) for result in earlier.every()]
    if ALL.search(text):
        raise CannotAnswerError("I cannot mix all earlier results with other numbers")
    return [read(part) for part in _LIST_BREAK.split(text) if part.strip()]


def _places(value: Fraction) -> int:
    number = integer(value, "the number of decimal places")
    if not 0 <= number <= _MAX_PLACES:
        raise CannotAnswerError(f"I round to 0 to {_MAX_PLACES} decimal places")
    return number


def _sum(values: _Numbers) -> Fraction:
    total = Fraction(0)
    for value in values:
        total = checked(total + value)
    return total


def _product(values: _Numbers) -> Fraction:
    total = Fraction(1)
    for value in values:
        total = checked(total * value)
    return total


def _difference(values: _Numbers) -> Fraction:
    if len(values) != 2:  # noqa: PLR2004 - a difference has two sides
        raise CannotAnswerError("a difference needs exactly two numbers")
    return abs(values[0] - values[1])


def _average(values: _Numbers) -> Fraction:
    return _sum(values) / len(values)


def _rules(*rules: tuple[str, _Fold]) -> tuple[tuple[re.Pattern[str], _Fold], ...]:
    return tuple((re.compile(pattern), fold) for pattern, fold in rules)


_PERCENT = r" ?(?:%|per ?cent)"
_COMMANDS = _rules(
    (r"multiply (.+?) (?:by|with) (.+)", lambda v: v[0] * v[1]),
    (r"divide (.+?) by (.+)", lambda v: divided(v[0], v[1])),
    (r"(?:subtract|take|deduct) (.+?)(?: away)? from (.+)", lambda v: v[1] - v[0]),
    (r"add (.+?) to (.+)", lambda v: v[0] + v[1]),
    (r"raise (.+?) to the (?:power (?:of )?)?(.+?)(?: power)?", lambda v: raised(v[0], v[1])),
    (
        r"how (?:many|much) (?:more|larger|greater|bigger|higher) (?:is|are) (.+?) than (.+)",
        lambda v: v[0] - v[1],
    ),
    (r"how (?:many|much) (?:less|fewer|smaller|lower) (?:is|are) (.+?) than (.+)", lambda v: v[1] - v[0]),
    (r"(?:what )?percent(?:age)? of (.+?) is (.+)", lambda v: 100 * divided(v[1], v[0])),
    (r"(.+?) (?:is|as) (?:what|a) percent(?:age)? of (.+)", lambda v: 100 * divided(v[0], v[1])),
    (rf"(?:increase|raise) (.+?) by (.+?){_PERCENT}", lambda v: v[0] * (1 + v[1] / 100)),
    (rf"(?:decrease|reduce|lower) (.+?) by (.+?){_PERCENT}", lambda v: v[0] * (1 - v[1] / 100)),
    (r"increase (.+?) by (.+)", lambda v: v[0] + v[1]),
    (r"(?:decrease|reduce|lower) (.+?) by (.+)", lambda v: v[0] - v[1]),
    (
        r"remainder (?:when|if|after|of) (?:you )?(?:dividing |divide )?(.+?)(?: is)?(?: divided)? by (.+)",
        remainder,
    ),
    (r"square (?!root\b|of\b)(.+)", lambda v: raised(v[0], Fraction(2))),
    (r"cube (?!of\b)(.+)", lambda v: raised(v[0], Fraction(3))),
    (r"halve (.+)", lambda v: v[0] / 2),
    (r"negate (.+)", lambda v: -v[0]),
)
_ON_LATEST = _rules(
    (r"multiply (?:by|with) (.+)", lambda v: v[0] * v[1]),
    (r"divide by (.+)", lambda v: divided(v[0], v[1])),
    (r"(?:subtract|deduct) (.+)", lambda v: v[0] - v[1]),
    (r"double", lambda v: 2 * v[0]),
    (r"triple", lambda v: 3 * v[0]),
    (r"halve", lambda v: v[0] / 2),
    (r"square", lambda v: v[0] * v[0]),
    (r"negate", lambda v: -v[0]),
)
_LISTS = _rules(
    (r"(?:sum(?: of)?|total of|sum up) (.+)", _sum),
    (r"(?:product of|multiply) (.+)", _product),
    (r"difference (?:between|of) (.+)", _difference),
    (r"(?:average|mean)(?: of)? (.+)", _average),
    (
        r"(?:largest|maximum|biggest|greatest|larger|bigger|greater|max)(?: number)? (?:of|among|from) (.+)",
        max,
    ),
    (r"(?:smallest|minimum|least|lowest|smaller|min)(?: number)? (?:of|among|from) (.+)", min),
)
SPECIALIST = Specialist(
    model="demo-arithmetic",
    skills=("arithmetic",),
    abilities="calculate exactly with + - * / // % ** and parentheses, sums, products, averages, percentages",
    solve=solve,
)
