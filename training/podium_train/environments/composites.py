"""Composite tasks for the demo specialists: none can do one alone, and the parts build on each other.

Which templates train, which choose the checkpoint and which are held out stands in `composite_templates`;
which phrasings of one-step tasks, here.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from podium_demo.measure.items import MAKERS
from podium_train.environments.composite_parts import FIRST, NEXT, Part
from podium_train.environments.composite_templates import TEMPLATES
from podium_train.environments.held_out_parts import HELD_OUT_FIRST, HELD_OUT_NEXT
from podium_train.outcomes.splits import Split

COMPOSITE = "composite"
ONE_STEP = "one-step"


@dataclass(frozen=True, slots=True)
class _Links:
    """What stands between parts: of one chain, between sides, and before what puts sides together."""

    chain: tuple[str, ...] = (". ", ", then ", ", and ", ", and then ", "; ")
    sides: tuple[str, ...] = (". ", ", ", " and ")
    last: tuple[str, ...] = (". ", ", then ", ", and ", ". Finally, ")


_TRAIN_LINKS = _Links()
_LINKS = {
    Split.TRAIN: _TRAIN_LINKS,
    Split.DEV: replace(_TRAIN_LINKS, chain=(*_TRAIN_LINKS.chain, ". Next, ", ". After that, ", "; then ")),
    Split.TEST: _Links(
        chain=(*_TRAIN_LINKS.chain, ". Now ", " and then ", "; afterwards, "),
        sides=(*_TRAIN_LINKS.sides, ". Also, ", "; "),
        last=(*_TRAIN_LINKS.last, ". Lastly, "),
    ),
}
_SPLIT_OF = {template: split for split, templates in TEMPLATES.items() for template in templates}
_FIRST_SHARE = 0.12
_ENDS = {
    "added": ("add both results", "add the two results together"),
    "multiplied": ("multiply both results",),
    "differed": ("find the difference between both results",),
    "larger": ("find the larger of both results",),
}
_FOLD: dict[str, Callable[[int, int], int]] = {
    "added": lambda a, b: a + b,
    "multiplied": lambda a, b: a * b,
    "differed": lambda a, b: abs(a - b),
    "larger": max,
}
_SPECIALIST_OF = {
    "arithmetic": "demo-arithmetic",
    "text": "demo-text",
    "dates": "demo-dates",
    "units": "demo-dates",
    "numerals": "demo-numerals",
}
_HELD_OUT_EVERY = 3
_FIRST = {**FIRST, **HELD_OUT_FIRST}
_NEXT = {**NEXT, **HELD_OUT_NEXT}


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
    links = _LINKS[_SPLIT_OF[template]]
    question = _written(
        [_written([p.text for p in chain], random, links.chain) for chain in chains], random, links.sides
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
        question = _connected(question, random.choice(links.last), parts[-1].text)
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
    parts = [_FIRST[names[0]](random)]
    for name in names[1:]:
        parts.append(_NEXT[name](random, parts[-1].result))
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
