"""Skills of units, dates, weekdays, clock times and money."""

from datetime import date, timedelta
from fractions import Fraction
from random import Random

from podium_core.grading.items import Make, Task, day, number, text

_METRIC: dict[str, dict[str, Fraction]] = {
    "length": {"mm": Fraction(1, 1000), "cm": Fraction(1, 100), "m": Fraction(1), "km": Fraction(1000)},
    "mass": {"mg": Fraction(1, 1000), "g": Fraction(1), "kg": Fraction(1000), "t": Fraction(1_000_000)},
    "volume": {"ml": Fraction(1), "cl": Fraction(10), "l": Fraction(1000), "hl": Fraction(100_000)},
}
_IMPERIAL: dict[str, dict[str, Fraction]] = {
    "length": {"inches": Fraction(1), "feet": Fraction(12), "yards": Fraction(36)},
    "mass": {"ounces": Fraction(1), "pounds": Fraction(16), "stone": Fraction(224)},
    "volume": {"cups": Fraction(1), "pints": Fraction(2), "quarts": Fraction(4), "gallons": Fraction(16)},
}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _units(table: dict[str, dict[str, Fraction]]) -> Make:
    def make(random: Random, level: int) -> Task:
        scale = table[random.choice(list(table))]
        start, end = random.sample(list(scale), 2)
        value = Fraction(random.randint(2, 90 * level)) / (10 if level > 1 and table is _METRIC else 1)
        if table is _IMPERIAL and scale[start] < scale[end]:
            value *= scale[end] / scale[start]
        result = value * scale[start] / scale[end]
        written = float(value) if value.denominator > 1 else value
        asked = f"Convert {written} {start} to {end}. Give the exact number."
        return number(asked, result, result * 10, result / 10, units=(end,))

    return make


def _temperature(random: Random, level: int) -> Task:
    celsius = random.randint(-8, 12 * level) * 5
    fahrenheit = Fraction(celsius * 9, 5) + 32
    if random.randrange(2):
        asked = f"Convert {celsius} degrees Celsius to degrees Fahrenheit."
        return number(asked, fahrenheit, fahrenheit - 32, fahrenheit + 32)
    asked = f"Convert {fahrenheit} degrees Fahrenheit to degrees Celsius."
    return number(asked, celsius, celsius + 32, celsius - 17)


def _any_day(random: Random, level: int) -> date:
    year = random.randint(2026 - 8 * level, 2026 + 8 * level)
    return date(year, 1, 1) + timedelta(days=random.randrange(365))


def _days_between(random: Random, level: int) -> Task:
    start = _any_day(random, level)
    end = start + timedelta(days=random.randint(5, (60, 400, 3000)[level - 1]))
    count = (end - start).days
    return number(
        f"How many days are there from {start} to {end}?", count, count + 1, count - 1, units=("days",)
    )


def _date_shift(random: Random, level: int) -> Task:
    start = _any_day(random, level)
    step = random.randint(5, (40, 200, 1500)[level - 1]) * random.choice((1, -1))
    phrase = "after" if step > 0 else "before"
    return day(f"Which date is {abs(step)} days {phrase} {start}?", start + timedelta(days=step))


def _weekday(random: Random, level: int) -> Task:
    when = _any_day(random, level)
    index = when.weekday()
    near = [_WEEKDAYS[(index + shift) % 7] for shift in (1, 6)]
    return text(f"What day of the week is {when}?", _WEEKDAYS[index], *near)


def _weekday_shift(random: Random, level: int) -> Task:
    index, step = random.randrange(7), random.randint(2, (10, 60, 900)[level - 1])
    sign = random.choice((1, -1))
    end = (index + sign * step) % 7
    phrase = f"in {step} days" if sign > 0 else f"{step} days ago"
    verb = "will it be" if sign > 0 else "was it"
    asked = f"Today is {_WEEKDAYS[index]}. What day of the week {verb} {phrase}?"
    return text(asked, _WEEKDAYS[end], _WEEKDAYS[(end + 1) % 7], _WEEKDAYS[(end - 1) % 7])


def _leap_years(random: Random, level: int) -> Task:
    start = random.randint(1890, 2080)
    end = start + random.randint(3, 30 * level)
    count = sum(y % 4 == 0 and (y % 100 != 0 or y % 400 == 0) for y in range(start, end + 1))
    return number(
        f"How many leap years are there from {start} to {end}, both included?", count, (end - start) // 4 + 2
    )


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


def _clock_shift(random: Random, level: int) -> Task:
    start, step = random.randrange(1440), random.randint(10, (90, 600, 2000)[level - 1])
    sign = random.choice((1, -1))
    end = start + sign * step
    phrase = "after" if sign > 0 else "before"
    asked = f"What time is it {step // 60} hours and {step % 60} minutes {phrase} {_clock(start)}? Answer as HH:MM, 24 hours."
    return text(asked, _clock(end), _clock(end + 60), _clock(end + 10), _clock(end - 1))


def _duration(random: Random, level: int) -> Task:
    start = random.randint(0, 1200)
    length = random.randint(5, min(1439 - start, (60, 240, 700)[level - 1]))
    asked = f"How many minutes are there from {_clock(start)} to {_clock(start + length)} on the same day?"
    return number(asked, length, length + 40, length - 60, units=("minutes", "min"))


def _speed(random: Random, level: int) -> Task:
    speed, hours = random.randint(2, 12) * 10, Fraction(random.randint(1, 8 * level), 4 if level > 1 else 1)
    distance = speed * hours
    kinds = (
        (f"A train goes {speed} km/h for {float(hours):g} hours. How many kilometres is that?", distance, distance + speed),
        (f"A train covers {float(distance):g} km in {float(hours):g} hours. What is its mean speed in km/h?", Fraction(speed), distance),
    )  # fmt: skip
    asked, value, trap = random.choice(kinds)
    return number(asked, value, trap)


def _change(random: Random, level: int) -> Task:
    prices = [random.randint(20, 900 * level) for _ in range(level + 1)]
    total = sum(prices)
    paid = (total // 1000 + 1) * 1000
    listed = ", ".join(f"${price / 100:.2f}" for price in prices)
    asked = f"Goods cost {listed}. You pay with ${paid / 100:.2f}. How much change in dollars do you get?"
    return number(asked, Fraction(paid - total, 100), Fraction(total, 100), Fraction(paid - total, 100) + 1)


MAKERS: dict[str, Make] = {
    "metric-units": _units(_METRIC),
    "imperial-units": _units(_IMPERIAL),
    "temperatures": _temperature,
    "days-between": _days_between,
    "date-shifts": _date_shift,
    "weekdays": _weekday,
    "weekday-shifts": _weekday_shift,
    "leap-years": _leap_years,
    "clock-times": _clock_shift,
    "durations": _duration,
    "speed-and-distance": _speed,
    "money-change": _change,
}
