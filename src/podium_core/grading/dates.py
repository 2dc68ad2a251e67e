"""Reads calendar dates as people write them, where they have one meaning."""

import re
from datetime import date

_SPELLINGS = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep"
    "|october oct|november nov|december dec"
)
_MONTHS = {
    name: number for number, names in enumerate(_SPELLINGS.split("|"), start=1) for name in names.split()
}
_NAMES = "|".join(sorted(_MONTHS, key=len, reverse=True))
_MAX_CHARS = 2_000
_ISO = re.compile(r"(?<![0-9])([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})(?![0-9])")
_DAY_FIRST = re.compile(
    rf"(?<![0-9])([0-9]{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_NAMES})\b\.?,? ([0-9]{{4}})(?![0-9])",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"\b({_NAMES})\.? ([0-9]{{1,2}})(?:st|nd|rd|th)?,? ([0-9]{{4}})(?![0-9])", re.IGNORECASE
)
_POINTED = re.compile(r"(?<![0-9.])([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})(?![0-9])")
_SLASHED = re.compile(r"(?<![0-9/])([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})(?![0-9])")


def days_in(text: str) -> list[date]:
    """Return the dates in `text`, in order. `03/04/2026`, which has two meanings, is none."""
    text = " ".join(text[:_MAX_CHARS].split())
    found: list[tuple[int, date]] = []
    for match in _ISO.finditer(text):
        _note(found, match, match[1], match[2], match[3])
    for match in _DAY_FIRST.finditer(text):
        _note(found, match, match[3], str(_MONTHS[match[2].casefold()]), match[1])
    for match in _MONTH_FIRST.finditer(text):
        _note(found, match, match[3], str(_MONTHS[match[1].casefold()]), match[2])
    for match in _POINTED.finditer(text):
        _note(found, match, match[3], match[2], match[1])
    for match in _SLASHED.finditer(text):
        readings = {(match[2], match[1]), (match[1], match[2])}
        valid = [(month, day) for month, day in readings if int(month) <= 12]  # noqa: PLR2004 - months
        if len(valid) == 1:
            _note(found, match, match[3], *valid[0])
    return [day for _, day in sorted(found)]


def _note(found: list[tuple[int, date]], match: "re.Match[str]", year: str, month: str, day: str) -> None:
    try:
        found.append((match.start(), date(int(year), int(month), int(day))))
    except ValueError:
        return
