"""Splits a question into the things it asks for, and finds which of them build on which."""

import re
from dataclasses import dataclass
from enum import Enum

from podium_core.domain.quotes import mask_quotes
from podium_train.baselines.rules.words import EMPTY, FILLERS, STARTERS

MAX_QUESTION_CHARS = 8_000
"""Longer questions are not split: their plan is one step."""

MAX_CLAUSES = 40
"""Questions with more parts are not split either."""


class Refers(Enum):
    """What a clause points back at."""

    NOTHING = "nothing"
    LATEST = "latest"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that is asked for. `is_explicit` tells a written reference from an understood one."""

    text: str
    refers: Refers
    is_command: bool
    is_explicit: bool = True


_BREAK = re.compile(r"(?P<sentence>[.?!]+(?=\s|$)|\n+)|[,;:]+(?=\s)|(?<=\s)(?:and|then)(?=\s)", re.IGNORECASE)
_WORD = re.compile(r"[a-z']+", re.IGNORECASE)
_LOOKAHEAD = 120
_NOUN = r"(?:results?|answers?|products?|sums?|differences?|quotients?|totals?|outcomes?|outputs?|responses?)"
_WHEN = r"(?:(?:previous|earlier|last|latest|above|final|resulting|two|three|first|second) )*"
_ALL = re.compile(
    rf"\b(?:both|all|each)(?: of)?(?: the| these| those| them| earlier)* ?{_WHEN}(?:{_NOUN}|numbers|parts)\b"
    rf"|\b(?:the|these|those) {_WHEN}(?:results|answers|outcomes|outputs|responses)\b"
    r"|\b(?:both|these|those)(?: together| up)?$|\bthem\b|\b(?:all|both) of (?:these|those)\b"
)
_LATEST = re.compile(
    rf"\b(?:the|this|that|its) {_WHEN}(?:{_NOUN})\b(?! of\b)|\b(?:it|itself|its)\b"
    r"|\b(?:this|that)(?= (?:in|as|to|into|by|with|from|and|backwards)\b|$)"
)
_INCOMPLETE = re.compile(
    r"^(?:(?:multiply|divide) by\b"
    r"|(?:add|subtract|deduct|take away) \S+(?: (?:days?|weeks?|months?|years?))?$"
    r"|round (?:it )?to\b|replace (?!.* in ).*"
    r"|.*\b(?:first|last) \w+ (?:letters?|words?|digits?|characters?)$)"
)


def clauses_of(question: str) -> list[Clause]:
    """Return what `question` asks for, in order; nothing when it is too long to take apart."""
    if len(question) > MAX_QUESTION_CHARS:
        return []
    pieces = _pieces(question)
    if len(pieces) > MAX_CLAUSES:
        return []
    return [_clause(text, is_command=is_command) for text, is_command in pieces]


def _pieces(question: str) -> list[tuple[str, bool]]:
    masked = mask_quotes(question)
    start, pieces = 0, []
    command = _command_start(masked, 0)
    for match in _BREAK.finditer(masked):
        begin = _command_start(masked, match.end())
        is_sentence = match["sentence"] is not None
        if match.end() <= start or (begin is None and not is_sentence):
            continue
        pieces.append((question[start if command is None else command : match.start()], command is not None))
        pieces[-1] = (_trimmed(pieces[-1][0], question[match.start() : match.end()]), pieces[-1][1])
        start, command = match.end(), begin
    pieces.append((_trimmed(question[start if command is None else command :], ""), command is not None))
    return [(text, is_command) for text, is_command in pieces if _WORD.search(text) or text[:1].isdigit()]


def _command_start(masked: str, position: int) -> int | None:
    """Return where the command that starts at `position` has its first word, or None when none does."""
    end = min(len(masked), position + _LOOKAHEAD)
    while match := _WORD.search(masked, position, end):
        if masked[position : match.start()].strip(" ,:\n\t\r"):
            return None
        word = match.group().lower()
        if word in STARTERS:
            return match.start()
        if word not in FILLERS:
            return None
        position = match.end()
    return None


def _trimmed(piece: str, mark: str) -> str:
    return piece.strip().strip(",;:").strip() + ("?" if "?" in mark else "")


def _clause(text: str, *, is_command: bool) -> Clause:
    plain = mask_quotes(text).lower().rstrip(" ?!.")
    if _ALL.search(plain):
        return Clause(text, Refers.ALL, is_command)
    if _LATEST.search(plain):
        return Clause(text, Refers.LATEST, is_command)
    if is_command and (_INCOMPLETE.search(plain) or not _names_something(plain)):
        return Clause(text, Refers.LATEST, is_command, is_explicit=False)
    return Clause(text, Refers.NOTHING, is_command)


def _names_something(plain: str) -> bool:
    """Return whether a clause brings what it works on: a number, a quoted text, or a word of its own."""
    if "\0" in plain or any(character.isdigit() for character in plain):
        return True
    return any(word not in EMPTY for word in _WORD.findall(plain)) or not plain.isascii()
