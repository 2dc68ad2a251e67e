"""Decimal texts to exact integers: dollars to millionths, shares to parts per million."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator

from podium_core.config.yaml_file import written

_MILLION = 1_000_000
_MAX = 10**15
_MAX_CHARS = 64


def to_millionths(value: object) -> int:
    """Return the decimal number times a million, exactly; raise ValueError where that is no integer.

    `value` is text such as "0.10". Negative numbers, exponents and more than six decimals are refused.
    """
    if not isinstance(value, str) or len(value) > _MAX_CHARS or not set(value) <= set("0123456789."):
        raise ValueError('must be a decimal number such as "0.25"')
    try:
        scaled = Decimal(value) * _MILLION
    except InvalidOperation:
        raise ValueError('must be a decimal number such as "0.25"') from None
    if scaled > _MAX:
        raise ValueError("is larger than any real price or budget")
    if scaled != int(scaled):
        raise ValueError("may have at most six decimals")
    return int(scaled)


UsdMicros: TypeAlias = Annotated[
    int, BeforeValidator(to_millionths), written(r"^[0-9]{1,9}(\.[0-9]{1,6})?$", max_length=16)
]
"""Dollars in the file, millionths of a dollar in memory."""
