"""Shelves: what is kept and dropped together. A run is on one whole, by retention class and month of opening.

A shelf's number is the class's times a million, plus year and month: 1202611 is evidence of November 2026.
"""

from datetime import UTC, datetime
from functools import lru_cache

EVIDENCE = 1
"""The retention class of the record itself."""

_CLASS_STEP = 1_000_000
_YEAR_STEP = 100
_MONTHS = 12
_S_PER_DAY = 86_400
_US_PER_DAY = _S_PER_DAY * 1_000_000


def shelf_of(time_us: int, retention_class: int = EVIDENCE) -> int:
    """Return the shelf of what was opened then, in microseconds since the epoch (UTC)."""
    return retention_class * _CLASS_STEP + _month_of_day(time_us // _US_PER_DAY)


def month_of_shelf(shelf: int) -> str:
    """Return the month of a shelf, YYYY-MM."""
    year, month = divmod(shelf % _CLASS_STEP, _YEAR_STEP)
    return f"{year:04d}-{month:02d}"


def next_shelf(shelf: int) -> int:
    """Return the shelf of the same class a month later."""
    return shelf + (1 if shelf % _YEAR_STEP < _MONTHS else _YEAR_STEP - _MONTHS + 1)


@lru_cache(maxsize=64)
def _month_of_day(day: int) -> int:
    opened = datetime.fromtimestamp(day * _S_PER_DAY, UTC)
    return opened.year * _YEAR_STEP + opened.month
