"""Turns text into a vector: the weighted sum of its features' rows, of length 1."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium_core.plan_model.words import Floats, features_of


@dataclass(frozen=True, slots=True, eq=False)
class TextEncoder:
    """A table of one row per bucket, stored as bytes with one factor for each row.

    `table` is [buckets, width] of int8, `factors` is [buckets]: a row's values are its bytes times its
    factor.
    """

    table: npt.NDArray[np.int8]
    factors: Floats

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return int(self.table.shape[1])

    def encode(self, text: str) -> Floats:
        """Return the vector of `text`: [width], of length 1, or zeros for a text without words."""
        rows, weights = features_of(text)
        if not len(rows):
            return np.zeros(self.width, np.float32)
        summed = (weights * self.factors[rows]) @ self.table[rows].astype(np.float32)
        return unit(summed)


def unit(vector: Floats) -> Floats:
    """Return `vector` (the last axis) scaled to length 1; zeros stay zeros."""
    length = np.sqrt((vector * vector).sum(axis=-1, keepdims=True))
    return np.asarray(vector / np.maximum(length, 1e-9), np.float32)
