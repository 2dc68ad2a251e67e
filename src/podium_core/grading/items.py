"""A question with its grader, and how the makers of skills write one."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from hashlib import sha256
from random import Random

from podium_core.grading.constraints import Rules
from podium_core.grading.graders import Choice, Day, Json, Listing, Number, Text
from podium_core.grading.result import Grader

INSTRUCTION = (
    "Answer the question. You may think first. Then write the final answer, and nothing else, between"
    " <answer> and </answer>."
)
"""The system message that goes with every item."""


@dataclass(frozen=True, slots=True)
class Task:
    """A question, how to grade it, an answer that is right, and answers that are near but wrong."""

    question: str
    grader: Grader
    gold: str
    traps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A task in its place: the `index`-th of a skill under a seed. Level 1 is the easiest of 3."""

    skill: str
    seed: int
    index: int
    level: int
    task: Task

    @property
    def item_id(self) -> str:
        """What names the item in logs."""
        return f"{self.skill}/{self.seed}/{self.index}"

    @property
    def messages(self) -> bytes:
        """The messages that ask it, as JSON text; always the same bytes."""
        return json.dumps(
            [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": self.task.question}],
            separators=(",", ":"),
        ).encode()

    @property
    def digest(self) -> str:
        """Stands for the exact question: another one has another digest."""
        return sha256(self.messages).hexdigest()[:16]


Make = Callable[[Random, int], Task]
"""Makes one task of a level (1 to 3). Everything random comes from the generator it is given."""


def number(
    question: str,
    value: Fraction | int,
    *traps: Fraction | int,
    units: tuple[str, ...] = (),
    percent: bool = False,
) -> Task:
    """Return a task whose answer is one exact number. Traps that equal it are left out."""
    exact = Fraction(value)
    unit = f" {units[0]}" if units else "%" if percent else ""
    near = dict.fromkeys([*map(Fraction, traps), exact + 1, -exact - 1])
    wrong = tuple(shown(trap) + unit for trap in near if trap != exact)
    return Task(question, Number(exact, units=units, is_percent=percent), shown(exact) + unit, wrong)


def text(question: str, gold: str, *traps: str, fold_case: bool = True) -> Task:
    """Return a task whose answer is one exact text."""
    grader = Text((gold,), fold_case=fold_case)
    near = (*traps, f"{gold}x", gold[:-1])
    wrong = tuple(trap for trap in dict.fromkeys(near) if trap and not grader.grade(trap).is_right)
    return Task(question, grader, gold, wrong)


def choice(question: str, options: Sequence[str], gold: int) -> Task:
    """Return a task with lettered options."""
    letters = [chr(ord("A") + index) for index in range(len(options))]
    listed = "\n".join(f"{letter}) {option}" for letter, option in zip(letters, options, strict=True))
    wrong = tuple(letter for index, letter in enumerate(letters) if index != gold)
    asked = f"{question}\n{listed}\nAnswer with the letter."
    return Task(asked, Choice(gold, tuple(options)), letters[gold], wrong)


def listing(question: str, gold: Sequence[str], *, ordered: bool = False) -> Task:
    """Return a task whose answer is a list; the empty one is written `none`."""
    grader = Listing(tuple(gold), is_ordered=ordered)
    near = [[*gold, "extra"], list(gold[1:]), list(reversed(gold)) if ordered else [*gold[:-1], "other"]]
    written = [", ".join(items) or "none" for items in near]
    wrong = tuple(trap for trap in dict.fromkeys(written) if not grader.grade(trap).is_right)
    return Task(question, grader, ", ".join(gold) or "none", wrong)


def day(question: str, gold: date, *traps: date) -> Task:
    """Return a task whose answer is a date."""
    near = (*traps, date.fromordinal(gold.toordinal() + 1), date.fromordinal(gold.toordinal() - 1))
    wrong = tuple(trap.isoformat() for trap in dict.fromkeys(near) if trap != gold)
    return Task(f"{question} Write the date as YYYY-MM-DD.", Day(gold), gold.isoformat(), wrong)


def json_value(question: str, gold: object, *traps: object) -> Task:
    """Return a task whose answer is a JSON value."""
    written = json.dumps(gold)
    wrong = tuple(json.dumps(trap) for trap in traps if trap != gold)
    return Task(question, Json(written), written, (*wrong, json.dumps([gold]), "{"))


def rules(question: str, grader: Rules, gold: str, *traps: str) -> Task:
    """Return a task whose answer is any text that keeps the rules."""
    return Task(question, grader, gold, traps)


def shown(value: Fraction | int) -> str:
    """Return a number exactly: as an integer, a finite decimal, or a fraction."""
    exact = Fraction(value)
    if exact.denominator == 1:
        return str(exact.numerator)
    places = next((p for p in range(1, 13) if (exact * 10**p).denominator == 1), None)
    if places is None:
        return f"{exact.numerator}/{exact.denominator}"
    digits = f"{abs(int(exact * 10**places)):0{places + 1}d}"
    return f"{'-' if exact < 0 else ''}{digits[:-places]}.{digits[-places:]}"
