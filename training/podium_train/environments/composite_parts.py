"""The parts that composite demo tasks are put together from: an instruction and what it makes of a value.

Results are computed here, by other means than the specialists use.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

WORDS = """
banana quartz rhythm lantern orchard pebble violin mosaic harbour thunder walnut puzzle saffron meadow copper
glacier bottle cricket dolphin ember falcon garnet hazel island jigsaw kettle lemon marble needle oyster
""".split()  # noqa: SIM905 - thirty quoted words read worse
_MONTHS = """
January February March April May June July August September October November December
""".split()  # noqa: SIM905
_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Part:
    """One instruction, the specialist it needs, and the result it has."""

    text: str
    specialist: str
    result: str


FirstPart = Callable[[Random], Part]
NextPart = Callable[[Random, str], Part]


def one_of(random: Random, *texts: str) -> str:
    """Return one of `texts`."""
    return texts[random.randrange(len(texts))]


# --- arithmetic ------------------------------------------------------------------------------------------


def _product(random: Random) -> Part:
    a, b = random.randint(2, 60), random.randint(2, 40)
    asked = one_of(random, f"multiply {a} by {b}", f"what is {a} times {b}", f"calculate {a} * {b}")
    return Part(asked, "demo-arithmetic", str(a * b))


def _sum(random: Random) -> Part:
    a, b = random.randint(11, 900), random.randint(11, 900)
    asked = one_of(random, f"add {a} and {b}", f"what is {a} plus {b}", f"compute the sum of {a} and {b}")
    return Part(asked, "demo-arithmetic", str(a + b))


def _difference(random: Random) -> Part:
    a, b = random.randint(400, 2_500), random.randint(11, 390)
    asked = one_of(random, f"subtract {b} from {a}", f"what is {a} minus {b}")
    return Part(asked, "demo-arithmetic", str(a - b))


def _total(random: Random) -> Part:
    values = [random.randint(3, 400) for _ in range(3)]
    first, second, third = values
    asked = one_of(
        random, f"add {first}, {second} and {third}", f"what is the sum of {first}, {second} and {third}"
    )
    return Part(asked, "demo-arithmetic", str(sum(values)))


def _product_of_three(random: Random) -> Part:
    a, b, c = (random.randint(2, 12) for _ in range(3))
    return Part(f"multiply {a}, {b} and {c}", "demo-arithmetic", str(a * b * c))


def _average(random: Random) -> Part:
    middle, away = random.randint(60, 700), random.randint(2, 50)
    asked = f"what is the average of {middle - away} and {middle + away}"
    return Part(asked, "demo-arithmetic", str(middle))


def _quotient(random: Random) -> Part:
    a, b = random.randint(11, 400), random.randint(2, 30)
    return Part(f"divide {a * b} by {b}", "demo-arithmetic", str(a))


def _times(random: Random, value: str) -> Part:
    factor = random.randint(2, 9)
    asked = one_of(
        random, f"multiply the result by {factor}", f"multiply it by {factor}", f"multiply by {factor}"
    )
    return Part(asked, "demo-arithmetic", str(int(value) * factor))


def _plus(random: Random, value: str) -> Part:
    more = random.randint(3, 99)
    asked = one_of(random, f"add {more} to it", f"add {more} to the result")
    return Part(asked, "demo-arithmetic", str(int(value) + more))


def _doubled(_: Random, value: str) -> Part:
    return Part("double it", "demo-arithmetic", str(2 * int(value)))


def _tripled(_: Random, value: str) -> Part:
    return Part("triple it", "demo-arithmetic", str(3 * int(value)))


def _squared(_: Random, value: str) -> Part:
    return Part("square the result", "demo-arithmetic", str(int(value) ** 2))


def _less(random: Random, value: str) -> Part:
    less = random.randint(1, 3)
    return Part(f"subtract {less} from it", "demo-arithmetic", str(int(value) - less))


# --- text ------------------------------------------------------------------------------------------------


def _reversed_word(random: Random) -> Part:
    word = random.choice(WORDS)
    asked = one_of(random, f"reverse the word {word}", f"spell '{word}' backwards")
    return Part(asked, "demo-text", word[::-1])


def _letter_count(random: Random) -> Part:
    word = random.choice(WORDS)
    asked = one_of(random, f"count the letters in the word {word}", f"how many letters are in '{word}'")
    return Part(asked, "demo-text", str(len(word)))


def _vowel_count(random: Random) -> Part:
    word = random.choice([word for word in WORDS if word != "rhythm"])
    return Part(f"count the vowels in '{word}'", "demo-text", str(sum(word.count(v) for v in "aeiou")))


def _sorted_words(random: Random) -> Part:
    words = random.sample(WORDS, 3)
    first, second, third = words
    asked = one_of(
        random,
        f"sort the words {first}, {second} and {third} alphabetically",
        f"arrange the words {first}, {second} and {third} in alphabetical order",
    )
    return Part(asked, "demo-text", ", ".join(sorted(words)))


def _hyphenated(random: Random) -> Part:
    words = random.sample(WORDS, 3)
    first, second, third = words
    return Part(f"join the words {first}, {second} and {third} with a hyphen", "demo-text", "-".join(words))


def _letter_seen(random: Random) -> Part:
    word = random.choice(WORDS)
    letter = random.choice(word)
    asked = f"how many times does the letter '{letter}' appear in {word}"
    return Part(asked, "demo-text", str(word.count(letter)))


def _first_letters(random: Random) -> Part:
    word = random.choice(WORDS)
    return Part(f"what are the first three letters of {word}", "demo-text", word[:3])


def _reversed(random: Random, value: str) -> Part:
    asked = one_of(random, "reverse the result", "reverse its letters", "reverse it", "reverse the letters")
    return Part(asked, "demo-text", value[::-1])


def _upper(random: Random, value: str) -> Part:
    asked = one_of(random, "convert it to upper case", "write the result in capitals")
    return Part(asked, "demo-text", value.upper())


def _counted(random: Random, value: str) -> Part:
    asked = one_of(random, "count the letters in it", "count the letters")
    return Part(asked, "demo-text", str(sum(c.isalpha() for c in value)))


def _vowels_counted(_: Random, value: str) -> Part:
    return Part("how many vowels are in it", "demo-text", str(sum(value.lower().count(v) for v in "aeiou")))


def _vowels_dropped(_: Random, value: str) -> Part:
    kept = "".join(letter for letter in value if letter not in "aeiou")
    return Part("remove all the vowels from it", "demo-text", kept)


# --- dates and units -------------------------------------------------------------------------------------


def _day(random: Random) -> date:
    return date(1950, 1, 1) + timedelta(days=random.randrange(36_000))


def _days_between(random: Random) -> Part:
    first, days = _day(random), random.randint(20, 900)
    second = first + timedelta(days=days)
    asked = one_of(
        random,
        f"how many days are there from {first} to {second}",
        f"how many days lie between {first} and {second}",
    )
    return Part(asked, "demo-dates", str(days))


def _month_length(random: Random) -> Part:
    year, month = 2001 + 4 * random.randrange(20), random.randrange(12)
    asked = f"how many days are in {_MONTHS[month]} {year}"
    return Part(asked, "demo-dates", str(_DAYS_IN_MONTH[month]))


def _weekday(random: Random) -> Part:
    day = _day(random)
    asked = one_of(random, f"what day of the week is {day}", f"which weekday was {day}")
    return Part(asked, "demo-dates", _WEEKDAYS[day.weekday()])


def _day_of_year(random: Random) -> Part:
    day = _day(random)
    return Part(f"what day of the year is {day}", "demo-dates", str((day - date(day.year, 1, 1)).days + 1))


def _weekday_after(random: Random) -> Part:
    day, days = _day(random), random.randint(5, 300)
    later = day + timedelta(days=days)
    asked = f"what date is {days} days after {day}, and which weekday is it"
    return Part(asked, "demo-dates", _WEEKDAYS[later.weekday()])


# --- numerals --------------------------------------------------------------------------------------------


def roman(value: int) -> str:
    """Return 1 to 3999 in Roman numerals."""
    digits = (("I", "V", "X"), ("X", "L", "C"), ("C", "D", "M"), ("M", "", ""))
    forms = ("", "0", "00", "000", "01", "1", "10", "100", "1000", "02")
    places = [
        "".join(digits[place][int(which)] for which in forms[int(digit)])
        for place, digit in enumerate(reversed(str(value)))
    ]
    return "".join(reversed(places))


def _roman_read(random: Random) -> Part:
    value = random.randint(4, 400)
    asked = one_of(
        random, f"what number is the Roman numeral {roman(value)}", f"convert {roman(value)} to decimal"
    )
    return Part(asked, "demo-numerals", str(value))


def _binary_read(random: Random) -> Part:
    value = random.randint(9, 500)
    return Part(f"convert the binary number {value:b} to decimal", "demo-numerals", str(value))


def _octal_read(random: Random) -> Part:
    value = random.randint(9, 500)
    return Part(f"convert the octal number {value:o} to decimal", "demo-numerals", str(value))


def _to_roman(random: Random, value: str) -> Part:
    asked = one_of(
        random,
        "write the result in Roman numerals",
        "write it as a Roman numeral",
        "convert to Roman numerals",
    )
    return Part(asked, "demo-numerals", roman(int(value)))


def _to_binary(random: Random, value: str) -> Part:
    asked = one_of(random, "convert it to binary", "write the result in binary", "convert to binary")
    return Part(asked, "demo-numerals", f"{int(value):b}")


def _to_octal(_: Random, value: str) -> Part:
    return Part("express it in octal", "demo-numerals", f"{int(value):o}")


def _to_hexadecimal(_: Random, value: str) -> Part:
    return Part("express the result in hexadecimal", "demo-numerals", f"{int(value):X}")


def _to_words(random: Random, value: str) -> Part:
    asked = one_of(random, "spell it out in words", "write the result in words")
    return Part(asked, "demo-numerals", spoken(int(value)))


_ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen
""".split()  # noqa: SIM905
_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905


def spoken(value: int) -> str:
    """Return a whole number below a million in English words."""
    if value >= 1_000:  # noqa: PLR2004 - the words change here
        low = value % 1_000
        joint = " and " if 0 < low < 100 else " "  # noqa: PLR2004
        return f"{spoken(value // 1_000)} thousand" + (f"{joint}{spoken(low)}" if low else "")
    if value >= 100:  # noqa: PLR2004
        return f"{_ONES[value // 100]} hundred" + (f" and {spoken(value % 100)}" if value % 100 else "")
    if value < len(_ONES):
        return _ONES[value]
    return _TENS[value // 10] + (f"-{_ONES[value % 10]}" if value % 10 else "")


FIRST: Mapping[str, FirstPart] = {
    "product": _product,
    "sum": _sum,
    "difference": _difference,
    "quotient": _quotient,
    "total": _total,
    "product-of-three": _product_of_three,
    "average": _average,
    "reversed-word": _reversed_word,
    "letter-count": _letter_count,
    "vowel-count": _vowel_count,
    "sorted-words": _sorted_words,
    "hyphenated": _hyphenated,
    "letter-seen": _letter_seen,
    "first-letters": _first_letters,
    "days-between": _days_between,
    "month-length": _month_length,
    "weekday": _weekday,
    "day-of-year": _day_of_year,
    "weekday-after": _weekday_after,
    "roman-read": _roman_read,
    "binary-read": _binary_read,
    "octal-read": _octal_read,
}
"""Parts that bring what they work on."""

NEXT: Mapping[str, NextPart] = {
    "times": _times,
    "plus": _plus,
    "doubled": _doubled,
    "tripled": _tripled,
    "squared": _squared,
    "less": _less,
    "reversed": _reversed,
    "upper": _upper,
    "counted": _counted,
    "vowels-counted": _vowels_counted,
    "vowels-dropped": _vowels_dropped,
    "to-roman": _to_roman,
    "to-binary": _to_binary,
    "to-octal": _to_octal,
    "to-hexadecimal": _to_hexadecimal,
    "to-words": _to_words,
}
"""Parts that work on the result before them."""
