"""JSON as clients may send it: one object, UTF-8, unique keys, finite numbers, bounded depth.

Two parsers that disagree about a body (duplicate keys, NaN, half a surrogate pair) would let what is
recorded differ from what a provider reads, so everything ambiguous is refused with its place.
"""

import json
import math
import re
from collections import Counter
from typing import NoReturn, cast

from podium_core.domain.errors import PodiumError, invalid

MAX_DEPTH = 64
MAX_VALUES = 200_000
"""Objects, arrays and their elements in one body: each costs far more memory and time than its bytes say."""

_MAX_INTEGER_DIGITS = 19
_MAX_SHOWN_CHARACTERS = 40
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
# Possessive, and content with an unfinished end too, so that no body makes it look at a byte twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)


def parse_object(body: bytes) -> dict[str, object]:
    """Return the JSON object in `body`; raise PodiumError (INVALID_REQUEST) that says what is wrong where."""
    text = _utf8(body)
    _check_count(body)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        if text.startswith("\ufeff"):
            raise _refused(
                "the body begins with a byte order mark; send it without", "MALFORMED_JSON"
            ) from None
        place = f"line {error.lineno} column {error.colno}"
        raise _refused(f"malformed JSON at {place}: {error.msg}", "MALFORMED_JSON") from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(value, dict):
        raise _refused("the body must be a JSON object", "MALFORMED_JSON")
    # Every level needs a bracket, so the walk is needed only where enough of them occur.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check_depth(value)
    if _SURROGATE_ESCAPE.search(body):
        _check_surrogates(value)
    return cast("dict[str, object]", value)


def _utf8(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise _refused(f"the body is not UTF-8: byte {error.start} is invalid", "MALFORMED_JSON") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise _refused(f"the key {shown(twice)} occurs twice in one object", "DUPLICATE_KEY")
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise _refused(f"{name} is not JSON; send a finite number or null", "MALFORMED_JSON")


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise _refused(f"the number {shown(literal)} is too large", "NUMBER_OUT_OF_RANGE")
    return value


def _integer(literal: str) -> int:
    if len(literal) > _MAX_INTEGER_DIGITS + 1:
        raise _refused(f"the integer {shown(literal)} has too many digits", "NUMBER_OUT_OF_RANGE")
    return int(literal)


def _check_count(body: bytes) -> None:
    if _marks(body) > MAX_VALUES and _marks(_STRING.sub(b"", body)) > MAX_VALUES:
        raise _refused(f"the body holds more than {MAX_VALUES} JSON values; send fewer", "TOO_MANY_VALUES")


def _marks(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for item in level:
            children = item.values() if isinstance(item, dict) else cast("list[object]", item)
            below.extend(child for child in children if isinstance(child, (dict, list)))
        if not below:
            return
        level = below
    raise _too_deep()


def _check_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _refused(
            "a string holds half of a surrogate pair (\\ud800 to \\udfff); send both halves or neither",
            "LONE_SURROGATE",
        ) from None


def _too_deep() -> PodiumError:
    return _refused(f"the body is nested more than {MAX_DEPTH} levels deep", "TOO_DEEP")


def _refused(message: str, reason: str) -> PodiumError:
    return invalid(message, reason=reason)


def shown(text: str) -> str:
    """Return client text short, quoted and in ASCII, fit for an error message."""
    cut = text if len(text) <= _MAX_SHOWN_CHARACTERS else text[:_MAX_SHOWN_CHARACTERS] + "…"
    return json.dumps(cut)
