"""How far replies to one and the same sub-question are apart: a signal for readers of the record.

Replies of different models that differ are more often wrong (cross-model disagreement: arXiv 2510.19507,
2604.17112). The score is a plain distance, no probability, and is named with its version wherever it is kept.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

METHOD = "stated-answer-words/1"
"""Compares the answers that both replies state, else the whole replies, as bags of words."""

_MAX_CHARS = 20_000
_PPM = 1_000_000
_BOXED = re.compile(r"\\boxed\s*\{([^{}]{1,400})\}")
_STATED = re.compile(r"\b(?:answer|result)\b(?:\s+is\b|\s*[:=])[\s*:]*([^\n]{1,400})", re.IGNORECASE)
_WORD = re.compile(r"[+-]?\d+(?:[.,]\d+)*|\w+")


def disagreement_ppm(replies: Sequence[str]) -> int:
    """Return the mean distance over all pairs of replies in millionths: 0 the same, a million nothing shared.

    The distance of two replies is 1 - F1 over their words (case, marks and thousands separators aside).
    Raises ValueError for fewer than two replies.
    """
    pairs = list(combinations(replies, 2))
    if not pairs:
        raise ValueError("disagreement needs two replies")
    return round(_PPM * sum(_distance(*pair) for pair in pairs) / len(pairs))


def _distance(one: str, other: str) -> float:
    stated = _stated(one), _stated(other)
    texts = stated if all(stated) else (one, other)
    first, second = (Counter(_words(text)) for text in texts)
    total = first.total() + second.total()
    return 1 - 2 * (first & second).total() / total if total else 0.0


def _stated(text: str) -> str:
    """Return the answer that a reply states last; empty when it states none."""
    end = text[-_MAX_CHARS:]
    found = _BOXED.findall(end) or _STATED.findall(end)
    return found[-1] if found else ""


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text[:_MAX_CHARS]).casefold()
    return [word.replace(",", "") if word[-1].isdigit() else word for word in _WORD.findall(plain)]
