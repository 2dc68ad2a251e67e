"""Finds the final answer in the text of a model: answer tags first, then the habits models have.

Every pattern is linear in the text, since the text is whatever a stranger's model sends.
"""

import re
import unicodedata
from dataclasses import dataclass

_THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_OPENING = re.compile(r"<answer>", re.IGNORECASE)
_CLOSING = re.compile(r"</answer>", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:so|thus|hence|therefore)?,? ?(?:the )?(?:final |correct )?(?:answer|result)(?: is)? ?[:=]? ?(.+)",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,2000})\*\*")
_MARKS = str.maketrans(
    {
        "\u2212": "-", "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-",
        "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00ab": '"', "\u00bb": '"',
        "\u00d7": "*",
    }
)  # fmt: skip
_WRAPPINGS = ("**", "__", "`", '"', "'", "*", "$")
_RULES = frozenset("-=_*`~#")
_MAX_LINE = 4_000


@dataclass(frozen=True, slots=True)
class Answer:
    """Readings of one answer, likeliest first. A tagged answer is meant literally and has one reading."""

    readings: tuple[str, ...]
    is_tagged: bool
    visible: str

    @property
    def first(self) -> str:
        """The likeliest reading."""
        return self.readings[0] if self.readings else ""


def answer_in(text: str) -> Answer:
    """Return the answer that `text` ends in; thinking between think tags is no part of it."""
    visible = _after_thinking(text)
    for found in (_tagged(visible), _boxed(visible)):
        if found is not None:
            return Answer((tidy(found),), is_tagged=True, visible=visible)
    line = _last_line(visible)
    return Answer(tuple(dict.fromkeys(_readings_of(line))), is_tagged=False, visible=visible)


def plain(text: str, *, fold_case: bool = True) -> str:
    """Return `text` in one spelling: compatible characters, straight quotes, single spaces, no full stop."""
    text = unicodedata.normalize("NFKC", text).translate(_MARKS)
    text = " ".join(text.split())
    text = _unwrap(text.removesuffix(".").rstrip()).removesuffix(".").rstrip()
    return text.casefold() if fold_case else text


def tidy(text: str) -> str:
    """Return `text` without surrounding space and markup."""
    return _unwrap(text.strip())


def last_fence(text: str) -> str | None:
    """Return the content of the last closed code fence; None without one."""
    parts = text.split("```")
    if len(parts) < 3:  # noqa: PLR2004 - one fence makes three parts
        return None
    body = parts[-2] if len(parts) % 2 else parts[-3]
    first, _, rest = body.partition("\n")
    return rest if rest and first.strip().isalnum() else body


def _after_thinking(text: str) -> str:
    ends = [match.end() for match in _THOUGHT_END.finditer(text)]
    return text[ends[-1] :] if ends else text


def _tagged(text: str) -> str | None:
    starts = [match.end() for match in _OPENING.finditer(text)]
    if not starts:
        return None
    closing = _CLOSING.search(text, starts[-1])
    return text[starts[-1] : closing.start() if closing else len(text)]


def _boxed(text: str) -> str | None:
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    start += len("\\boxed{")
    depth = 1
    for position in range(start, min(len(text), start + _MAX_LINE)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[start:position]
    return None


def _last_line(text: str) -> str:
    for line in reversed(text.splitlines()):
        stripped = line.strip()
        if stripped and not set(stripped) <= _RULES:
            return stripped[-_MAX_LINE:]
    return ""


def _readings_of(line: str) -> list[str]:
    if not line:
        return []
    flat = " ".join(line.replace("**", "").split())
    labelled = _LABEL.fullmatch(tidy(flat))
    bold = _BOLD.findall(line)
    readings = [tidy(labelled.group(1))] if labelled else []
    readings.append(tidy(line))
    readings += [tidy(bold[-1])] if bold else []
    readings += [tidy(flat.rpartition(": ")[2])] if ": " in flat else []
    return readings


def _unwrap(text: str) -> str:
    while True:
        for mark in _WRAPPINGS:
            inner = text[len(mark) : -len(mark)]
            if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
                if mark in inner:  # `"a" and "b"` is not one quotation
                    continue
                text = inner.strip()
                break
        else:
            return text
