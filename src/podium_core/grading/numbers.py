"""Reads numbers as people and models write them: separators, percent, currency, fractions."""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

_MAX_CHARS = 2_000
_GROUPED = r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?:[ '_][0-9]{3})+|[0-9]+"
_NUMBER = re.compile(
    rf"(?P<sign>[-+](?: ?(?=[0-9.$])))?(?P<whole>{_GROUPED})?(?P<part>\.[0-9]+)?"
    r"(?P<power>[eE][-+]?[0-9]{1,3}(?![0-9]))?"
)
_OVER = re.compile(r" ?/ ?(?P<below>[0-9]{1,60})(?![0-9.])")
_MIXED = re.compile(r" (?P<above>[0-9]{1,60})/(?P<below>[0-9]{1,60})(?![0-9.])")
_POINTED_GROUPS = re.compile(
    r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{3}){2,}(?:,[0-9]+)?(?![0-9])"
    r"|(?<![0-9.,])[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]{1,2}(?![0-9,])"
)
_COMMA_DECIMAL = re.compile(r"(?<![0-9.,])([0-9]+),([0-9]{1,2}|[0-9]{4,})(?![0-9,.])")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\{([-+]?[0-9]{1,60})\}\{([0-9]{1,60})\}")
_TIMES_POWER = re.compile(r" ?(?:\*|x|\\times) ?10\^\{?([-+]?[0-9]{1,3})\}?")
_WORD = re.compile(r" ?(%|°[CF]?|[^\W\d_][^\s,;:!?()]*(?:/[^\W\d_]+)?)")
_CLEAN = str.maketrans(
    {"\u2212": "-", "\u2013": "-", "\u2012": "-", "\u00d7": "*", "\u2019": "'"}
    | dict.fromkeys("\u20ac\u00a3\u00a5", "$")
)
_MONEY_WORDS = re.compile(r"\b(?:USD|EUR|GBP|dollars?|euros?|pounds?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, whether per cent, and the word that follows it."""

    value: Fraction
    is_percent: bool = False
    unit: str = ""


def quantities_in(text: str) -> list[Quantity]:
    """Return the numbers in `text` in order; none when it is too long to be an answer."""
    if len(text) > _MAX_CHARS:
        return []
    text = _spelled(text)
    found: list[Quantity] = []
    position = 0
    while position < len(text):
        match = _NUMBER.match(text, position) if text[position] in "+-.0123456789" else None
        if match is None or not (match["whole"] or match["part"]) or _is_inside_word(text, position):
            position += 1
            continue
        value, position = _value(match, text)
        word = _WORD.match(text, position)
        unit = word.group(1).rstrip(".") if word else ""
        is_percent = unit == "%" or unit.casefold() in {"percent", "per"}
        found.append(Quantity(value, is_percent, "" if is_percent else unit))
    return found


def after_equals(text: str) -> str:
    """Return what follows the last equals sign, if there is one."""
    for sign in ("≈", "="):
        text = text.rpartition(sign)[2]
    return text


def _spelled(text: str) -> str:
    text = unicodedata.normalize("NFKC", _without_dollars(text.translate(_CLEAN)))
    text = _MONEY_WORDS.sub("", " ".join(text.split()))
    text = _LATEX_FRACTION.sub(r"\1/\2", text.replace("\\%", "%").replace("\\$", "$"))
    text = _TIMES_POWER.sub(r"e\1", text)
    text = _POINTED_GROUPS.sub(lambda m: m[0].replace(".", "").replace(",", "."), text)
    return _COMMA_DECIMAL.sub(r"\1.\2", text)


def _without_dollars(text: str) -> str:
    return re.sub(r"\$ ?", "", text)


def _is_inside_word(text: str, position: int) -> bool:
    before = text[position - 1] if position else " "
    return before.isalnum() or before == "_" or (text[position] in "-+" and before == ")")


def _value(match: re.Match[str], text: str) -> tuple[Fraction, int]:
    whole = re.sub(r"[ ,'_]", "", match["whole"] or "0")
    value = Fraction(f"{whole}{match['part'] or ''}{match['power'] or ''}")
    end = match.end()
    if not match["part"] and not match["power"]:
        over, mixed = _OVER.match(text, end), _MIXED.match(text, end)
        if over and int(over["below"]):
            value, end = value / int(over["below"]), over.end()
        elif mixed and int(mixed["below"]):
            value, end = value + Fraction(int(mixed["above"]), int(mixed["below"])), mixed.end()
    return (-value if (match["sign"] or "").startswith("-") else value), end
