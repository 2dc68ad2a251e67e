"""The graders: one frozen value per question, which judges any text and never raises."""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from podium_core.grading.dates import days_in
from podium_core.grading.extraction import Answer, answer_in, last_fence, plain
from podium_core.grading.numbers import Quantity, after_equals, quantities_in
from podium_core.grading.result import Graded, judged, unreadable

_OPENERS = re.compile(r"[\[{]")
_MAX_OPENERS = 40
_LETTER = re.compile(r"(?:option |choice |answer )?\(?([a-z])\)?(?:[).:,-]+ ?(.*))?", re.IGNORECASE)
_BULLET = re.compile(r"\s*(?:[-*\u2022]|[0-9]{1,3}[.)])\s+(.*)")
_SEPARATORS = re.compile(r"[,;\n]|\band\b")
_NOTHING = frozenset({"", "none", "empty", "nothing", "empty set", "the empty set", "\u2205", "no words"})


@dataclass(frozen=True, slots=True)
class Text:
    """Right is any of `golds`, in any spacing and quoting; in any case unless `fold_case` is off."""

    golds: tuple[str, ...]
    fold_case: bool = True

    def grade(self, text: str) -> Graded:
        """Return the grade of a whole answer text."""
        if unread := unreadable(text):
            return unread
        answer = answer_in(text)
        wanted = {plain(gold, fold_case=self.fold_case) for gold in self.golds}
        is_right = any(plain(reading, fold_case=self.fold_case) in wanted for reading in answer.readings)
        return judged(answer.first, is_right=is_right)


@dataclass(frozen=True, slots=True)
class Number:
    """Right is `gold`, within `tolerance` of it (absolute); a unit may be left out but not be another one.

    With `is_percent` the gold is a number of per cent; otherwise `50%` is read as a half.
    """

    gold: Fraction
    tolerance: Fraction = Fraction(0)
    units: tuple[str, ...] = ()
    is_percent: bool = False

    def grade(self, text: str) -> Graded:
        """Return the grade of a whole answer text."""
        if unread := unreadable(text):
            return unread
        answer = answer_in(text)
        found = _number_in(answer)
        if found is None:
            return judged(answer.first, is_right=False, reason="no_single_number")
        value = found.value / 100 if found.is_percent and not self.is_percent else found.value
        if self.units and found.unit and plain(found.unit) not in {plain(unit) for unit in self.units}:
            return judged(answer.first, is_right=False, reason="other_unit")
        return judged(answer.first, is_right=abs(value - self.gold) <= self.tolerance)


@dataclass(frozen=True, slots=True)
class Choice:
    """Right is the letter of option `gold` (A is 0), or that option's own text."""

    gold: int
    options: tuple[str, ...]

    def grade(self, text: str) -> Graded:
        """Return the grade of a whole answer text."""
        if unread := unreadable(text):
            return unread
        answer = answer_in(text)
        chosen = next((c for reading in answer.readings if (c := self._chosen(reading)) is not None), None)
        if chosen is None:
            return judged(answer.first, is_right=False, reason="no_choice")
        return judged(answer.first, is_right=chosen == self.gold)

    def _chosen(self, reading: str) -> int | None:
        said = plain(reading)
        texts = [plain(option) for option in self.options]
        if said in texts:
            return texts.index(said)
        match = _LETTER.fullmatch(said)
        index = ord(match[1]) - ord("a") if match else -1
        return index if 0 <= index < len(texts) else None


@dataclass(frozen=True, slots=True)
class Listing:
    """Right is the same items, in the same order if `is_ordered`; however they are separated."""

    gold: tuple[str, ...]
    is_ordered: bool = False

    def grade(self, text: str) -> Graded:
        """Return the grade of a whole answer text."""
        if unread := unreadable(text):
            return unread
        answer = answer_in(text)
        wanted = [_item(item) for item in self.gold]
        for reading in _list_readings(answer):
            given = _items_of(reading)
            if given == wanted or (not self.is_ordered and Counter(given) == Counter(wanted)):
                return judged(reading, is_right=True)
        return judged(answer.first, is_right=False)


@dataclass(frozen=True, slots=True)
class Day:
    """Right is the date, written in any usual way that has one meaning."""

    gold: date

    def grade(self, text: str) -> Graded:
        """Return the grade of a whole answer text."""
        if unread := unreadable(text):
            return unread
        answer = answer_in(text)
        days = [days_in(reading) for reading in answer.readings]
        found = next((each for each in days if each), [])
        if not found or (answer.is_tagged and len(set(found)) > 1):
            return judged(answer.first, is_right=False, reason="no_single_date")
        return judged(answer.first, is_right=found[-1] == self.gold)


@dataclass(frozen=True, slots=True)
class Json:
    """Right is an equal JSON value: layout and field order do not matter, types do. `gold` is its text."""

    gold: str

    def grade(self, text: str) -> Graded:
        """Return the grade of a whole answer text."""
        if unread := unreadable(text):
            return unread
        answer = answer_in(text)
        values = _json_in(answer)
        if not values:
            return judged(answer.first, is_right=False, reason="no_json")
        return judged(answer.first, is_right=_is_equal(values[-1], json.loads(self.gold)))


def _number_in(answer: Answer) -> Quantity | None:
    """Return the one number a tagged answer holds; of untagged text, the last number of the best reading."""
    for reading in answer.readings:
        for part in dict.fromkeys((reading, after_equals(reading))):
            found = quantities_in(part)
            if len(found) == 1:
                return found[0]
    if answer.is_tagged:
        return None
    return next((found[-1] for reading in answer.readings if (found := quantities_in(reading))), None)


def _list_readings(answer: Answer) -> list[str]:
    bullets: list[str] = []
    for line in reversed(answer.visible.splitlines()):
        bullet = _BULLET.fullmatch(line)
        if bullet is None:
            if bullets or line.strip():
                break
            continue
        bullets.insert(0, bullet[1])
    run = ["\n".join(bullets)] if bullets and not answer.is_tagged else []
    return [*answer.readings, *run]


def _items_of(text: str) -> list[str]:
    flat = plain(text.replace("\n", ";"), fold_case=False)
    while len(flat) > 1 and (flat[0], flat[-1]) in {("[", "]"), ("{", "}"), ("(", ")")}:
        flat = flat[1:-1].strip()
    if flat.casefold() in _NOTHING:
        return []
    bare = (_BULLET.fullmatch(piece) for piece in _SEPARATORS.split(flat))
    pieces = _SEPARATORS.split(flat)
    items = [_item(match[1] if match else piece) for match, piece in zip(bare, pieces, strict=True)]
    return [item for item in items if item]


def _item(text: str) -> str:
    return plain(text.strip())


def _json_in(answer: Answer) -> list[Any]:
    """Return the JSON values of a tagged answer, of the last code fence, or else of all the text."""
    if answer.is_tagged:
        return _json_values(last_fence(answer.first) or answer.first)
    return _json_values(last_fence(answer.visible) or "") or _json_values(answer.visible)


def _json_values(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        pass
    decoder = json.JSONDecoder()
    values: list[Any] = []
    position = 0
    for _ in range(_MAX_OPENERS):
        opener = _OPENERS.search(text, position)
        if opener is None:
            break
        try:
            value, position = decoder.raw_decode(text, opener.start())
        except (ValueError, RecursionError):
            position = opener.end()
        else:
            values.append(value)
    return values


def _is_equal(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return (
            isinstance(given, dict)
            and given.keys() == wanted.keys()
            and all(_is_equal(given[key], value) for key, value in wanted.items())
        )
    if isinstance(wanted, list):
        return (
            isinstance(given, list)
            and len(given) == len(wanted)
            and all(_is_equal(g, w) for g, w in zip(given, wanted, strict=True))
        )
    if isinstance(wanted, bool) or isinstance(given, bool) or wanted is None:
        return given is wanted
    if isinstance(wanted, int | float):
        return isinstance(given, int | float) and not _is_wild(given) and bool(given == wanted)
    return bool(given == wanted)


def _is_wild(number: float) -> bool:
    return isinstance(number, float) and not math.isfinite(number)
