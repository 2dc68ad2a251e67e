"""Which templates of composite tasks train, which choose the checkpoint, and which are held out.

A template is a sequence of parts, or several side by side (`&`) that a last part puts together (`:`). All of
this was fixed before the training that it belongs to. Templates once held out were looked at when their
training was over: those choose checkpoints now, and new ones, with parts of their own, took their place.
"""

from collections.abc import Iterator
from random import Random

from podium_train.outcomes.splits import Split

_LISTED = (
    "product to-roman",
    "sum to-words",
    "letter-count times",
    "days-between to-binary",
    "roman-read times",
    "weekday reversed",
    "month-length plus to-roman",
    "product to-roman reversed",
    "roman-read plus to-binary",
    "vowel-count times to-words",
    "sum to-words counted",
    "days-between times to-hexadecimal",
    "difference to-words upper",
    "binary-read times to-roman reversed",
    "quotient to-words reversed",
    "weekday-after upper",
    "letter-count to-roman",
    "sum to-binary reversed",
    "roman-read doubled to-words",
    "total to-roman",
    "total to-words reversed",
    "product & letter-count : added",
    "roman-read & sum : added",
    "month-length & vowel-count : multiplied",
    "reversed-word & product : joined",
    "weekday & roman-read : joined",
    "month-length & reversed-word : joined",
    "sum & vowel-count : joined",
    "days-between & quotient : joined",
    "sorted-words & product : joined",
    "sum to-words & vowel-count : joined",
    "roman-read plus & weekday : joined",
    "sum & roman-read & reversed-word : joined",
)
_DEV = (
    "difference to-roman",
    "day-of-year to-words",
    "letter-count plus to-binary",
    "month-length to-words upper",
    "day-of-year plus to-roman",
    "binary-read plus reversed",
    "days-between to-roman reversed",
    "quotient to-words counted to-binary",
    "letter-count times to-roman reversed",
    "binary-read & quotient : multiplied",
    "binary-read & days-between : added",
    "weekday & difference : joined",
    "difference to-binary & reversed-word : joined",
)
_ONCE_HELD_OUT = (
    "difference to-hexadecimal",
    "product to-words counted",
    "binary-read times to-words",
    "vowel-count plus to-roman",
    "month-length times to-binary",
    "days-between plus to-words upper",
    "day-of-year to-roman reversed",
    "sum to-hexadecimal reversed",
    "total to-binary reversed",
    "product-of-three to-roman reversed",
    "average to-words upper",
    "letter-seen times to-binary",
    "octal-read plus to-words",
    "roman-read squared",
    "quotient to-octal",
    "days-between tripled to-roman",
    "weekday vowels-counted times",
    "product less to-hexadecimal",
    "roman-read to-words vowels-dropped",
    "product & vowel-count : added",
    "days-between & letter-count : multiplied",
    "binary-read & month-length : multiplied",
    "roman-read & quotient : added",
    "days-between & total : added",
    "octal-read & day-of-year : added",
    "letter-seen & quotient : differed",
    "average & roman-read : differed",
    "sum to-words & weekday : joined",
    "product to-roman & reversed-word : joined",
    "month-length & binary-read plus : joined",
    "day-of-year & sorted-words : joined",
    "hyphenated & difference : joined",
    "weekday upper & product : joined",
    "first-letters & sum to-roman : joined",
    "weekday & sum & reversed-word : joined",
    "vowel-count & quotient & binary-read : joined",
)
_HELD_OUT = (
    "days-between to-words",
    "roman-read times to-hexadecimal",
    "vowel-count to-binary",
    "month-length to-roman reversed",
    "total to-hexadecimal",
    "product to-binary reversed",
    "letter-count plus to-words upper",
    "binary-read doubled to-roman",
    "weekday counted times",
    "quotient to-roman counted",
    "remainder to-words",
    "hexadecimal-read increased to-binary",
    "largest to-roman reversed",
    "power to-words counted",
    "words-read cubed to-roman",
    "difference to-ordinal",
    "day-of-year to-roman lower",
    "leap-year-after to-roman letters-sorted",
    "sum to-words last-letter",
    "product & month-length : added",
    "roman-read & letter-count : multiplied",
    "quotient & day-of-year : added",
    "vowel-count & binary-read : added",
    "days-between & sum : larger",
    "consonant-count & difference : added",
    "power & roman-read : larger",
    "hexadecimal-read & letter-count : multiplied",
    "total & weekday : joined",
    "sorted-words & month-length : joined",
    "difference to-roman & reversed-word : joined",
    "letter-count & days-between plus : joined",
    "last-letters & roman-read : joined",
    "initials & product : joined",
    "remainder to-words & weekday : joined",
    "leap-year-after & sum & reversed-word : joined",
    "quotient & month-length & vowel-count : joined",
)

_NUMBERS = {
    "arithmetic": ("product", "sum", "difference", "quotient", "total"),
    "text": ("letter-count", "vowel-count"),
    "dates": ("days-between", "month-length"),
    "numerals": ("roman-read", "binary-read"),
}
_TEXTS = {"text": ("reversed-word", "sorted-words"), "dates": ("weekday", "weekday-after")}
_WITH_NUMBERS = ("times", "plus", "doubled")
_WITH_TEXT = ("reversed", "upper", "counted")
_ROMAN_TOO_LARGE = frozenset({"times", "doubled"})
"""What these make of a number may be more than Roman numerals reach."""

_SIDE_CHOICES = ("joined", "joined", "added", "multiplied")
_GROWN_COUNT = 150
_GROWN_CHAINS = 0.4
_LONGER_SIDE, _THIRD_SIDE = 0.4, 0.3
_SEED = 20_261_130


def _chain(random: Random, length: int, *, first: str = "") -> tuple[str, ...]:
    """Return parts of which no two neighbours are for one specialist; `first` is that of the first part."""
    specialist = first or random.choice(sorted(_NUMBERS))
    is_text = specialist in _TEXTS and random.random() < 0.3  # noqa: PLR2004 - most parts make numbers
    names = [random.choice((_TEXTS if is_text else _NUMBERS)[specialist])]
    while len(names) < length:
        options = [name for name in _following(names[-1], is_text=is_text) if _maker(name) != specialist]
        if not options:
            break
        names.append(random.choice(options))
        specialist = _maker(names[-1])
        is_text = specialist != "arithmetic" and names[-1] != "counted"
    return tuple(names)


def _following(name: str, *, is_text: bool) -> tuple[str, ...]:
    """Return what can be asked of the result of the part `name`."""
    if not is_text:
        roman = () if name in _ROMAN_TOO_LARGE else ("to-roman",)
        return (*_WITH_NUMBERS, "to-words", "to-binary", *roman)
    if name in ("weekday", "weekday-after", "to-words"):
        return _WITH_TEXT
    return ("reversed",)


def _maker(name: str) -> str:
    if name in _WITH_NUMBERS:
        return "arithmetic"
    return "text" if name in _WITH_TEXT else "numerals"


def _beside(random: Random) -> str:
    """Return a template of two or three sides, neighbours for different specialists."""
    end = random.choice(_SIDE_CHOICES)
    sides: list[str] = []
    specialists = random.sample(sorted(_NUMBERS), 3)
    count = 3 if end == "joined" and random.random() < _THIRD_SIDE else 2
    for specialist in specialists[:count]:
        if end == "joined":
            length = 2 if random.random() < _LONGER_SIDE else 1
            sides.append(" ".join(_chain(random, length, first=specialist)))
        else:
            sides.append(random.choice(_NUMBERS[specialist]))
    return f"{' & '.join(sides)} : {end}"


def _unordered(template: str) -> tuple[frozenset[str], str]:
    """Return the sides of a template in no order, and how they end."""
    sides, _, end = template.partition(" : ")
    return frozenset(sides.split(" & ")), end


def _grown() -> Iterator[str]:
    """Yield templates put together at random from parts that train, none of another split in any order."""
    random = Random(_SEED)  # noqa: S311 - reproducible, not secret
    known = set(map(_unordered, (*_LISTED, *_DEV, *_ONCE_HELD_OUT, *_HELD_OUT)))
    for number in range(_GROWN_COUNT):
        template = ""
        while not template or _unordered(template) in known:
            if number < _GROWN_COUNT * _GROWN_CHAINS:
                names = _chain(random, random.choice((2, 3, 3, 4)))
                template = " ".join(names) if len(names) > 1 else ""
            else:
                template = _beside(random)
        known.add(_unordered(template))
        yield template


TEMPLATES: dict[Split, tuple[str, ...]] = {
    Split.TRAIN: (*_LISTED, *_grown()),
    Split.DEV: (*_DEV, *_ONCE_HELD_OUT),
    Split.TEST: _HELD_OUT,
}
"""Templates of composite tasks by split. No template is in two.

The held-out ones are the third set. Nearly half of them have a part that no other split has.
"""
