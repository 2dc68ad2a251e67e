"""Turns text into hashed features: words, pairs of words, and pieces of words.

Hashing needs no vocabulary, so that any language and any spelling has features. The same function serves and
trains; changing it changes what every trained table means.
"""

import re
import zlib
from collections import Counter
from itertools import pairwise

import numpy as np
import numpy.typing as npt

BUCKETS = 1 << 15
"""Rows of the embedding table."""

MAX_TEXT_CHARS = 2_400
"""Longer texts are read at both ends only, so that reading takes bounded time."""

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_", re.UNICODE)
_PIECE = 4
_MAX_DIGITS = 6
_MIN_PIECED = 4


def tokens_of(text: str) -> list[str]:
    """Return lower-case words, marks, and numbers as their length (`#3` for 391)."""
    half = MAX_TEXT_CHARS // 2
    shown = text if len(text) <= MAX_TEXT_CHARS else f"{text[:half]} {text[-half:]}"
    found = _TOKEN.findall(shown.lower())
    return [f"#{min(len(token), _MAX_DIGITS)}" if token[0].isdigit() else token for token in found]


def features_of(text: str) -> tuple[Ints, Floats]:
    """Return the rows of the table that `text` uses and how much each weighs.

    The weights' squares sum to 1, and how often a feature occurs counts by its logarithm. Both are empty for
    a text without words.
    """
    tokens = tokens_of(text)
    counts: Counter[str] = Counter(f"w{token}" for token in tokens)
    counts.update(f"b{left} {right}" for left, right in pairwise(tokens))
    for token, times in Counter(tokens).items():
        if len(token) >= _MIN_PIECED and token[0] != "#":
            marked = f"<{token[:24]}>"
            for start in range(len(marked) - _PIECE + 1):
                counts[f"p{marked[start : start + _PIECE]}"] += times
    if not counts:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    rows = np.fromiter((_bucket(name) for name in counts), np.int64, len(counts))
    weights = np.log1p(np.fromiter(counts.values(), np.float32, len(counts)))
    return rows, (weights / np.sqrt((weights**2).sum())).astype(np.float32)


def _bucket(name: str) -> int:
    return zlib.crc32(name.encode("utf-8", "replace")) % BUCKETS
