"""demo-dates: calendar questions and unit conversions."""

from podium_demo.specialists.answering import Budget, CannotAnswerError, Earlier, Specialist
from podium_demo.specialists.calendar_dates import solve_date
from podium_demo.specialists.references import core
from podium_demo.specialists.units import solve_unit


def solve(instruction: str, earlier: Earlier, budget: Budget) -> str:
    """Return the date, number of days, weekday or quantity that `instruction` asks for."""
    text = " ".join(core(instruction).lower().split())
    if "today" in text or "tomorrow" in text or "yesterday" in text:
        raise CannotAnswerError("I have no clock, so I need dates written out")
    budget.spend(len(text))
    for solver in (solve_unit, solve_date):
        answer = solver(text, earlier)
        if answer is not None:
            return answer
    raise CannotAnswerError("that is neither a calendar question nor a unit conversion I know")


SPECIALIST = Specialist(
    model="demo-dates",
    skills=("dates", "units"),
    abilities=(
        "count days between dates, add days, weeks or months, name weekdays and leap years, "
        "and convert lengths, masses, temperatures and times"
    ),
    solve=solve,
)
