"""What demo-text can do to a text: each operation takes a pattern's named groups and the earlier results."""

import re
from collections.abc import Callable
from fractions import Fraction

from podium_demo.specialists.answering import MAX_RESULT_CHARS, CannotAnswerError, Earlier
from podium_demo.specialists.exact import literal
from podium_demo.specialists.number_words import parse
from podium_demo.specialists.references import points_at_all
from podium_demo.specialists.subjects import is_bare, subject, unquoted

Groups = dict[str, str]
Operation = Callable[[Groups, Earlier], str]

_NUMBER = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_LIST_BREAK = re.compile(r",\s*and\s+|,\s*|\s+and\s+")
_KIND = re.compile(r"^(?:the )?(?:words|texts|strings|letters|parts)(?:\s*:\s*|\s+)", re.IGNORECASE)
_VOWELS = frozenset("aeiou")
_SEPARATORS = {
    "a comma": ", ",
    "commas": ", ",
    "a semicolon": "; ",
    "semicolons": "; ",
    "a space": " ",
    "spaces": " ",
    "a hyphen": "-",
    "hyphens": "-",
    "a dash": "-",
    "dashes": "-",
    "a slash": "/",
    "a plus sign": " + ",
    "new lines": "\n",
    "a new line": "\n",
    "a line break": "\n",
    "line breaks": "\n",
    "nothing": "",
}


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= len("9999"):
        return int(text)
    value = parse(text) if text else 1
    if value is None or value < 0:
        raise CannotAnswerError("I cannot read how many are meant")
    return value


def _letters(text: str) -> list[str]:
    return [character for character in text if character.isalpha()]


def counted(groups: Groups, earlier: Earlier) -> str:
    """Count letters, characters, digits, words, vowels or consonants."""
    text = subject(groups["x"], earlier)
    match groups["unit"].lower().rstrip("s"):
        case "letter":
            return str(len(_letters(text)))
        case "character":
            return str(len(text))
        case "digit":
            return str(sum(character.isdecimal() for character in text))
        case "word":
            return str(len(text.split()))
        case "vowel":
            return str(sum(character in _VOWELS for character in text.lower()))
        case _:
            return str(sum(c not in _VOWELS for c in text.lower() if c.isascii() and c.isalpha()))


def occurrences(groups: Groups, earlier: Earlier) -> str:
    """Count how often a part occurs, whatever its case."""
    part = groups["part"].strip()
    part = unquoted(part) or part
    return str(subject(groups["x"], earlier).lower().count(part.lower()))


def put_in_order(groups: Groups, earlier: Earlier) -> str:
    """Sort words, list items or letters; lists of numbers by value."""
    text, is_reversed = subject(groups["x"], earlier), bool(groups["back"])
    if groups["unit"].lower() == "letters":
        return "".join(sorted(_letters(text), key=lambda c: (c.lower(), c), reverse=is_reversed))
    is_list = "," in text
    items = _LIST_BREAK.split(text) if is_list else text.split()
    items = [item.strip() for item in items if item.strip()]
    if all(_NUMBER.fullmatch(item) for item in items):
        items.sort(key=_value, reverse=is_reversed)
    else:
        items.sort(key=lambda item: (item.lower(), item), reverse=is_reversed)
    return (", " if is_list else " ").join(items)


def _value(item: str) -> Fraction:
    return literal(item.removeprefix("-")) * (-1 if item.startswith("-") else 1)


def cut(groups: Groups, earlier: Earlier) -> str:
    """Return the first or last letters or words."""
    text, count = subject(groups["x"], earlier), _count(groups["n"].strip().lower())
    is_words = groups["unit"].lower().startswith("word")
    items = text.split() if is_words else list(text.replace(" ", ""))
    if not 0 < count <= len(items):
        raise CannotAnswerError(f"the text has only {len(items)} of them")
    first = groups["end"].lower() == "first"
    return (" " if is_words else "").join(items[:count] if first else items[-count:])


def replaced(groups: Groups, earlier: Earlier) -> str:
    """Replace one part by another."""
    old, new = (unquoted(groups[name].strip()) or groups[name].strip() for name in ("old", "new"))
    old = re.sub(r"^(?:all |every |each |the |letters? |words? )+(?=\S)", "", old)
    old, new = unquoted(old) or old, re.sub(r"^the (?:letter|word) ", "", new)
    text = subject(groups["x"], earlier)
    if not old or old not in text:
        raise CannotAnswerError("the part to replace does not occur in the text")
    if len(text) + text.count(old) * len(new) > MAX_RESULT_CHARS:
        raise CannotAnswerError(f"the answer would be longer than {MAX_RESULT_CHARS} characters")
    return text.replace(old, unquoted(new) or new)


def repeated(groups: Groups, earlier: Earlier) -> str:
    """Repeat the text."""
    text, count = subject(groups["x"], earlier), _count(groups["n"].strip().lower())
    if len(text) * count > MAX_RESULT_CHARS:
        raise CannotAnswerError(f"the answer would be longer than {MAX_RESULT_CHARS} characters")
    return text * count


def removed(groups: Groups, earlier: Earlier) -> str:
    """Leave out spaces, vowels, digits or punctuation."""
    text = subject(groups["x"], earlier)
    match groups["unit"].lower().rstrip("s"):
        case "space":
            return "".join(text.split())
        case "vowel":
            return "".join(c for c in text if c.lower() not in _VOWELS)
        case "digit":
            return "".join(c for c in text if not c.isdecimal())
        case _:
            return "".join(c for c in text if c.isalnum() or c.isspace())


def joined(groups: Groups, earlier: Earlier) -> str:
    """Put parts, or all earlier results, behind one another."""
    by = groups["by"].strip()
    separator = _SEPARATORS.get(by.lower(), unquoted(by))
    if by and not separator and by.lower() != "nothing":
        raise CannotAnswerError("I cannot read what to put between the parts")
    text = groups["x"].strip()
    if is_bare(text) or points_at_all(text):
        parts = list(earlier.every(with_declined=True))
        parts = _LIST_BREAK.split(parts[0]) if len(parts) == 1 else parts
        separator = separator if by else " "
    else:
        parts = [unquoted(part) or part for part in _LIST_BREAK.split(_KIND.sub("", text))]
    return separator.join(parts)


def on_subject(change: Callable[[str], str]) -> Operation:
    """Return the operation that applies `change` to the text that the group `x` means."""

    def act(groups: Groups, earlier: Earlier) -> str:
        return change(subject(groups["x"], earlier))

    return act
