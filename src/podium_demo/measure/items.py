"""Generated items with answers computed here, by other means than the specialists use.

Each skill has common phrasings and some (at least one in ten) that the specialists were not written for,
so that a card says something about questions nobody foresaw.
"""

import calendar
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from random import Random

_VOCABULARY = """
banana quartz rhythm lantern orchard pebble violin mosaic harbour thunder walnut puzzle saffron meadow
copper glacier bottle cricket dolphin ember falcon garnet hazel island jigsaw kettle lemon marble
"""
_WORDS = _VOCABULARY.split()


@dataclass(frozen=True, slots=True)
class Item:
    """A question and its right answer. Answers count when equal, or equal as numbers with the same unit."""

    question: str
    answer: str


_Make = Callable[[Random], Item]


def items_of(skill: str, count: int, random: Random) -> list[Item]:
    """Return `count` items of `skill`, every phrasing equally often."""
    makers = MAKERS[skill]
    return [makers[index % len(makers)](random) for index in range(count)]


def _shown(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    places = next((p for p in range(1, 31) if (value * 10**p).denominator == 1), None)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    digits = f"{abs(int(value * 10**places)):0{places + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


# --- arithmetic ------------------------------------------------------------------------------------------


def _expression(random: Random, depth: int) -> tuple[str, int]:
    if depth == 0:
        value = random.randint(1, 40)
        return str(value), value
    (left, a), (right, b) = _expression(random, depth - 1), _expression(random, random.randrange(depth))
    operator = random.choice("+-*")
    results = {"+": a + b, "-": a - b, "*": a * b}
    return f"({left} {operator} {right})", results[operator]


def _nested(random: Random) -> Item:
    text, value = _expression(random, 3)
    return Item(f"What is {text}?", str(value))


def _two_numbers(template: str, result: Callable[[int, int], Fraction | int]) -> _Make:
    def make(random: Random) -> Item:
        a, b = random.randint(2, 999), random.randint(2, 99)
        return Item(template.format(a=a, b=b, ab=a * b), _shown(Fraction(result(a, b))))

    return make


def _decimals(random: Random) -> Item:
    a, b = Fraction(random.randint(1, 9999), 100), Fraction(random.randint(1, 999), 10)
    return Item(f"Calculate {_shown(a)} + {_shown(b)}", _shown(a + b))


def _fractions(random: Random) -> Item:
    a, b = Fraction(random.randint(1, 8), 9), Fraction(random.randint(1, 6), 7)
    return Item(f"What is {a.numerator}/{a.denominator} + {b.numerator}/{b.denominator}?", _shown(a + b))


_ARITHMETIC: tuple[_Make, ...] = (
    _nested,
    _decimals,
    _fractions,
    _two_numbers("Multiply {a} by {b}.", lambda a, b: a * b),
    _two_numbers("What is the sum of {a}, {b} and 7?", lambda a, b: a + b + 7),
    _two_numbers("What is {a} times {b}?", lambda a, b: a * b),
    _two_numbers("Subtract {b} from {a}.", lambda a, b: a - b),
    _two_numbers("Divide {ab} by {b}.", lambda a, _: a),
    _two_numbers("How many more is {a} than {b}?", lambda a, b: a - b),
    _two_numbers("What is {b}% of {a}?", lambda a, b: Fraction(a * b, 100)),
    _two_numbers("What is the remainder when {a} is divided by {b}?", lambda a, b: a % b),
    _two_numbers("What is {b} to the power of 4?", lambda _, b: b**4),
    _two_numbers("Increase {a} by {b}%.", lambda a, b: Fraction(a * (100 + b), 100)),
    _two_numbers("What is the average of {a} and {b}?", lambda a, b: Fraction(a + b, 2)),
    _two_numbers("Compute {a} * {b} - {b}", lambda a, b: a * b - b),
    _two_numbers("Add {a} and {b}, then double the result.", lambda a, b: 2 * (a + b)),
    _two_numbers("What do you get when you multiply {a} by {b} and subtract 5?", lambda a, b: a * b - 5),
    _two_numbers("Start with {a}, add {b}, and halve what you have.", lambda a, b: Fraction(a + b, 2)),
    _two_numbers("A crate holds {b} bottles. How many bottles do {a} crates hold?", lambda a, b: a * b),
    _two_numbers("{a} plus {b} is how much?", lambda a, b: a + b),
)

# --- text ------------------------------------------------------------------------------------------------


def _on_word(template: str, result: Callable[[str], str]) -> _Make:
    def make(random: Random) -> Item:
        word = random.choice(_WORDS)
        return Item(template.format(word=word), result(word))

    return make


def _on_phrase(template: str, result: Callable[[list[str]], str]) -> _Make:
    def make(random: Random) -> Item:
        words = random.sample(_WORDS, 4)
        return Item(template.format(" ".join(words), ", ".join(words)), result(words))

    return make


def _letter_count(random: Random) -> Item:
    word = random.choice(_WORDS)
    letter = random.choice(word)
    return Item(
        f"How many times does the letter '{letter}' appear in {word}?", str(sum(c == letter for c in word))
    )


def _replacement(random: Random) -> Item:
    word = random.choice(_WORDS)
    old = random.choice(word)
    return Item(f"Replace '{old}' with '_' in '{word}'.", "".join("_" if c == old else c for c in word))


def _vowels(word: str) -> int:
    return len([c for c in word if c in {"a", "e", "i", "o", "u"}])


_TEXT: tuple[_Make, ...] = (
    _letter_count,
    _replacement,
    _on_word("Reverse the word {word}.", lambda w: "".join(w[i] for i in range(len(w) - 1, -1, -1))),
    _on_word("Reverse the letters of '{word}'.", lambda w: "".join(reversed(w))),
    _on_word("Spell '{word}' backwards.", lambda w: "".join(reversed(w))),
    _on_word("Convert {word} to upper case.", lambda w: "".join(chr(ord(c) - 32) for c in w)),
    _on_word("How many letters are in the word {word}?", lambda w: str(len(w))),
    _on_word("Count the vowels in '{word}'.", lambda w: str(_vowels(w))),
    _on_word("What are the first three letters of {word}?", lambda w: w[0] + w[1] + w[2]),
    _on_word("What is the last letter of {word}?", lambda w: w[len(w) - 1]),
    _on_word("Repeat the word '{word}' 3 times.", lambda w: w + w + w),
    _on_word("Sort the letters of {word}.", lambda w: "".join(c for a in _ALPHABET for c in w if c == a)),
    _on_phrase("Count the words in '{0}'.", lambda ws: str(len(ws))),
    _on_phrase("Sort the words {1} alphabetically.", lambda ws: ", ".join(sorted(ws))),
    _on_phrase("Put '{0}' into title case.", lambda ws: " ".join(w[0].upper() + w[1:] for w in ws)),
    _on_phrase("Reverse the order of the words in '{0}'.", lambda ws: " ".join(ws[::-1])),
    _on_phrase("Join the words {1} with a hyphen.", "-".join),
    _on_word("Uppercase '{word}' and then reverse it.", lambda w: "".join(reversed(w)).upper()),
    _on_word("Write {word} with its letters in the opposite order.", lambda w: "".join(reversed(w))),
    _on_word(
        "If you drop every vowel from {word}, what is left?",
        lambda w: "".join(c for c in w if not _vowels(c)),
    ),
)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"

# --- dates -----------------------------------------------------------------------------------------------


def _on_dates(template: str, result: Callable[[date, date, int], str]) -> _Make:
    def make(random: Random) -> Item:
        first = date(1950, 1, 1) + timedelta(days=random.randrange(36_000))
        days = random.randint(2, 700)
        second = first + timedelta(days=days)
        spoken = f"{calendar.month_name[first.month]} {first.day}, {first.year}"
        return Item(
            template.format(a=first, b=second, n=days, spoken=spoken, y=first.year),
            result(first, second, days),
        )

    return make


def _days_in_month(random: Random) -> Item:
    year, month = random.randint(1900, 2100), random.randint(1, 12)
    following = date(year + month // 12, month % 12 + 1, 1)
    days = (following - date(year, month, 1)).days
    return Item(f"How many days are in {calendar.month_name[month]} {year}?", str(days))


def _weekday(day: date) -> str:
    return day.strftime("%A")


def _is_leap(year: int) -> str:
    return "yes" if (date(year, 3, 1) - date(year, 2, 28)).days > 1 else "no"


_DATES: tuple[_Make, ...] = (
    _days_in_month,
    _on_dates("How many days are there from {a} to {b}?", lambda _a, _b, n: str(n)),
    _on_dates("How many days are between {b} and {a}?", lambda _a, _b, n: str(n)),
    _on_dates("What date is {n} days after {a}?", lambda _a, b, _n: b.isoformat()),
    _on_dates("What date is {n} days before {b}?", lambda a, _b, _n: a.isoformat()),
    _on_dates("Add {n} days to {spoken}.", lambda _a, b, _n: b.isoformat()),
    _on_dates("Add 2 weeks to {a}.", lambda a, _b, _n: (a + timedelta(14)).isoformat()),
    _on_dates("What day of the week is {a}?", lambda a, _b, _n: _weekday(a)),
    _on_dates("Which weekday was {spoken}?", lambda a, _b, _n: _weekday(a)),
    _on_dates("On what day does {a} fall?", lambda a, _b, _n: _weekday(a)),
    _on_dates("Is {y} a leap year?", lambda a, _b, _n: _is_leap(a.year)),
    _on_dates("Subtract {n} days from {b}.", lambda a, _b, _n: a.isoformat()),
    _on_dates("What date is {n} days after {a}, and which weekday is it?", lambda _a, b, _n: _weekday(b)),
    _on_dates("What is the date 3 weeks after {a}?", lambda a, _b, _n: (a + timedelta(21)).isoformat()),
    _on_dates("How many days lie between {spoken} and {b}?", lambda _a, _b, n: str(n)),
    _on_dates(
        "How many days does the year {y} have?",
        lambda a, _b, _n: str((date(a.year + 1, 1, 1) - date(a.year, 1, 1)).days),
    ),
    _on_dates("What day of the year is {a}?", lambda a, _b, _n: str((a - date(a.year, 1, 1)).days + 1)),
    _on_dates("Which date comes a week after {a}?", lambda a, _b, _n: (a + timedelta(7)).isoformat()),
    _on_dates("I was born on {a}; how old was I in days on {b}?", lambda _a, _b, n: str(n)),
    _on_dates("Name the weekday of {spoken}.", lambda a, _b, _n: _weekday(a)),
)

# --- units -----------------------------------------------------------------------------------------------

_RATIOS: tuple[tuple[str, str, float], ...] = (
    ("km", "miles", 0.6213711922373339),
    ("miles", "km", 1.609344),
    ("feet", "inches", 12.0),
    ("metres", "feet", 3.280839895013123),
    ("inches", "cm", 2.54),
    ("kg", "pounds", 2.2046226218487757),
    ("ounces", "grams", 28.349523125),
    ("hours", "minutes", 60.0),
    ("days", "hours", 24.0),
    ("minutes", "seconds", 60.0),
)
_SHORT = {"metres": "m", "grams": "g"}


def _on_units(template: str) -> _Make:
    def make(random: Random) -> Item:
        source, target, ratio = random.choice(_RATIOS)
        amount = random.choice((random.randint(2, 400), random.randint(11, 999) / 10))
        return Item(
            template.format(n=amount, source=source, target=target),
            f"{amount * ratio!r} {_SHORT.get(target, target)}",
        )

    return make


def _temperature(random: Random) -> Item:
    celsius = random.randint(-40, 200)
    if random.random() < 0.5:  # noqa: PLR2004 - an injected generator, a fair coin
        return Item(
            f"What is {celsius} degrees Celsius in Fahrenheit?", f"{celsius * 1.8 + 32!r} \N{DEGREE SIGN}F"
        )
    return Item(
        f"Convert {celsius * 9 // 5 + 32} fahrenheit to celsius",
        f"{(celsius * 9 // 5) / 1.8!r} \N{DEGREE SIGN}C",
    )


_UNITS: tuple[_Make, ...] = (
    _temperature,
    _on_units("Convert {n} {source} to {target}."),
    _on_units("How many {target} are in {n} {source}?"),
    _on_units("What is {n} {source} in {target}?"),
    _on_units("Express {n} {source} in {target}."),
    _on_units("How many {target} are there in {n} {source}?"),
    _on_units("{n} {source} to {target}"),
    _on_units("How much is {n} {source} in {target}?"),
    _on_units("Change {n} {source} into {target}."),
    _on_units("I have {n} {source}; what would that be in {target}?"),
)

# --- numerals --------------------------------------------------------------------------------------------

_ROMAN_DIGITS = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_TEEN_STEMS = ("thir", "four", "fif", "six", "seven", "eigh", "nine")
_TEENS = ["ten", "eleven", "twelve", *(f"{stem}teen" for stem in _TEEN_STEMS)]
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TIES = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def _roman(value: int) -> str:
    digits = f"{value:04d}"
    parts = (str.maketrans("IVX", up) for up in ("M--", "CDM", "XLC", "IVX"))
    return "".join(_ROMAN_DIGITS[int(d)].translate(t) for d, t in zip(digits, parts, strict=True))


def _below_thousand(value: int) -> str:
    hundreds, rest = value // 100, value % 100
    if rest < 10:  # noqa: PLR2004 - one digit
        low = _ONES[rest]
    elif rest < 20:  # noqa: PLR2004 - the teens
        low = _TEENS[rest - 10]
    else:
        low = _TIES[rest // 10] + (f"-{_ONES[rest % 10]}" if rest % 10 else "")
    if not hundreds:
        return low
    return f"{_ONES[hundreds]} hundred" + (f" and {low}" if rest else "")


def _base(value: int, base: int) -> str:
    digits = ""
    while value:
        value, digit = divmod(value, base)
        digits = "0123456789ABCDEF"[digit] + digits
    return digits


def _on_number(template: str, result: Callable[[int], str], limit: int = 3_999) -> _Make:
    def make(random: Random) -> Item:
        value = random.randint(1, limit)
        forms = {
            "roman": _roman(value),
            "words": _below_thousand(value % 1000),
            "binary": _base(value, 2),
            "hex": _base(value, 16),
        }
        return Item(template.format(n=value, **forms), result(value))

    return make


def _suffix(value: int) -> str:
    last, teen = value % 10, value % 100 in (11, 12, 13)
    return f"{value}{'th' if teen or last not in (1, 2, 3) else ('st', 'nd', 'rd')[last - 1]}"


_NUMERALS: tuple[_Make, ...] = (
    _on_number("Write {n} in Roman numerals.", _roman),
    _on_number("What is the Roman numeral for {n}?", _roman),
    _on_number("Convert {n} to a Roman numeral.", _roman),
    _on_number("What number is the Roman numeral {roman}?", str),
    _on_number("Convert {roman} to decimal.", str),
    _on_number("Write {roman} in Arabic numerals.", str),
    _on_number("Convert {n} to binary.", lambda n: _base(n, 2)),
    _on_number("What is {n} in hexadecimal?", lambda n: _base(n, 16)),
    _on_number("Express {n} in octal.", lambda n: _base(n, 8)),
    _on_number("Convert {binary} from binary to decimal.", str),
    _on_number("Convert the binary number {binary} to decimal.", str),
    _on_number("Convert 0x{hex} to decimal.", str),
    _on_number("Write {n} in words.", _below_thousand, 999),
    _on_number("Spell out {n}.", _below_thousand, 999),
    _on_number("What number is {words}?", str, 999),
    _on_number("Write '{words}' in digits.", str, 999),
    _on_number("What is the ordinal of {n}?", _suffix),
    _on_number("Convert {binary} from binary to hexadecimal.", lambda n: _base(n, 16)),
    _on_number("How did the Romans write {n}?", _roman),
    _on_number("If {hex} is hexadecimal, what is it in base ten?", str),
)
MAKERS: Mapping[str, tuple[_Make, ...]] = {
    "arithmetic": _ARITHMETIC,
    "text": _TEXT,
    "dates": _DATES,
    "units": _UNITS,
    "numerals": _NUMERALS,
}
"""For each skill, one maker per phrasing."""
