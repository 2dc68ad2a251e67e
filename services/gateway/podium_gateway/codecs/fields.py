"""Typed access to decoded JSON objects: every refusal names the field by its path."""

from collections.abc import Collection, Mapping
from typing import cast

from podium_core.domain.errors import PodiumError, invalid
from podium_gateway.codecs.strict_json import shown

_MAX_UINT31 = 2**31 - 1


def refuse(param: str, problem: str, *, reason: str = "INVALID_VALUE") -> PodiumError:
    """Return the error for one bad field: "`param`: problem"."""
    return invalid(f"{param}: {problem}", reason=reason, param=param)


def kind_of(value: object) -> str:
    """Return JSON's word for the type of a decoded value."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")


def as_object(value: object, param: str) -> dict[str, object]:
    """Return `value` if it is an object."""
    if not isinstance(value, dict):
        raise refuse(param, f"must be an object, not {kind_of(value)}")
    return cast("dict[str, object]", value)


def as_array(value: object, param: str, *, at_least: int = 0, at_most: int | None = None) -> list[object]:
    """Return `value` if it is an array of a length within bounds."""
    if not isinstance(value, list):
        raise refuse(param, f"must be an array, not {kind_of(value)}")
    if len(value) < at_least:
        raise refuse(param, f"needs at least {at_least} element{'s' if at_least > 1 else ''}")
    if at_most is not None and len(value) > at_most:
        raise refuse(param, f"may hold at most {at_most} elements, not {len(value)}")
    return cast("list[object]", value)


def as_string(value: object, param: str, *, at_most: int | None = None, may_be_empty: bool = True) -> str:
    """Return `value` if it is a string of a length within bounds."""
    if not isinstance(value, str):
        raise refuse(param, f"must be a string, not {kind_of(value)}")
    if not value and not may_be_empty:
        raise refuse(param, "must not be empty")
    if at_most is not None and len(value) > at_most:
        raise refuse(param, f"may be at most {at_most} characters long, not {len(value)}")
    return value


def as_boolean(value: object, param: str) -> bool:
    """Return `value` if it is a boolean."""
    if not isinstance(value, bool):
        raise refuse(param, f"must be true or false, not {kind_of(value)}")
    return value


def as_integer(value: object, param: str, *, at_least: int, at_most: int = _MAX_UINT31) -> int:
    """Return `value` if it is an integer within bounds, both included."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse(param, f"must be an integer, not {kind_of(value)}")
    if not at_least <= value <= at_most:
        raise refuse(param, f"must be between {at_least} and {at_most}, not {value}")
    return value


def as_number(value: object, param: str, *, at_least: float, at_most: float) -> float:
    """Return `value` if it is a number within bounds, both included."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refuse(param, f"must be a number, not {kind_of(value)}")
    if not at_least <= value <= at_most:
        raise refuse(param, f"must be between {at_least:g} and {at_most:g}, not {value:g}")
    return value


def as_choice(value: object, param: str, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    text = as_string(value, param)
    if text not in choices:
        raise refuse(param, f"must be one of {', '.join(sorted(choices))}, not {shown(text)}")
    return text


def known_fields(fields: Mapping[str, object], known: Collection[str], path: str) -> None:
    """Refuse an object that has a field outside `known`, naming the field."""
    for name in fields:
        if name not in known:
            param = f"{path}.{name[:64]}"
            choice = ", ".join(sorted(known))
            raise refuse(param, f"unknown field; {path} takes {choice}", reason="UNKNOWN_PARAMETER")
