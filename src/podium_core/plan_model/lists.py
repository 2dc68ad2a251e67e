"""Tells lists (`pear, apple and fig`, `12, 40 and 7`) from requests that stand one after another."""

import re

_BETWEEN_ITEMS = re.compile(r"\s*,?\s*(?:and\s*)?", re.IGNORECASE)
_ITEM = re.compile(
    r"\s*(?:(?:and|or)\s+)?(?:(?:the|an?)\s+)?"
    r"(?P<word>[^\W_][\w'.:/%-]*|\0+)"
    r"(?P<second>\s+[^\W\d_][\w'-]*)??"
    r"(?:\s+(?:alphabetically|as|backwards|by|from|in|into|separated|to|together|using|with)\b.*)?"
    r"[\s.?!,;:]*",
    re.IGNORECASE | re.DOTALL,
)
_NO_ITEMS = frozenset(
    """
    a after afterwards also am an and answer answers are as at because both but by can could do does finally
    first for from has have he her his i if in into it its lastly my next no not now of on or please result
    results secondly she so than that the their them then there these they this those to was we were will with
    would you your
    """.split()  # noqa: SIM905 - seventy quoted words read worse
)


def goes_on_with_list(between: str, text: str, *, is_listing: bool) -> bool:
    """Return whether `text`, up to the next mark, is one more item of the list before it.

    `between` is what separates it from what stands before; `is_listing` tells that a list has begun already.
    An item is a word, a number or a quote (blanked by NUL), and may be followed by what is to be done with
    the list (`fig alphabetically`); in a list with commas it may have two words. Callers leave out requests.
    """
    match = _ITEM.fullmatch(text)
    if match is None or _BETWEEN_ITEMS.fullmatch(between) is None:
        return False
    words = [match["word"], *(match["second"] or "").split()]
    if any(word.lower() in _NO_ITEMS for word in words):
        return False
    return len(words) == 1 or is_listing or "," in between
