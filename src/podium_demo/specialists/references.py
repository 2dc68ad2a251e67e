"""The words that point at earlier results: `it`, `the result`, `both results`."""

import re

_KIND = (
    r"(?:result|answer|response|value|number|numeral|product|sum|difference|quotient|total|remainder|figure|"
    r"amount|output|word|string|text|date|count)"
)
_WHEN = r"(?:previous|earlier|last|latest|preceding|above|final|resulting|first|second)"
_PLURAL = (
    rf"(?:both|all|the two|the three|the|these|those|all the|both the|all of the|all of these|both of these)"
    rf"(?:\s+{_WHEN})?\s+{_KIND}s"
)
ALL = re.compile(
    rf"\b(?:{_PLURAL}(?:\s+together)?|both of them|all of them|them all|them both|both|them|these|those)\b"
)
"""Means every earlier result. Expects lower-case text."""

ONE = re.compile(
    rf"\b(?:(?:the|this|that)\s+(?:{_WHEN}\s+)?(?:step's\s+)?{_KIND}(?!\s+of\b)(?!\w)|itself|it|this|that)(?![\w'])"
)
"""Means the latest result. Expects lower-case text."""

_USING = re.compile(
    r"^(?:using|with|from|take|given|based on)\s+the\s+(?:earlier|previous)\s+"
    r"(?:results?|answers?|responses?)\s*[:,]\s*",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^(?:(?:please|now|then|and|finally|also|so|can you|could you|would you|kindly|tell me|i want to know|"
    r"i need you to)[\s,:]+|(?:first|next|after that)\s*[,:]\s*)+",
    re.IGNORECASE,
)


def core(instruction: str) -> str:
    """Return the instruction without courtesies, the planner's lead-in and the final punctuation."""
    text = instruction.strip().strip("\N{ZERO WIDTH SPACE}")
    before = ""
    while text != before:
        before = text
        text = _POLITE.sub("", _USING.sub("", text)).strip()
    return text.rstrip(" ?!.;,:") if not text.endswith("...") else text


def points_at_all(text: str) -> bool:
    """Return whether `text` is nothing but words for every earlier result."""
    return ALL.fullmatch(text.strip().lower()) is not None


def points_at_one(text: str) -> bool:
    """Return whether `text` is nothing but words for the latest result."""
    return ONE.fullmatch(text.strip().lower()) is not None
