"""Finds where a question may be taken apart, and writes its parts as subtasks.

Only the places are found by rule (marks and the words `and` and `then`); whether to cut at one is the model's
choice. Nothing inside quotes is a place to cut, nor is anything between the items of a list.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from podium_core.domain.quotes import mask_quotes
from podium_core.plan_model.lists import goes_on_with_list

MAX_QUESTION_CHARS = 1_600
"""Longer questions are not taken apart."""

MAX_BREAKS = 12
"""Questions with more places to cut are not taken apart either."""

JOIN = "Join all the results together, in order, separated by a semicolon."
"""The subtask that puts several results together."""

SOLVE = "Solve the question on your own and give only the final answer."
"""The subtask of a step that works beside others on the same question."""

VOTE = "Compare the answers of the earlier steps and give the one that most of them support."
"""The subtask of the step that aggregates such answers."""

KINDS = (",", ";", ":", ".", "?", "!", "\n", "and", "then")
"""What can stand at a break."""

_BREAK = re.compile(r"[,;:.?!]+(?=\s)|\n+|(?<=\s)(?:and|then)(?=\s)", re.IGNORECASE)
_CONNECTING = re.compile(
    r"^(?:[\s,;:]+|"
    r"(?:and|then|finally|lastly|next|afterwards|also|after that|now|first|please|secondly)\b[\s,:]*)+",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:it|its|itself|them|both|these|those|this|that"
    r"|the (?:\w+ )?(?:results?|answers?|numbers?|values?))\b",
    re.IGNORECASE,
)
_USING = "Using the earlier result: "
_REQUESTS = frozenset(
    """
    add alphabetise alphabetize answer arrange ask calculate capitalise capitalize change check choose combine
    compare compute concatenate convert count create decode decrease define delete derive describe determine
    divide double draft drop encode estimate evaluate explain express extract factor find give halve how
    identify implement increase is join keep list lowercase make multiply name negate order outline print
    prove put raise rank remove render repeat replace return reverse rewrite round say shorten show simplify
    solve sort spell square state strip subtract sum summarise summarize swap take tell total transform
    translate trim triple truncate turn uppercase verify what when where which who whose why work write
    """.split()  # noqa: SIM905 - a hundred quoted words read worse
)
_EMPTY = frozenset(
    """
    a all alphabetically an and any are as at backwards base binary by capitals case characters consonants
    count date day decimal digit digits does do down english first for form from hex hexadecimal in into last
    letter letters lower many much notation number numeral numerals octal of on order ordinal out phrase roman
    sentence spaces string text the there title to up upper vowels week weekday with word words year
    """.split()  # noqa: SIM905
)
_UNFINISHED = re.compile(
    r"(?:multiply|divide) by\b|(?:add|subtract|deduct) \S+(?: (?:days?|weeks?|months?|years?))?$|round to\b"
)
_WORD = re.compile(r"[a-z']+", re.IGNORECASE)
_ASKS = frozenset(
    {"how", "is", "what", "what's", "when", "where", "which", "who", "whose", "why", "on", "was"}
)


@dataclass(frozen=True, slots=True)
class Break:
    """A place to cut: the part before ends at `end`, the part after begins at `start`. `kind` is of KINDS."""

    end: int
    start: int
    kind: str


def breaks_of(question: str) -> tuple[Break, ...]:
    """Return the places where `question` may be cut, in order; none when it is too long to take apart.

    Marks and words that follow each other directly (`, and then`, `. Finally,`) are one place, words that
    only connect (`First,`) are no part, and a list (`pear, apple and fig`) stays whole.
    """
    if len(question) > MAX_QUESTION_CHARS:
        return ()
    masked = mask_quotes(question)
    found: list[Break] = []
    for match in _BREAK.finditer(masked):
        kind = match.group().lower() if match.group()[0].isalpha() else match.group()[0]
        before = question[found[-1].start if found else 0 : match.start()]
        if not _CONNECTING.sub("", before).strip():
            if found:
                found[-1] = Break(found[-1].end, match.end(), found[-1].kind)
        elif question[match.end() :].strip():
            found.append(Break(match.start(), match.end(), kind))
    found = _outside_lists(masked, found)
    return tuple(found) if len(found) <= MAX_BREAKS else ()


def _outside_lists(masked: str, found: Sequence[Break]) -> list[Break]:
    """Return the breaks that do not stand before a further item of a list."""
    kept: list[Break] = []
    is_listing = False
    ends = [later.end for later in found[1:]]
    for place, end in zip(found, [*ends, len(masked)][: len(found)], strict=True):
        item = masked[place.start : end]
        is_listing = not starts_request(item) and goes_on_with_list(
            masked[place.end : place.start], item, is_listing=is_listing
        )
        if not is_listing:
            kept.append(place)
    return kept


def subtask_of(part: str, *, ends_with: str = "", has_input: bool = False) -> str:
    """Return a part of a question as a sentence of its own.

    `ends_with` is the mark that stood behind it. A part that sees an earlier step but does not say so is
    told.
    """
    text = _CONNECTING.sub("", part).strip().strip(",;:").strip() or part.strip()
    refers = points_back(text)
    if has_input and not refers:
        return _USING + _sentence(text[:1].lower() + text[1:], ends_with)
    return _sentence(text[:1].upper() + text[1:], ends_with)


def starts_request(part: str) -> bool:
    """Return whether a part begins, after words that only connect, like something asked for."""
    first = _WORD.match(_CONNECTING.sub("", part).lstrip())
    return first is not None and first.group().lower().removesuffix("'s") in _REQUESTS


def points_back(part: str) -> bool:
    """Return whether a part names an earlier result."""
    return _POINTS_BACK.search(mask_quotes(part)) is not None


def leans_on_earlier(part: str) -> bool:
    """Return whether a part names an earlier result or brings nothing of its own to work on.

    `reverse the letters` and `multiply by 3` bring nothing; `reverse the word hello` and `add 2 and 3` do.
    """
    masked = mask_quotes(part)
    if _POINTS_BACK.search(masked):
        return True
    plain = _CONNECTING.sub("", masked).strip(" ,;:.?!").lower()
    if "\0" in plain:
        return False
    if _UNFINISHED.match(plain):
        return True
    brings = any(word not in _EMPTY and word not in _REQUESTS for word in _WORD.findall(plain))
    return not brings and not any(character.isdigit() for character in plain) and plain.isascii()


def _sentence(text: str, ends_with: str) -> str:
    if not text or text.endswith(("?", "!", ".")):
        return text
    asks = "?" in ends_with or text.split(maxsplit=1)[0].lower() in _ASKS
    return f"{text}{'?' if asks else '.'}"
