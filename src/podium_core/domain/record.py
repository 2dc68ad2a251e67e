"""The canonical form of a record: the bytes whose hash is a leaf of the log.

RFC 8785 (JSON canonicalization) restricted to what records use: objects with ASCII keys, strings,
booleans, null and integers within ±(2^53 - 1). For these the standard encoder with sorted keys gives
exactly RFC 8785's bytes; a test holds it against an independent implementation.
"""

import json
from collections.abc import Iterable
from typing import cast

from podium_core.domain.errors import Code, PodiumError

MAX_LEAF_BYTES = 65_535
"""C2SP tlog-tiles: an entry's length is a 16-bit number."""

_MAX_INTEGER = 2**53 - 1
_encode = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,  # `_check` has been through all of it
).encode


def canonical(record: dict[str, object]) -> bytes:
    """Return the canonical bytes of `record`.

    Raises PodiumError (INVALID_REQUEST) if it holds a float, a non-string key, a lone surrogate, too large
    an integer, or encodes to more than `MAX_LEAF_BYTES`.
    """
    _check(record)
    text = _encode(record)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise PodiumError(Code.INVALID_REQUEST, "a record field holds a lone surrogate") from None
    if len(data) > MAX_LEAF_BYTES:
        raise PodiumError(
            Code.TOO_LARGE, f"a record may take {MAX_LEAF_BYTES} bytes, this one takes {len(data)}"
        )
    return data


def _check(value: object) -> None:
    if isinstance(value, dict):
        fields = cast("dict[object, object]", value)
        for key in fields:
            if not isinstance(key, str) or not key.isascii():
                raise PodiumError(Code.INVALID_REQUEST, "record keys must be ASCII strings")
        _check_each(fields.values())
    elif isinstance(value, (list, tuple)):
        _check_each(value)
    elif isinstance(value, int):
        if not -_MAX_INTEGER <= value <= _MAX_INTEGER:
            raise PodiumError(Code.INVALID_REQUEST, "record integers must be within 2^53 - 1")
    elif not (value is None or isinstance(value, str)):
        raise PodiumError(Code.INVALID_REQUEST, f"a record cannot hold a {type(value).__name__}")


def _check_each(values: Iterable[object]) -> None:
    # Most values are plain strings: passing over them here halves the cost of a record.
    for value in values:
        if type(value) is not str:
            _check(value)
