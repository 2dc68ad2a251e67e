"""What one worker is told of a request's parameters: all of them, or those that concern its step.

A parameter without which an answer would be another one excludes workers that do not take it
(`eligible.demanded_features`). What is told here differs for hints alone, and every difference is shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium_core.domain.effort import nearest_effort
from podium_core.domain.pool import Card

REASONING_EFFORT = "reasoning_effort"
HINTS = frozenset({"prompt_cache_key", "safety_identifier"})
"""Parameters that change no answer: a worker without the feature of that name is not told."""

# What concerns the thinking and the caller belongs to every step; all else shapes the answer.
_EVERY_STEP = frozenset({"temperature", "top_p", "seed", "user", REASONING_EFFORT, *HINTS})


@dataclass(frozen=True, slots=True)
class Change:
    """A parameter that a worker was told otherwise than it was asked; `told` None: not at all."""

    asked: object
    told: object


@dataclass(frozen=True, slots=True)
class Adapted:
    """The parameters for one worker, and what differs from those asked."""

    parameters: Mapping[str, object]
    changes: Mapping[str, Change] = field(default_factory=dict)


def adapt(parameters: Mapping[str, object], card: Card, *, is_answer: bool) -> Adapted:
    """Return what a worker with this card is told; a step that does not answer gets no answer's shape."""
    told: dict[str, object] = {}
    changes: dict[str, Change] = {}
    for name, value in parameters.items():
        if not is_answer and name not in _EVERY_STEP:
            continue
        as_told = _as_told(name, value, card)
        if as_told is not None:
            told[name] = as_told
        if as_told != value:
            changes[name] = Change(value, as_told)
    return Adapted(told, changes)


def _as_told(name: str, value: object, card: Card) -> object:
    if name == REASONING_EFFORT:
        return nearest_effort(str(value), card.reasoning_efforts)
    if name in HINTS and name not in card.features:
        return None
    return value
