"""Finds what a text instruction is about: a quoted text, the words after `the word`, or a result."""

import re

from podium_demo.specialists.answering import MAX_RESULT_CHARS, CannotAnswerError, Earlier
from podium_demo.specialists.references import points_at_all, points_at_one

_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\N{LEFT DOUBLE QUOTATION MARK}": "\N{RIGHT DOUBLE QUOTATION MARK}",
    "\N{LEFT SINGLE QUOTATION MARK}": "\N{RIGHT SINGLE QUOTATION MARK}",
}
_KIND = re.compile(
    r"^(?:the |this |following |these |given |whole |entire )*"
    r"(?:words|word|text|string|phrase|sentence|name|letters|list)(?:\s*:\s*|\s+)",
    re.IGNORECASE,
)
_OF = re.compile(r"(?:of|in|from)\s+(.+)", re.IGNORECASE | re.DOTALL)
_MAX_LAYERS = 4
_BARE_KIND = re.compile(
    r"(?:(?:the|its|all|all the|that|this) )?(?:letters|characters|words|word|text|string|result|answer|"
    r"phrase|sentence|numeral|digits)?",
    re.IGNORECASE,
)


def subject(text: str, earlier: Earlier) -> str:
    """Return what an instruction is about: a quoted text, the words after `the word`, or a result."""
    for _ in range(_MAX_LAYERS):
        text = text.strip()
        if quoted := unquoted(text):
            return quoted
        if is_bare(text) or points_at_one(text):
            return _bounded(earlier.latest())
        if points_at_all(text):
            return _bounded(" ".join(earlier.every()))
        text = _KIND.sub("", text, count=1)
        inner = _OF.fullmatch(text)
        if inner is None:
            return unquoted(text) or text
        text = inner.group(1)
    raise CannotAnswerError("I cannot find the text that is meant")


def unquoted(text: str) -> str:
    """Return what stands inside the quotes that enclose all of `text`; empty when none do."""
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) <= len("''") or not text.endswith(closing):
        return ""
    inner = text[1:-1]
    return "" if closing in inner else inner


def _bounded(result: str) -> str:
    if len(result) > MAX_RESULT_CHARS:
        raise CannotAnswerError(f"the earlier result is longer than {MAX_RESULT_CHARS} characters")
    return result


def is_bare(text: str) -> bool:
    """Return whether `text` names no text of its own: empty, `the letters`, `the result`."""
    return _BARE_KIND.fullmatch(text.strip()) is not None
