"""The choices that make up a plan, and how each is taken: the likeliest, or drawn with a seed."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from podium_core.plan_model.words import Floats


class Kind(StrEnum):
    """What is chosen. Each kind has one network."""

    SHAPE = "shape"
    CUT = "cut"
    WORKER = "worker"
    ACCESS = "access"
    JOIN = "join"


class Shape(StrEnum):
    """How a question is worked on."""

    ALONE = "alone"
    """One worker gets the question unchanged."""
    PARTS = "parts"
    """The question is taken apart; each part is a step."""
    VOTE_OF_TWO = "vote of two"
    VOTE_OF_THREE = "vote of three"
    """Workers answer side by side; a last step gives what most of them say."""


SHAPES = tuple(Shape)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One choice as it was taken.

    `features` is [features], or [workers, features] for a worker; `allowed` is a truth per option; `taken`
    the option's index. Of a yes-or-no choice option 1 is yes.
    """

    kind: Kind
    features: Floats
    allowed: tuple[bool, ...]
    taken: int


Chooser = Callable[[Kind, Floats], int]
"""Takes a choice: the probability of each option in, an index out."""


def likeliest(kind: Kind, probabilities: Floats) -> int:
    """Return the likeliest option; the first on a tie."""
    del kind
    return int(probabilities.argmax())


def drawn(generator: np.random.Generator) -> Chooser:
    """Return a chooser that draws by the probabilities."""

    def choose(kind: Kind, probabilities: Floats) -> int:
        del kind
        edges = np.cumsum(probabilities, dtype=np.float64)
        return min(int(np.searchsorted(edges, generator.random() * edges[-1], "right")), len(edges) - 1)

    return choose
