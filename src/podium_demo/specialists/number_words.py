"""English number words both ways: `three hundred and ninety-one`, `twenty-first`, `21st`."""

import re

LIMIT = 10**36
"""Numbers at or above this have no words here."""

_SMALL, _TENS, _SCALES = (
    line.replace("-", "").split(" ")
    for line in """\
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
seventeen eighteen nineteen
- - twenty thirty forty fifty sixty seventy eighty ninety
- thousand million billion trillion quadrillion quintillion sextillion septillion octillion nonillion \
decillion""".splitlines()
)
_VALUES = (
    {word: value for value, word in enumerate(_SMALL)}
    | {word: 10 * value for value, word in enumerate(_TENS) if word}
    | {"hundred": 100}
    | {word: 1000**power for power, word in enumerate(_SCALES) if word}
)
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_CARDINALS = {ordinal: word for word, ordinal in _IRREGULAR_ORDINALS.items()}
_SIGNS = ("minus", "negative")
_WORD = re.compile(r"[a-z]+")
VOCABULARY = frozenset(_VALUES) | {"and", "a", *_SIGNS}


def cardinal(value: int) -> str:
    """Return `value` in British words, with `and`. Needs |value| < LIMIT."""
    if value < 0:
        return f"minus {cardinal(-value)}"
    if value == 0:
        return _SMALL[0]
    parts: list[str] = []
    for power in range(len(_SCALES) - 1, -1, -1):
        group = value // 1000**power % 1000
        if group:
            joint = "and " if power == 0 and parts and group < 100 else ""  # noqa: PLR2004 - hundreds
            parts.append(f"{joint}{_below_thousand(group)} {_SCALES[power]}".strip())
    return " ".join(parts)


def _below_thousand(value: int) -> str:
    hundreds, rest = divmod(value, 100)
    if not hundreds:
        return _below_hundred(rest)
    return f"{_SMALL[hundreds]} hundred" + (f" and {_below_hundred(rest)}" if rest else "")


def _below_hundred(value: int) -> str:
    if value < len(_SMALL):
        return _SMALL[value]
    tens, rest = divmod(value, 10)
    return _TENS[tens] + (f"-{_SMALL[rest]}" if rest else "")


def ordinal(value: int) -> str:
    """Return the ordinal in words: 21 gives `twenty-first`."""
    head, last = _last_word(cardinal(value))
    if last in _IRREGULAR_ORDINALS:
        return head + _IRREGULAR_ORDINALS[last]
    return head + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def ordinal_digits(value: int) -> str:
    """Return the ordinal in digits: 21 gives `21st`."""
    teen = abs(value) // 10 % 10 == 1
    return f"{value}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(abs(value) % 10, 'th')}"


def parse(text: str) -> int | None:
    """Return the number that `text` spells, cardinal or ordinal, or None when it spells none.

    Only well-formed numbers count: the value is spelled again and compared.
    """
    words = _WORD.findall(text.lower())
    if not words or _WORD.sub("", text.lower()).strip(" -,\t\n"):
        return None
    sign = -1 if words[0] in _SIGNS else 1
    if sign < 0:
        del words[0]
    words = [word for word in words if word != "and"]
    if words and words[0] == "a":
        words[0] = "one"
    if words:
        words[-1] = _cardinal_word(words[-1])
    if not words or any(word not in _VALUES for word in words):
        return None
    value = _loose_value(words)
    if value >= LIMIT or [w for w in _WORD.findall(cardinal(value)) if w != "and"] != words:
        return None
    return sign * value


def is_ordinal(text: str) -> bool:
    """Return whether the last word of `text` is an ordinal such as `third` or `twentieth`."""
    words = _WORD.findall(text.lower())
    return bool(words) and _cardinal_word(words[-1]) != words[-1]


def _loose_value(words: list[str]) -> int:
    total = group = 0
    for word in words:
        value = _VALUES[word]
        if value == 100:  # noqa: PLR2004 - the word `hundred`
            group *= value
        elif value > 100:  # noqa: PLR2004 - `thousand` and above
            total += group * value
            group = 0
        else:
            group += value
        if total + group >= LIMIT:
            return LIMIT
    return total + group


def _cardinal_word(word: str) -> str:
    if word in _CARDINALS:
        return _CARDINALS[word]
    stem = f"{word.removesuffix('ieth')}y" if word.endswith("ieth") else word.removesuffix("th")
    return stem if stem in _VALUES and stem not in _IRREGULAR_ORDINALS else word


def _last_word(words: str) -> tuple[str, str]:
    start = max(words.rfind(" "), words.rfind("-")) + 1
    return words[:start], words[start:]
