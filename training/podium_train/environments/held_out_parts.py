"""Parts of composite demo tasks that only held-out templates have: no training and no choice used them."""

from collections.abc import Mapping
from random import Random

from podium_train.environments.composite_parts import WORDS, FirstPart, NextPart, Part, one_of, spoken


def _remainder(random: Random) -> Part:
    a, b = random.randint(50, 900), random.randint(3, 29)
    return Part(f"what is the remainder when {a} is divided by {b}", "demo-arithmetic", str(a % b))


def _largest(random: Random) -> Part:
    first, second, third = random.sample(range(11, 900), 3)
    asked = f"what is the largest of {first}, {second} and {third}"
    return Part(asked, "demo-arithmetic", str(max(first, second, third)))


def _power(random: Random) -> Part:
    base, exponent = random.randint(2, 11), random.randint(2, 3)
    return Part(f"raise {base} to the power of {exponent}", "demo-arithmetic", str(base**exponent))


def _increased(random: Random, value: str) -> Part:
    more = random.randint(3, 99)
    return Part(f"increase it by {more}", "demo-arithmetic", str(int(value) + more))


def _cubed(_: Random, value: str) -> Part:
    return Part("cube the result", "demo-arithmetic", str(int(value) ** 3))


def _consonant_count(random: Random) -> Part:
    word = random.choice(WORDS)
    count = len(word) - sum(word.count(vowel) for vowel in "aeiou")
    return Part(f"count the consonants in '{word}'", "demo-text", str(count))


def _last_letters(random: Random) -> Part:
    word = random.choice(WORDS)
    return Part(f"what are the last three letters of {word}", "demo-text", word[-3:])


def _initials(random: Random) -> Part:
    words = random.sample(WORDS, 3)
    asked = f"what are the initials of '{' '.join(words)}'"
    return Part(asked, "demo-text", "".join(word[0] for word in words).upper())


def _lower(random: Random, value: str) -> Part:
    return Part(
        one_of(random, "put it in lower case", "convert it to lower case"), "demo-text", value.lower()
    )


def _letters_sorted(_: Random, value: str) -> Part:
    return Part("sort the letters of it", "demo-text", "".join(sorted(value)))


def _last_letter(_: Random, value: str) -> Part:
    return Part("what is the last letter of it", "demo-text", value[-1])


def _leap_year_after(random: Random) -> Part:
    year = random.randrange(1903, 2090)
    later = next(y for y in range(year + 1, year + 9) if y % 4 == 0)
    return Part(f"what is the next leap year after {year}", "demo-dates", str(later))


def _hexadecimal_read(random: Random) -> Part:
    value = random.randint(20, 500)
    return Part(f"convert the hexadecimal number {value:X} to decimal", "demo-numerals", str(value))


def _words_read(random: Random) -> Part:
    value = random.randint(2, 15)
    return Part(f"write {spoken(value)} in digits", "demo-numerals", str(value))


def _to_ordinal(_: Random, value: str) -> Part:
    is_teen = value[-2:] in ("11", "12", "13")
    ending = "th" if is_teen else {"1": "st", "2": "nd", "3": "rd"}.get(value[-1], "th")
    return Part("express it as an ordinal number", "demo-numerals", value + ending)


HELD_OUT_FIRST: Mapping[str, FirstPart] = {
    "remainder": _remainder,
    "largest": _largest,
    "power": _power,
    "consonant-count": _consonant_count,
    "last-letters": _last_letters,
    "initials": _initials,
    "leap-year-after": _leap_year_after,
    "hexadecimal-read": _hexadecimal_read,
    "words-read": _words_read,
}
"""Parts that bring what they work on."""

HELD_OUT_NEXT: Mapping[str, NextPart] = {
    "increased": _increased,
    "cubed": _cubed,
    "lower": _lower,
    "letters-sorted": _letters_sorted,
    "last-letter": _last_letter,
    "to-ordinal": _to_ordinal,
}
"""Parts that work on the result before them."""
