"""What a grader says of one answer."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

MAX_CHARS = 200_000
"""Longer texts are not read."""


class Grade(StrEnum):
    """Right, wrong, or nothing that could be judged."""

    RIGHT = "right"
    WRONG = "wrong"
    UNSCORABLE = "unscorable"
    """The text is empty or too long to read. Whether that is the worker's fault, only the caller knows."""


@dataclass(frozen=True, slots=True)
class Graded:
    """A grade, the answer it was given for, and in one stable word why it is not right."""

    grade: Grade
    given: str = ""
    reason: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the answer is right."""
        return self.grade is Grade.RIGHT


class Grader(Protocol):
    """Judges answers to one question. Never raises, whatever the text."""

    def grade(self, text: str) -> Graded:
        """Return the grade of a whole answer text."""
        ...


def unreadable(text: str) -> Graded | None:
    """Return the grade of a text that cannot be judged; None when it can."""
    if not text or text.isspace():
        return Graded(Grade.UNSCORABLE, reason="empty")
    if len(text) > MAX_CHARS:
        return Graded(Grade.UNSCORABLE, reason="too_long")
    return None


def judged(given: str, *, is_right: bool, reason: str = "differs") -> Graded:
    """Return right, or wrong for `reason`."""
    return Graded(Grade.RIGHT, given) if is_right else Graded(Grade.WRONG, given, reason)
