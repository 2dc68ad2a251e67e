"""The texts that the encoder learns from, each with the skill it is an example of.

Recorded questions of the train split only; questions that reasoning-gym generates with seeds of our own, of
families that are not held out only; the items of `podium_core.grading` and of the demo specialists; and the
parts and phrasings of composite demo tasks that train.
"""

import json
import logging
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

from podium_core.grading.catalogue import SKILLS
from podium_core.grading.catalogue import items_of as grading_items
from podium_core.plan_model.breaks import JOIN
from podium_demo.measure.items import MAKERS
from podium_train.environments.composites import demo_items, one_step_makers
from podium_train.outcomes.cards import Grain
from podium_train.outcomes.items import RecordedSet
from podium_train.outcomes.splits import Split, is_held_out_family, select

_GENERATOR_SEED = 20_263_011
_GRADING_SEED = 777
_GRADING_COUNT = 24
_MAX_FAMILY_S = 12
_MOST_OF_A_SKILL = 100
_RUNS_CODE = frozenset({"codeio"})
"""Generators that execute programs from their data set, which may write files: never called here."""

_DRAWS_BY_HASH = frozenset({"isomorphic_strings", "list_functions", "polynomial_multiplication"})
"""Generators that go through sets, so that each process makes other questions from the same seed."""

_COARSE = {
    "arithmetic": "addition multiplication division operation-order fractions decimals percent-of"
    " percent-change powers-and-roots modular-arithmetic rounding digit-sums mean",
    "text": "letter-counting vowel-counting reversal word-order letter-replacement vowel-removal"
    " letter-positions naming-styles word-sorting word-lengths",
    "numerals": "number-bases roman-numerals number-words",
    "units": "metric-units imperial-units temperatures",
    "dates": "days-between date-shifts weekdays weekday-shifts leap-years",
}
"""Skills of calibration that are kinds of a coarser one, as cards of few skills name it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Example:
    """A text and the skill it belongs to; empty for a text that only shows language."""

    text: str
    skill: str


def all_examples(recorded: RecordedSet, data: Path | None, per_family: int) -> tuple[Example, ...]:
    """Return every example, in a fixed order; `per_family` are generated for each family and level."""
    return (
        *recorded_examples(recorded),
        *generated_examples(data, per_family),
        *grading_examples(),
        *demo_examples(),
    )


def recorded_examples(recorded: RecordedSet) -> Iterator[Example]:
    """Yield recorded questions of the train split: at most `_MOST_OF_A_SKILL` of one skill."""
    counts: Counter[str] = Counter()
    for item in select(recorded, [Split.TRAIN]).items:
        skill = Grain.FAMILY_LEVEL.skill_of(item)
        counts[skill] += 1
        if counts[skill] <= _MOST_OF_A_SKILL:
            yield Example(item.question, skill)


def generated_examples(data: Path | None, per_family: int) -> Iterator[Example]:
    """Yield new questions of the recorded families that are not held out, with the recorded difficulties.

    Families whose generator fails or takes longer than some seconds of CPU give none, so that a busy machine
    makes the same questions as an idle one. None at all come without the package reasoning-gym or without the
    recorded configurations.
    """
    if data is None or per_family < 1:
        return
    path = data / "reasoning_gym_outcomes" / "meta.json"
    try:
        import reasoning_gym  # noqa: PLC0415 - optional, and seconds to import
    except ImportError:
        _log.warning("reasoning-gym is not installed: no questions are generated")
        return
    if not path.is_file():
        return
    for key, config in sorted(json.loads(path.read_text("utf-8"))["config"].items()):
        level, _, family = key.partition("/")
        if is_held_out_family(family) or family in _RUNS_CODE | _DRAWS_BY_HASH:
            continue
        skill = family.replace("_", " ") + (", hard" if level == "hard" else "")
        options = {name: value for name, value in config.items() if name not in ("size", "seed")}
        seed = _GENERATOR_SEED + (level == "hard")
        try:
            with _alarm(_MAX_FAMILY_S):
                made = reasoning_gym.create_dataset(family, size=per_family, seed=seed, **options)
                questions = [str(made[index]["question"]) for index in range(per_family)]
        except (TimeoutError, ValueError, RuntimeError, KeyError, IndexError):
            _log.info("no questions of %s: its generator failed or took too long", family)
            continue
        yield from (Example(question, skill) for question in questions)


def grading_examples() -> Iterator[Example]:
    """Yield items of every skill that calibration can measure, some of a coarser skill too."""
    coarser = {fine: coarse for coarse, names in _COARSE.items() for fine in names.split()}
    for skill in SKILLS:
        for item in grading_items(skill, _GRADING_COUNT, _GRADING_SEED):
            yield Example(item.task.question, skill)
            if skill in coarser:
                yield Example(item.task.question, coarser[skill])


def demo_examples() -> Iterator[Example]:
    """Yield the demo skills' phrasings that train, and whole and part texts of composite tasks that train."""
    random = Random(_GRADING_SEED)  # noqa: S311 - reproducible, not secret
    for skill, makers in one_step_makers(Split.TRAIN).items():
        for index in range(120):
            yield Example(MAKERS[skill][makers[index % len(makers)]](random).question, skill)
    for _ in range(20):  # the one subtask that the Conductor words itself
        yield Example(JOIN, "text")
    skills = {"demo-arithmetic": "arithmetic", "demo-text": "text", "demo-numerals": "numerals"}
    for item in demo_items(Split.TRAIN, 300, _GRADING_SEED, one_step_share=0.0):
        yield Example(item.question, "")
        for part in item.parts:
            if part.specialist in skills:
                yield Example(part.text, skills[part.specialist])


@contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the main thread when the block takes longer in user CPU time."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
