"""How hard a model should think: every name that clients use, and what a worker makes of it."""

from collections.abc import Collection

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""All names of `reasoning_effort` (OpenAI, Codex and OpenRouter clients), from least to most."""


def nearest_effort(asked: str, taken: Collection[str]) -> str | None:
    """Return the name among `taken` nearest to `asked`, the lesser of two; None when none is taken."""
    if not taken:
        return None
    rank = EFFORTS.index(asked)
    return min(taken, key=lambda name: (abs(EFFORTS.index(name) - rank), EFFORTS.index(name)))
