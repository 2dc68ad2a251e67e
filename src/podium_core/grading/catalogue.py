"""The graded set: every skill by name, and its items, the same for the same seed everywhere."""

from collections.abc import Mapping
from random import Random

from podium_core.domain.errors import invalid
from podium_core.grading.items import Item, Make
from podium_core.grading.skills import (
    arithmetic,
    data,
    instructions,
    language,
    mathematics,
    measures,
    reasoning,
)

SKILLS: Mapping[str, Make] = {
    **arithmetic.MAKERS,
    **mathematics.MAKERS,
    **measures.MAKERS,
    **language.MAKERS,
    **reasoning.MAKERS,
    **data.MAKERS,
    **instructions.MAKERS,
}
"""Makers by skill. A name here is the name on a card, so its meaning never changes."""

LEVELS = 3
DEFAULT_SEED = 20_261_130
MAX_ITEMS = 60
"""Every skill has at least so many different questions."""

_MAX_DRAWS = 1_000


def items_of(skill: str, count: int, seed: int = DEFAULT_SEED) -> list[Item]:
    """Return the first `count` items of a skill: levels take turns, no question comes twice.

    Raises PodiumError (INVALID_REQUEST) for an unknown skill, or when it has no more questions.
    """
    if skill not in SKILLS:
        raise invalid(f"there is no skill {skill!r}; there are {', '.join(SKILLS)}", param="skill")
    seen: set[str] = set()
    items: list[Item] = []
    for index in range(count):
        items.append(_draw(skill, seed, index, seen))
        seen.add(items[-1].task.question)
    return items


def _draw(skill: str, seed: int, index: int, seen: set[str]) -> Item:
    level = 1 + index % LEVELS
    for draw in range(_MAX_DRAWS):
        random = Random(f"{skill}/{seed}/{index}/{draw}")  # noqa: S311 - reproducible, not secret
        task = SKILLS[skill](random, level)
        if task.question not in seen:
            return Item(skill, seed, index, level, task)
    raise invalid(f"the skill {skill} has no more than {index} questions", param="count")
