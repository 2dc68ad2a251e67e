"""Cards measured on recorded answers, as calibration would measure them: always on the train split.

A skill is the share of right answers on one family of tasks. Grains: `category` (a dozen), `family` (dozens),
`family_level` (families apart by difficulty: "sudoku, hard"). With the first two, a worker that was recorded
at the easy level only would look better than it is beside workers recorded at both, so `family_level` is the
default.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from podium_core.domain.pool import Card, Skill, Worker
from podium_train.outcomes.assumed_prices import assumed
from podium_train.outcomes.items import RecordedItem, RecordedSet
from podium_train.outcomes.splits import Split, split_of

MEASURED_ON = "2025-06-01"
"""The date on measured cards: about when the sources were recorded."""

_PPM = 1_000_000
_PLAIN_LEVELS = frozenset({"easy", "standard"})


class Grain(StrEnum):
    """How fine the skills of a card are."""

    CATEGORY = "category"
    FAMILY = "family"
    FAMILY_LEVEL = "family_level"

    def skill_of(self, item: RecordedItem) -> str:
        """Return the name of the skill that an item belongs to."""
        if self is Grain.CATEGORY:
            return _words(item.category)
        family = _words(item.family)
        if self is Grain.FAMILY or item.difficulty in _PLAIN_LEVELS:
            return family
        return f"{family}, {item.difficulty}"


@dataclass(frozen=True, slots=True)
class CardRack:
    """The measured cards of all models of a data folder, by model name."""

    grain: Grain
    cards: Mapping[str, Card]

    def worker(self, model: str) -> Worker:
        """Return the model as a worker with its measured card, and with assumed price and speed.

        A model with nothing recorded on the train split has an empty card.
        """
        constants = assumed(model)
        card = self.cards.get(model, Card())
        return Worker(
            worker_id=worker_id(model),
            provider="recorded",
            provider_model=model,
            card=replace(card, output_tokens_per_second=constants.output_tokens_per_second),
            price=constants.price,
        )


def measure_cards(
    recorded: RecordedSet, grain: Grain = Grain.FAMILY_LEVEL, *, split: Split | None = Split.TRAIN
) -> CardRack:
    """Return every model's card, measured on the items of one split (None: on all items that are given).

    `sample_count` counts graded answers, several of one item included. Each source's skills stand on the same
    card.
    """
    right: dict[tuple[str, str], int] = defaultdict(int)
    total: dict[tuple[str, str], int] = defaultdict(int)
    for item in recorded.items:
        if split is not None and split_of(item) is not split:
            continue
        skill = grain.skill_of(item)
        for model, answers in item.answers.items():
            right[model, skill] += sum(answer.is_right for answer in answers)
            total[model, skill] += len(answers)
    skills: dict[str, list[Skill]] = defaultdict(list)
    for model, name in sorted(total):
        count = total[model, name]
        accuracy_ppm = round(_PPM * right[model, name] / count)
        skills[model].append(Skill(name, accuracy_ppm, count, MEASURED_ON))
    return CardRack(grain, {model: Card(skills=tuple(found)) for model, found in skills.items()})


def noisy(worker: Worker, rng: np.random.Generator, sample_count: int) -> Worker:
    """Return the worker with a card as `sample_count` graded items of each skill would have shown it.

    The count of right answers is binomial with the measured accuracy.
    """
    skills = worker.card.skills
    rights = rng.binomial(sample_count, [skill.accuracy_ppm / _PPM for skill in skills])
    redrawn = tuple(
        replace(skill, accuracy_ppm=_PPM * int(right) // sample_count, sample_count=sample_count)
        for skill, right in zip(skills, rights, strict=True)
    )
    return replace(worker, card=replace(worker.card, skills=redrawn))


def only_skills(worker: Worker, names: Iterable[str]) -> Worker:
    """Return the worker with those skills of its card that are named: what a coarser calibration knows."""
    wanted = frozenset(names)
    kept = tuple(skill for skill in worker.card.skills if skill.name in wanted)
    return replace(worker, card=replace(worker.card, skills=kept))


def shuffled_cards(workers: Sequence[Worker], rng: random.Random) -> tuple[Worker, ...]:
    """Return the workers with their cards dealt out anew: an ablation, as the cards then tell nothing."""
    cards = [worker.card for worker in workers]
    rng.shuffle(cards)
    return tuple(replace(worker, card=card) for worker, card in zip(workers, cards, strict=True))


def worker_id(model: str) -> str:
    """Return the id that a model has as a worker: its name without the publisher, in lower case."""
    return model.rsplit("/", 1)[-1].lower()


def _words(name: str) -> str:
    return name.replace("_", " ")
