"""JSON as it goes to audit and to workers: compact, every character as itself.

One call of the C encoder holds the interpreter until it is done, which for an image is tens of milliseconds
in which not even a health check is answered. So long strings are escaped slice by slice.
"""

import json
from collections.abc import Iterator

from podium_core.domain.run import Message

_LONG_CHARS = 64 * 1024
_escape = json.encoder.encode_basestring


def json_bytes(value: object) -> bytes:
    """Return compact JSON, made in one go."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def long_json_bytes(value: object) -> bytes:
    """Return the same bytes as `json_bytes`, made in short steps where strings are long."""
    return b"".join(_pieces(value))


def message_bytes(message: Message) -> bytes:
    """Return the whole of a message as JSON."""
    is_long = message.size_chars > _LONG_CHARS
    return long_json_bytes(message.fields) if is_long else json_bytes(message.fields)


def escaped(text: str) -> bytes:
    """Return text as it stands between the quotes of a JSON string."""
    return b"".join(_slices(text))


def _slices(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), _LONG_CHARS):
        yield _escape(text[start : start + _LONG_CHARS])[1:-1].encode(errors="replace")


def _pieces(value: object) -> Iterator[bytes]:
    if isinstance(value, str) and len(value) > _LONG_CHARS:
        yield b'"'
        yield from _slices(value)
        yield b'"'
    elif isinstance(value, dict) and value:
        mark = b"{"
        for name, item in value.items():
            yield mark + json_bytes(name) + b":"
            yield from _pieces(item)
            mark = b","
        yield b"}"
    elif isinstance(value, list) and value:
        mark = b"["
        for item in value:
            yield mark
            yield from _pieces(item)
            mark = b","
        yield b"]"
    else:
        yield json_bytes(value)
