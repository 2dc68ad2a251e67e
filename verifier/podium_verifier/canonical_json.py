"""Canonical JSON: one value has exactly one spelling, so bytes that parse can hide nothing.

The form is RFC 8785 restricted to what records use: objects, arrays, strings, booleans, null and integers
within ±(2^53 - 1). Reading means parsing, encoding again and demanding the same bytes: duplicate keys,
spaces, other escapes, other key orders and unusual numbers all fail that comparison.
"""

import json
from typing import NoReturn, cast

_MAX_INTEGER = 2**53 - 1
_MAX_DIGITS = 17


def parse_object(data: bytes) -> dict[str, object]:
    """Return the object that `data` spells canonically; ValueError says what is wrong."""
    try:
        value = _decoder.decode(data.decode())
        again = _encoder.encode(value).encode()
    except UnicodeError:
        raise ValueError("not valid UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON at byte {error.pos}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - one error type for every malformed input
    if again != data:
        raise ValueError(f"not in canonical form (first difference at byte {_first_difference(again, data)})")
    return cast("dict[str, object]", value)


def _first_difference(one: bytes, other: bytes) -> int:
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)


def _integer(digits: str) -> int:
    if len(digits) <= _MAX_DIGITS and abs(value := int(digits)) <= _MAX_INTEGER:
        return value
    raise ValueError("an integer is out of range")


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is not an integer")


_decoder = json.JSONDecoder(parse_int=_integer, parse_float=_refuse_number, parse_constant=_refuse_number)
_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
