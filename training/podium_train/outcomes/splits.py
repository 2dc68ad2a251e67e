"""What is trained on and what is held out. Fixed before any training; changing a line here voids all results.

Items are split by a hash of their question, so that the same question, wherever it comes from, stays on one
side. One in five reasoning-gym families, by hash of the name, is held out whole: of the 83 first recorded
it takes 23. Two workers of the clean pool are held out of every training pool: `deepseek-r1`, a strong one,
and `mistral-small-3.1`, the weakest. Both were recorded at both difficulties, and those that stay (o3-mini,
Sonnet 4, the two Llama 4) still complement each other.
"""

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256

from podium_train.outcomes.items import RecordedItem, RecordedSet, Source

HELD_OUT_WORKERS = frozenset({"deepseek/deepseek-r1", "mistralai/mistral-small-3.1-24b-instruct"})
"""Models that no training pool may hold and no dev figure may use."""

UNCLEAN_WORKERS = frozenset({"google/gemma-3-27b-it", "meta-llama/llama-3.3-70b-instruct", "qwen/qwq-32b"})
"""Left out of the clean pool: from about a third of their completions the source could extract no answer, so
a Conductor would be praised for learning who closes their tags."""

_TRAIN_PERCENT = 60
_DEV_PERCENT = 10
_HELD_OUT_ONE_IN = 5


class Split(StrEnum):
    """What an item may be used for."""

    TRAIN = "train"
    """Learning, cards, and tables that baselines learn."""
    DEV = "dev"
    """Choosing: checkpoints, the best single worker, settings."""
    TEST = "test"
    """Reporting only, families known."""
    UNSEEN = "unseen"
    """Reporting only: every item of a held-out family."""


def split_of(item: RecordedItem) -> Split:
    """Return the item's split."""
    if item.source is Source.REASONING_GYM and is_held_out_family(item.family):
        return Split.UNSEEN
    number = _number("question", " ".join(item.question.split())) % 100
    if number < _TRAIN_PERCENT:
        return Split.TRAIN
    return Split.DEV if number < _TRAIN_PERCENT + _DEV_PERCENT else Split.TEST


def is_held_out_family(family: str) -> bool:
    """Return whether a reasoning-gym family is held out: one in five, by hash of its name."""
    return _number("family", family) % _HELD_OUT_ONE_IN == 0


def select(recorded: RecordedSet, splits: Iterable[Split]) -> RecordedSet:
    """Return the items of these splits, in order."""
    wanted = frozenset(splits)
    return recorded.keep(item for item in recorded.items if split_of(item) in wanted)


def _number(kind: str, text: str) -> int:
    return int.from_bytes(sha256(f"podium-train-{kind}/1 {text}".encode()).digest()[:8], "big")
