"""Bounds on what callers may write, and errors that say which field broke which bound."""

import re
from collections.abc import Iterable

from podium_audit.records.commands import HISTORY_EVENTS, Part
from podium_core.domain.errors import Code, PodiumError, invalid

MAX_TEXT_LENGTH = 512
MAX_PARTS_PER_RECORD = 128
MAX_NOTE_FACTS = 32
MAX_NOTE_VALUE_LENGTH = 1_024
MAX_AMOUNT = 2**53 - 1

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_PART_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}")
_WORD = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


def check_id(name: str, value: str) -> None:
    """Raise PodiumError (INVALID_REQUEST) unless `value` is a plain identifier."""
    if not is_id(value):
        raise invalid(
            f"{name} must be 1 to 128 letters, digits, dots, colons, dashes or underscores", param=name
        )


def check_event_id(event_id: str, *, is_history: bool) -> None:
    """Raise PodiumError (INVALID_REQUEST) unless `event_id` is plain; the log's own are for nobody else."""
    check_id("event_id", event_id)
    if event_id.startswith(HISTORY_EVENTS) != is_history:
        raise invalid(f"event_id must not begin with {HISTORY_EVENTS}", param="event_id")


def is_id(value: str) -> bool:
    """Whether `value` is a plain identifier."""
    return _ID.fullmatch(value) is not None


def check_word(name: str, value: str) -> None:
    """Raise PodiumError (INVALID_REQUEST) unless `value` is a short lower-case word."""
    if not _WORD.fullmatch(value):
        raise invalid(f"{name} must be a lower-case word of at most 64 characters", param=name)


def check_texts(fields: Iterable[tuple[str, str]]) -> None:
    """Raise PodiumError (INVALID_REQUEST) if a (name, value) is too long for a record."""
    for name, value in fields:
        if len(value) > MAX_TEXT_LENGTH:
            raise invalid(f"{name} must have at most {MAX_TEXT_LENGTH} characters", param=name)
        if "\0" in value:
            raise invalid(f"{name} must not hold the character U+0000: not every database can", param=name)


def check_amount(name: str, value: int | None) -> None:
    """Raise PodiumError (INVALID_REQUEST) if an amount is larger than any record or database can hold."""
    if value is not None and value > MAX_AMOUNT:
        raise invalid(f"{name} may be at most {MAX_AMOUNT}", param=name)


def check_parts(parts: tuple[Part, ...], max_bytes: int) -> None:
    """Raise PodiumError if parts cannot be stored: ids, count, size."""
    if len(parts) > MAX_PARTS_PER_RECORD:
        raise invalid(
            f"a record may carry {MAX_PARTS_PER_RECORD} content parts, not {len(parts)}", param="contents"
        )
    for part in parts:
        if not _PART_ID.fullmatch(part.part_id):
            raise invalid(
                "part_id must be 1 to 200 letters, digits, dots, colons, slashes, dashes or underscores",
                param="part_id",
            )
        check_word("name", part.name)
        check_texts((("media_type", part.media_type),))
        if len(part.data) > max_bytes:
            raise PodiumError(
                Code.TOO_LARGE,
                f"content {part.part_id} has {len(part.data)} bytes, at most {max_bytes} are stored",
                reason="CONTENT_TOO_LARGE",
                param="contents",
            )


def check_note(kind: str, facts: Iterable[tuple[str, str]]) -> None:
    """Raise PodiumError (INVALID_REQUEST) unless a note is a word and few short facts."""
    check_word("note.kind", kind)
    count = 0
    for key, value in facts:
        count += 1
        check_word("note.facts key", key)
        if len(value) > MAX_NOTE_VALUE_LENGTH:
            raise invalid(
                f"note.facts values must have at most {MAX_NOTE_VALUE_LENGTH} characters", param="note.facts"
            )
    if count > MAX_NOTE_FACTS:
        raise invalid(f"a note may carry {MAX_NOTE_FACTS} facts, not {count}", param="note.facts")
