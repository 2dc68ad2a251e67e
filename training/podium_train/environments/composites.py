"""Composite tasks for the demo specialists: none can do one alone, and the parts build on each other.

A template is a sequence of parts, or several side by side (`&`) that a last part puts together (`:`). Which
templates train, which choose the checkpoint and which are held out was fixed here before any training; so
were the phrasings of one-step tasks.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from podium_demo.measure.items import MAKERS
from podium_train.environments.composite_parts import FIRST, NEXT, Part
from podium_train.outcomes.splits import Split

COMPOSITE = "composite"
ONE_STEP = "one-step"

TEMPLATES: dict[Split, tuple[str, ...]] = {
    Split.TRAIN: (
        "product to-roman",
        "sum to-words",
        "letter-count times",
        "days-between to-binary",
        "roman-read times",
        "weekday reversed",
        "month-length plus to-roman",
        "product to-roman reversed",
        "roman-read plus to-binary",
        "vowel-count times to-words",
        "sum to-words counted",
        "days-between times to-hexadecimal",
        "difference to-words upper",
        "binary-read times to-roman reversed",
        "quotient to-words reversed",
        "weekday-after upper",
        "letter-count to-roman",
        "sum to-binary reversed",
        "roman-read doubled to-words",
        "total to-roman",
        "total to-words reversed",
        "product & letter-count : added",
        "roman-read & sum : added",
        "month-length & vowel-count : multiplied",
        "reversed-word & product : joined",
        "weekday & roman-read : joined",
        "month-length & reversed-word : joined",
        "sum & vowel-count : joined",
        "days-between & quotient : joined",
        "sorted-words & product : joined",
        "sum to-words & vowel-count : joined",
        "roman-read plus & weekday : joined",
        "sum & roman-read & reversed-word : joined",
    ),
    Split.DEV: (
        "difference to-roman",
        "day-of-year to-words",
        "letter-count plus to-binary",
        "month-length to-words upper",
        "day-of-year plus to-roman",
        "binary-read plus reversed",
        "days-between to-roman reversed",
        "quotient to-words counted to-binary",
        "letter-count times to-roman reversed",
        "binary-read & quotient : multiplied",
        "binary-read & days-between : added",
        "weekday & difference : joined",
        "difference to-binary & reversed-word : joined",
    ),
    Split.TEST: (
        "difference to-hexadecimal",
        "product to-words counted",
        "binary-read times to-words",
        "vowel-count plus to-roman",
        "month-length times to-binary",
        "days-between plus to-words upper",
        "day-of-year to-roman reversed",
        "sum to-hexadecimal reversed",
        "total to-binary reversed",
        "product-of-three to-roman reversed",
        "average to-words upper",
        "letter-seen times to-binary",
        "octal-read plus to-words",
        "roman-read squared",
        "quotient to-octal",
        "days-between tripled to-roman",
        "weekday vowels-counted times",
        "product less to-hexadecimal",
        "roman-read to-words vowels-dropped",
        "product & vowel-count : added",
        "days-between & letter-count : multiplied",
        "binary-read & month-length : multiplied",
        "roman-read & quotient : added",
        "days-between & total : added",
        "octal-read & day-of-year : added",
        "letter-seen & quotient : differed",
        "average & roman-read : differed",
        "sum to-words & weekday : joined",
        "product to-roman & reversed-word : joined",
        "month-length & binary-read plus : joined",
        "day-of-year & sorted-words : joined",
        "hyphenated & difference : joined",
        "weekday upper & product : joined",
        "first-letters & sum to-roman : joined",
        "weekday & sum & reversed-word : joined",
        "vowel-count & quotient & binary-read : joined",
    ),
}
"""Templates of composite tasks by split. No template is in two.

Those held out are the second set: those of the first were looked at while the recipe was found, and moved to
the others. A third of them has a part that no other split has, or a list.
"""

_CHAINS = (". ", ", then ", ", and ", ", and then ", "; ")
_HELD_OUT_CHAINS = (*_CHAINS, ". Next, ", ". After that, ", "; then ")
_SIDES = (". ", ", ", " and ")
_LAST = (". ", ", then ", ", and ", ". Finally, ")
_FIRST_SHARE = 0.12
_ENDS = {
    "added": ("add both results", "add the two results together"),
    "multiplied": ("multiply both results",),
    "differed": ("find the difference between both results",),
}
_FOLD: dict[str, Callable[[int, int], int]] = {
    "added": lambda a, b: a + b,
    "multiplied": lambda a, b: a * b,
    "differed": lambda a, b: abs(a - b),
}
_SPECIALIST_OF = {
    "arithmetic": "demo-arithmetic",
    "text": "demo-text",
    "dates": "demo-dates",
    "units": "demo-dates",
    "numerals": "demo-numerals",
}
_HELD_OUT_EVERY = 3


@dataclass(frozen=True, slots=True)
class DemoItem:
    """A question with its answer. `parts` names its parts and the specialist of each, for tests and hints."""

    item_id: str
    family: str
    kind: str
    question: str
    answer: str
    parts: tuple[Part, ...]


def composite(template: str, item_id: str, random: Random) -> DemoItem:
    """Return one task of `template`."""
    sides, _, end = template.partition(" : ")
    chains = [_chain(side.split(), random) for side in sides.split(" & ")]
    links = _HELD_OUT_CHAINS if template in TEMPLATES[Split.TEST] else _CHAINS
    question = _written(
        [_written([p.text for p in chain], random, links) for chain in chains], random, _SIDES
    )
    if random.random() < _FIRST_SHARE:
        question = f"first, {question}"
    results = [chain[-1].result for chain in chains]
    parts = [part for chain in chains for part in chain]
    if end == "joined":
        return DemoItem(item_id, template, COMPOSITE, _sentence(question), "; ".join(results), tuple(parts))
    if end:
        first, second = (int(result) for result in results)
        value = _FOLD[end](first, second)
        parts.append(Part(random.choice(_ENDS[end]), "demo-arithmetic", str(value)))
        question = _connected(question, random.choice(_LAST), parts[-1].text)
    return DemoItem(item_id, template, COMPOSITE, _sentence(question), parts[-1].result, tuple(parts))


def one_step_makers(split: Split) -> dict[str, tuple[int, ...]]:
    """Return for each skill the phrasings (indices into its makers) that belong to `split`."""
    chosen: dict[str, tuple[int, ...]] = {}
    for skill, makers in MAKERS.items():
        held = [index for index in range(len(makers)) if index % _HELD_OUT_EVERY == 1]
        if split is Split.TEST:
            chosen[skill] = tuple(held)
        else:
            chosen[skill] = tuple(index for index in range(len(makers)) if index not in held)
    return chosen


def one_step(skill: str, maker: int, item_id: str, random: Random) -> DemoItem:
    """Return a task that one specialist can do, in the phrasing `maker` of `skill`."""
    item = MAKERS[skill][maker](random)
    part = Part(item.question, _SPECIALIST_OF[skill], item.answer)
    return DemoItem(item_id, f"one-step {skill} {maker}", ONE_STEP, item.question, item.answer, (part,))


def demo_items(split: Split, count: int, seed: int, *, one_step_share: float = 0.25) -> tuple[DemoItem, ...]:
    """Return `count` tasks of a split: composite ones by turns over its templates, the rest one-step ones."""
    random = Random(f"{split.value}/{seed}")  # noqa: S311 - reproducible, not secret
    templates = TEMPLATES[split]
    phrasings = [(skill, maker) for skill, makers in one_step_makers(split).items() for maker in makers]
    made: list[DemoItem] = []
    for index in range(count):
        item_id = f"demo/{split.value}/{seed}/{index}"
        if random.random() < one_step_share:
            skill, maker = random.choice(phrasings)
            made.append(one_step(skill, maker, item_id, random))
        else:
            made.append(composite(templates[index % len(templates)], item_id, random))
    return tuple(made)


def _chain(names: Sequence[str], random: Random) -> list[Part]:
    parts = [FIRST[names[0]](random)]
    for name in names[1:]:
        parts.append(NEXT[name](random, parts[-1].result))
    return parts


def _written(texts: Sequence[str], random: Random, connectors: Sequence[str]) -> str:
    """Return the texts, which begin in lower case, as running text."""
    text = texts[0]
    for following in texts[1:]:
        text = _connected(text, random.choice(connectors), following)
    return text


def _connected(text: str, connector: str, following: str) -> str:
    if not connector.startswith(". "):
        return text + connector + following
    if connector != ". ":
        return f"{_sentence(text)}{connector[1:]}{following}"
    return f"{_sentence(text)} {following[:1].upper()}{following[1:]}"


def _sentence(text: str) -> str:
    """Return `text` with the mark its last sentence needs, and a capital at its start."""
    last = re.split(r"(?<=[.?]) ", text)[-1].lower()
    return f"{text[:1].upper()}{text[1:]}{'?' if last.startswith(('what', 'how', 'which')) else '.'}"
