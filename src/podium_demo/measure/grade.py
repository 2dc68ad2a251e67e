"""Counts right, declined and wrong answers of a specialist on the items of a skill."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from podium_demo.answer import answer
from podium_demo.measure.items import Item, items_of
from podium_demo.specialists.answering import DECLINES, Specialist
from podium_demo.worker_prompt import read_task

SAMPLE_COUNT = 200
"""Items per skill."""

SEED = 20_261_130
"""The date of the first measurement; fixed, so that a card can be checked by measuring again."""

_AMOUNT = re.compile(r"(?:about )?(-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?) (\S+)")
_RELATIVE_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Score:
    """What came of `sample_count` items. What is neither right nor declined is wrong."""

    right: int
    declined: int
    sample_count: int

    @property
    def accuracy_ppm(self) -> int:
        """The share of right answers, in millionths."""
        return 1_000_000 * self.right // self.sample_count

    @property
    def wrong(self) -> int:
        """Answers that were given and are not right."""
        return self.sample_count - self.right - self.declined


def measure(specialist: Specialist, skill: str, cpu_ns: Callable[[], int]) -> Score:
    """Return the specialist's score on the items of `skill`."""
    items = items_of(skill, SAMPLE_COUNT, Random(SEED))  # noqa: S311 - reproducible, not secret
    right = declined = 0
    for item in items:
        given = answer(specialist, read_task([("user", item.question)]), cpu_ns)
        right += is_right(item, given)
        declined += given.startswith(DECLINES)
    return Score(right, declined, len(items))


def is_right(item: Item, given: str) -> bool:
    """Return whether `given` is the item's answer: the same text, or the same amount in the same unit."""
    if given == item.answer:
        return True
    expected, got = _AMOUNT.fullmatch(item.answer), _AMOUNT.fullmatch(given)
    if expected is None or got is None or expected.group(2) != got.group(2):
        return False
    return math.isclose(float(expected.group(1)), float(got.group(1)), rel_tol=_RELATIVE_TOLERANCE)
