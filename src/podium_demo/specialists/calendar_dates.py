"""The date half of demo-dates: days between dates, dates after a while, weekdays and leap years."""

import calendar
import re
from collections.abc import Callable
from datetime import date, timedelta

from podium_demo.specialists.answering import CannotAnswerError, Earlier
from podium_demo.specialists.number_words import parse
from podium_demo.specialists.references import points_at_one

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_MONTHS["sept"] = 9
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_FORMS = (
    re.compile(r"(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})"),
    re.compile(
        rf"(?:the )?(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_MONTH})\.?,? (?P<y>[0-9]{{4}})"
    ),
    re.compile(rf"(?P<m>{_MONTH})\.? (?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?,? (?P<y>[0-9]{{4}})"),
)
_INSIDE = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b")
_AMOUNT = re.compile(r"(?P<n>[0-9]{1,7}|an?|[a-z][a-z -]{1,80}?) (?P<unit>day|week|month|year)s?")
_AND = re.compile(r",\s*and\s+|,\s+|\s+and\s+")
_MAX_COUNT = 4_000_000
_TO = r"(?:to|until|till|and|through)"
_BETWEEN = re.compile(
    r"(?:how many|number of|the number of|count(?: the)?) (?P<unit>days|weeks)"
    r"(?: are there| are| there are| lie| pass)? "
    rf"(?P<how>between|from) (?P<a>.+?) {_TO} (?P<b>.+)"
)
_UNTIL = re.compile(r"how many (?P<unit>days|weeks) after (?P<a>.+?) is (?P<b>.+)")
_SHIFT = re.compile(
    r"(?:(?:what|which) )?(?:date |day |the date |the day )?(?:is |will it be |was it |was |comes |falls )?"
    r"(?P<amount>.+?) (?P<how>after|from|before) (?P<a>.+)"
)
_ADD = re.compile(r"add (?P<amount>.+?)(?: to (?P<a>.+))?")
_SUBTRACT = re.compile(r"(?:subtract|take(?: away)?) (?P<amount>.+?)(?: (?:away )?from (?P<a>.+))?")
_SUM = re.compile(r"(?:what (?:date )?is )?(?P<a>.+?) (?P<how>plus|minus|\+|-) (?P<amount>.+)")
_WEEKDAY = re.compile(
    r"(?:(?:on )?(?:what|which) (?:day of the week|weekday|day)"
    r"|(?:the |what is the )?(?:day of the week|weekday))"
    r"(?: is| was| will be| does| did| of| for| on)? (?P<a>.+?)(?: fall(?: on)?| falls on| be)?"
)
_WEEKDAY_IT_IS = re.compile(
    r"(?:on )?(?:what|which) (?:day of the week|weekday|day) (?P<a>.+?) (?:is|was|will be|falls on|falls)"
)
_LEAP = re.compile(r"(?:is|was|will) (?:the year )?(?P<a>.+?) (?:a|be a) leap year")
_IF_LEAP = re.compile(r"(?:if|whether) (?:the year )?(?P<a>.+?) (?:is|was|will be) a leap year")
_NEXT_LEAP = re.compile(
    r"(?:what is |when is )?(?:the )?(?:next |first )?leap year (?:after|following) (?P<a>.+)"
)
_LENGTH = re.compile(
    r"(?:how many days(?: are there| are| does| did)?|number of days|the number of days)"
    r"(?: in)?(?: the month of)? "
    rf"(?:(?P<m>{_MONTH}),? )?(?:the year )?(?P<y>[0-9]{{4}})(?: have)?"
)
_DAY_OF_YEAR = re.compile(r"(?:what|which)(?: number)? day of the year (?:is|was) (?P<a>.+)")


def solve_date(text: str, earlier: Earlier) -> str | None:
    """Return the answer to a calendar question (lower-case text), or None when it is none."""
    for pattern, answer in _RULES:
        if (match := pattern.fullmatch(text)) and (found := answer(match, earlier)) is not None:
            return found
    return None


def read_date(text: str, earlier: Earlier) -> date | None:
    """Return the date that `text` writes or points at, or None. Decline impossible dates."""
    stripped = text.strip().strip(",")
    if points_at_one(stripped):
        found = _INSIDE.findall(earlier.latest())
        if not found:
            raise CannotAnswerError("the earlier result holds no date")
        stripped = found[-1]
    for form in _FORMS:
        if match := form.fullmatch(stripped):
            month = _MONTHS.get(match["m"]) or int(match["m"])
            try:
                return date(int(match["y"]), month, int(match["d"]))
            except ValueError:
                raise CannotAnswerError("that date does not exist in the Gregorian calendar") from None
    return None


def shifted(start: date, months: int, days: int) -> date:
    """Return `start` plus months (clamped to the month's last day) plus days; decline beyond year 9999."""
    index = start.year * 12 + start.month - 1 + months
    year, month = index // 12, index % 12 + 1
    try:
        clamped = min(start.day, calendar.monthrange(year, month)[1]) if year >= 1 else start.day
        return date(year, month, clamped) + timedelta(days=days)
    except (ValueError, OverflowError):
        raise CannotAnswerError("I know the years 1 to 9999 only") from None


def _between(match: re.Match[str], earlier: Earlier) -> str | None:
    first, second = read_date(match["a"], earlier), read_date(match["b"], earlier)
    if first is None or second is None:
        return None
    days = (second - first).days
    if match.groupdict().get("how") == "between":
        days = abs(days)
    if match["unit"] == "days":
        return str(days)
    weeks, rest = divmod(abs(days), 7)
    sign = "-" if days < 0 else ""
    return f"{sign}{weeks} weeks and {rest} days" if rest else f"{sign}{weeks}"


def _amount(text: str) -> tuple[int, int] | None:
    """Return the months and days of `2 weeks and 3 days`, or None."""
    months = days = 0
    for part in _AND.split(text.strip()):
        match = _AMOUNT.fullmatch(part.strip())
        count = _count(match["n"]) if match else None
        if match is None or count is None:
            return None
        match match["unit"]:
            case "day":
                days += count
            case "week":
                days += 7 * count
            case "month":
                months += count
            case _:
                months += 12 * count
    return months, days


def _count(text: str) -> int | None:
    if text.isascii() and text.isdigit():
        value: int | None = int(text)
    else:
        value = 1 if text in ("a", "an") else parse(text)
    if value is not None and abs(value) > _MAX_COUNT:
        raise CannotAnswerError("I know the years 1 to 9999 only")
    return value


def _shift(match: re.Match[str], earlier: Earlier, sign: int) -> str | None:
    amount = _amount(match["amount"])
    start = read_date(match["a"] or "it", earlier) if amount else None
    if amount is None or start is None:
        return None
    return shifted(start, sign * amount[0], sign * amount[1]).isoformat()


def _sign(match: re.Match[str]) -> int:
    return -1 if match["how"] in ("before", "minus", "-") else 1


def _weekday(match: re.Match[str], earlier: Earlier) -> str | None:
    day = read_date(match["a"], earlier)
    return None if day is None else calendar.day_name[day.weekday()]


def _year(text: str, earlier: Earlier) -> int | None:
    day = read_date(text, earlier) if not re.fullmatch("[0-9]{1,4}", text) else None
    if day is not None:
        return day.year
    return int(text) if re.fullmatch("[0-9]{1,4}", text) and int(text) else None


def _leap(match: re.Match[str], earlier: Earlier) -> str | None:
    year = _year(_or_latest_year(match["a"], earlier), earlier)
    return None if year is None else ("yes" if calendar.isleap(year) else "no")


def _or_latest_year(text: str, earlier: Earlier) -> str:
    if points_at_one(text):
        found = re.findall(r"\b[0-9]{4}\b", earlier.latest())
        if not found:
            raise CannotAnswerError("the earlier result holds no year")
        return str(found[-1] if len(found) == 1 else found[0])
    return text


def _next_leap(match: re.Match[str], earlier: Earlier) -> str | None:
    year = _year(_or_latest_year(match["a"], earlier), earlier)
    if year is None:
        return None
    return str(next(later for later in range(year + 1, year + 9) if calendar.isleap(later)))


def _length(match: re.Match[str], _: Earlier) -> str | None:
    year = int(match["y"])
    if not year:
        return None
    if match["m"]:
        return str(calendar.monthrange(year, _MONTHS[match["m"]])[1])
    return str(366 if calendar.isleap(year) else 365)


def _day_of_year(match: re.Match[str], earlier: Earlier) -> str | None:
    day = read_date(match["a"], earlier)
    return None if day is None else str(day.timetuple().tm_yday)


_Rule = Callable[[re.Match[str], Earlier], str | None]
_RULES: tuple[tuple[re.Pattern[str], _Rule], ...] = (
    (_BETWEEN, _between),
    (_UNTIL, _between),
    (_DAY_OF_YEAR, _day_of_year),
    (_SHIFT, lambda match, earlier: _shift(match, earlier, _sign(match))),
    (_ADD, lambda match, earlier: _shift(match, earlier, 1)),
    (_SUBTRACT, lambda match, earlier: _shift(match, earlier, -1)),
    (_SUM, lambda match, earlier: _shift(match, earlier, _sign(match))),
    (_WEEKDAY, _weekday),
    (_WEEKDAY_IT_IS, _weekday),
    (_LEAP, _leap),
    (_IF_LEAP, _leap),
    (_NEXT_LEAP, _next_leap),
    (_LENGTH, _length),
)
