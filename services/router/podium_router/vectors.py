"""The vectors of a provider's answer, as they travel on: 32-bit floats, little-endian."""

import base64
import binascii
import math
import struct
from typing import cast

_FLOAT_BYTES = 4
_MAX_DIMENSIONS = 65_536


class BadAnswerError(Exception):
    """The provider's answer does not have the shape of an answer. Carries nothing of its text."""


def vectors_of(data: object) -> tuple[bytes, ...]:
    """Return the vectors of `data` in the order of their indices; raise BadAnswerError.

    Each must be there once and have the same length as the others.
    """
    if not isinstance(data, list) or not data:
        raise BadAnswerError
    found: dict[int, bytes] = {}
    for position, item in enumerate(cast("list[object]", data)):
        if not isinstance(item, dict):
            raise BadAnswerError
        index = item.get("index", position)
        if not isinstance(index, int) or index in found:
            raise BadAnswerError
        found[index] = _packed(item.get("embedding"))
    if sorted(found) != list(range(len(found))) or len({len(vector) for vector in found.values()}) != 1:
        raise BadAnswerError
    return tuple(found[index] for index in range(len(found)))


def _packed(embedding: object) -> bytes:
    if isinstance(embedding, str):
        return _checked(embedding)
    if not isinstance(embedding, list) or not 0 < len(embedding) <= _MAX_DIMENSIONS:
        raise BadAnswerError
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in embedding):
        raise BadAnswerError
    try:
        packed = struct.pack(f"<{len(embedding)}f", *embedding)
    except (OverflowError, struct.error):
        raise BadAnswerError from None
    return _finite(packed)


def _checked(text: str) -> bytes:
    """Return what some providers send in base64 whatever they are asked for."""
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadAnswerError from None
    if not packed or len(packed) % _FLOAT_BYTES or len(packed) > _MAX_DIMENSIONS * _FLOAT_BYTES:
        raise BadAnswerError
    return _finite(packed)


def _finite(packed: bytes) -> bytes:
    if not all(map(math.isfinite, struct.unpack(f"<{len(packed) // _FLOAT_BYTES}f", packed))):
        raise BadAnswerError
    return packed
