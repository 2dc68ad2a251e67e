"""Checks of decoded JSON: exact key sets and types, with the name of the field that breaks them.

A `Check` takes a value and its name and raises ValueError; checks are combined into larger ones.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping

Check = Callable[[object, str], None]

_HEX_DIGEST = re.compile(r"[0-9a-f]{64}")


def text(value: object, name: str) -> None:
    """Any string."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string")  # noqa: TRY004 - one error type for every malformed input


def count(value: object, name: str) -> None:
    """An integer that is not negative."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} must be an integer that is not negative")


def flag(value: object, name: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false")  # noqa: TRY004 - as above


def digest(value: object, name: str) -> None:
    """32 bytes as lower-case hexadecimal."""
    if not isinstance(value, str) or not _HEX_DIGEST.fullmatch(value):
        raise ValueError(f"{name} must be 64 lower-case hexadecimal digits")


def anything(value: object, name: str) -> None:
    """Whatever JSON can hold: evidence that this verifier shows but does not judge."""


def exactly(literal: object) -> Check:
    """One value, type included."""

    def check(value: object, name: str) -> None:
        if value != literal or type(value) is not type(literal):
            raise ValueError(f"{name} must be {literal!r}")

    return check


def one_of(*words: str) -> Check:
    """One of these strings."""

    def check(value: object, name: str) -> None:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"{name} must be one of {', '.join(words)}")

    return check


def optional(inner: Check) -> Check:
    """Null, or what `inner` allows."""

    def check(value: object, name: str) -> None:
        if value is not None:
            inner(value, name)

    return check


def list_of(inner: Check) -> Check:
    """A list of what `inner` allows."""

    def check(value: object, name: str) -> None:
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list")  # noqa: TRY004 - as above
        for at, item in enumerate(value):
            inner(item, f"{name}[{at}]")

    return check


def record(fields: Mapping[str, Check], later: Mapping[str, Check] | None = None) -> Check:
    """An object with exactly these keys; those of `later` may be absent together, as in older records."""
    added = later or {}
    checks = {**fields, **added}

    def check(value: object, name: str) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{name} must be an object")  # noqa: TRY004 - as above
        expected = checks.keys() if added.keys() & value.keys() else fields.keys()
        if value.keys() != expected:
            strange = min(set(value) ^ set(expected))
            problem = "has the unknown key" if strange in value else "lacks the key"
            raise ValueError(f"{name} {problem} {strange!r}")
        for key in value:
            checks[key](value[key], f"{name}.{key}")

    return check


def open_record(inner: Check) -> Check:
    """An object with any ASCII keys whose values `inner` allows."""

    def check(value: object, name: str) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{name} must be an object")  # noqa: TRY004 - as above
        for key, item in value.items():
            if not key.isascii():
                raise ValueError(f"{name} has a key that is not ASCII")
            inner(item, f"{name}.{key}")

    return check


def decode_base64(value: str, name: str) -> bytes:
    """Return the bytes of a canonical base64 string (RFC 4648 §4, with padding, no stray bits)."""
    try:
        data = base64.b64decode(value.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeError):
        raise ValueError(f"{name} must be base64") from None
    if base64.b64encode(data).decode() != value:
        raise ValueError(f"{name} must be canonical base64")
    return data
