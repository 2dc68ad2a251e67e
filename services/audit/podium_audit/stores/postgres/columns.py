"""Columns of a batch as PostgreSQL's binary arrays.

A list goes to the server as text, every value quoted by calls of its own; that was a sixth of what a commit
costs audit. Sizes and order of the bytes: `array_recv` and the types' `*recv` functions of PostgreSQL.
"""

from collections.abc import Callable, Iterable
from struct import Struct, error
from typing import Any, Final

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from podium_audit.ports import StoreError

_HEADER: Final = Struct(">iiIii").pack
"""Dimensions, whether there may be nulls, the type of the values, how many, the first one's index."""
_LENGTH: Final = Struct(">i").pack
_INTEGER: Final = Struct(">ii").pack
_BIGINT: Final = Struct(">iq").pack
_NULL: Final = _LENGTH(-1)


def _integer(value: int) -> bytes:
    return _INTEGER(4, value)


def _bigint(value: int) -> bytes:
    return _BIGINT(8, value)


def _text(value: str) -> bytes:
    data = value.encode()
    return _LENGTH(len(data)) + data


def _bytes(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value


def _boolean(value: bool) -> bytes:  # noqa: FBT001 - the value itself
    return b"\x00\x00\x00\x01\x01" if value else b"\x00\x00\x00\x01\x00"


_ENCODERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "bigint": _bigint,
    "integer": _integer,
    "text": _text,
    "bytea": _bytes,
    "boolean": _boolean,
}


class Column:
    """One array parameter of a statement that names its type (`%s::bigint[]`).

    Raises StoreError for an integer that its type cannot hold.
    """

    __slots__ = ("data",)

    def __init__(self, type_name: str, values: Iterable[Any]) -> None:
        encode = _ENCODERS[type_name]
        try:
            encoded = [_NULL if value is None else encode(value) for value in values]
        except error:
            raise StoreError(f"a number does not fit a column of type {type_name}") from None
        oid = psycopg.adapters.types[type_name].oid
        self.data = _HEADER(1, 1, oid, len(encoded), 1) + b"".join(encoded)


class _ColumnDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Column) -> bytes:
        return obj.data


def take_columns(connection: "psycopg.Connection[Any]") -> None:
    """Let a connection take columns as parameters."""
    connection.adapters.register_dumper(Column, _ColumnDumper)
