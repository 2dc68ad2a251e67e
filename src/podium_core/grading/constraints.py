"""Grades texts that must keep rules rather than be one answer: words, lines, letters, case."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from podium_core.grading.extraction import answer_in, tidy
from podium_core.grading.result import Graded, judged, unreadable

_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


@dataclass(frozen=True, slots=True)
class Rules:
    """Right is any text that keeps every rule that is set. Letters are compared without case."""

    word_count: int | None = None
    line_count: int | None = None
    sentence_count: int | None = None
    words_per_line: int | None = None
    first_word: str = ""
    last_word: str = ""
    includes: tuple[str, ...] = ()
    forbidden_letters: str = ""
    initials: str = ""
    case: Literal["any", "upper", "lower"] = "any"
    are_words_distinct: bool = False

    def grade(self, text: str) -> Graded:
        """Return the grade of a whole answer text: of what the answer tags hold, or else of all of it."""
        if unread := unreadable(text):
            return unread
        answer = answer_in(text)
        given = answer.first if answer.is_tagged else tidy(answer.visible)
        broken = next(self._broken(given), None)
        return judged(given, is_right=broken is None, reason=broken or "")

    def _broken(self, text: str) -> Iterator[str]:  # noqa: C901 - one line per rule
        words = _WORD.findall(text)
        folded = [word.casefold() for word in words]
        lines = [line for line in text.splitlines() if line.strip()]
        if not words:
            yield "no_words"
        if self.word_count is not None and len(words) != self.word_count:
            yield "word_count"
        if self.line_count is not None and len(lines) != self.line_count:
            yield "line_count"
        if self.sentence_count is not None and len(_SENTENCE_END.findall(text)) != self.sentence_count:
            yield "sentence_count"
        if self.words_per_line is not None:
            yield from ("words_per_line" for line in lines if len(_WORD.findall(line)) != self.words_per_line)
        if self.first_word and folded[:1] != [self.first_word]:
            yield "first_word"
        if self.last_word and folded[-1:] != [self.last_word]:
            yield "last_word"
        yield from ("includes" for word in self.includes if word not in folded)
        if set(self.forbidden_letters) & set(text.casefold()):
            yield "forbidden_letters"
        if self.initials and "".join(word[0] for word in folded) != self.initials:
            yield "initials"
        if (self.case == "upper" and text != text.upper()) or (self.case == "lower" and text != text.lower()):
            yield "case"
        if self.are_words_distinct and len(set(folded)) != len(folded):
            yield "repeated_words"
