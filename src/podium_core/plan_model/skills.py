"""Places the skills that cards name in the space of texts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium_core.plan_model.encoder import TextEncoder
from podium_core.plan_model.words import Floats

_SEPARATORS = re.compile(r"[\s_\-/.:]+")


def skill_words(name: str) -> str:
    """Return a skill's name as plain words: `complex_arithmetic` gives `complex arithmetic`."""
    return _SEPARATORS.sub(" ", name).strip().lower()


@dataclass(frozen=True, slots=True, eq=False)
class SkillSpace:
    """Vectors of skills: the mean question of those known in training, the words of all others.

    `rows` maps the words of a known skill's name to its row of `centroids`, [known skills, width].
    """

    encoder: TextEncoder
    rows: Mapping[str, int]
    centroids: Floats

    def vectors(self, names: Sequence[str]) -> Floats:
        """Return one vector of length 1 per name: [names, width]."""
        found = np.zeros((len(names), self.encoder.width), np.float32)
        for index, name in enumerate(names):
            words = skill_words(name)
            row = self.rows.get(words)
            found[index] = self.encoder.encode(words) if row is None else self.centroids[row]
        return found
