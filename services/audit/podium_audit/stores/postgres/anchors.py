"""Anchors in PostgreSQL, beside the log: any replica gets them and any shows them."""

from typing import Any, Final, LiteralString

from podium_audit.anchors import COSIGNATURE, AnchorRow
from podium_audit.stores.postgres.connection import Session

TABLES: Final[tuple[LiteralString, ...]] = (
    """CREATE TABLE anchors (
        kind text NOT NULL,
        name text NOT NULL,
        size bigint NOT NULL,
        time_us bigint NOT NULL,
        data bytea NOT NULL,
        PRIMARY KEY (kind, name, size)
    )""",
)
_PUT: Final = (
    "INSERT INTO anchors VALUES (%s, %s, %s, %s, %s) ON CONFLICT (kind, name, size)"
    " DO UPDATE SET time_us = excluded.time_us, data = excluded.data"
)


class PostgresAnchors:
    """Used by one thread at a time. Every method raises StoreError."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def open(self) -> None:
        """Connect. What it needs is made with the log's tables."""
        with self._session.use():
            pass

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

    def put(self, row: AnchorRow) -> None:
        """Keep an anchor durably; a cosignature takes the place of the older one of its name."""
        with self._session.use() as connection, connection.transaction():
            if row.kind == COSIGNATURE:
                connection.execute("DELETE FROM anchors WHERE kind = %s AND name = %s AND size < %s", row[:3])
            connection.execute(_PUT, row)

    def newest(self, max_size: int) -> list[AnchorRow]:
        """Return the anchor of each kind and name over the largest checkpoint up to `max_size`."""
        return self._each("WHERE size <= %s ORDER BY kind, name, size DESC", max_size)

    def first_over(self, index: int) -> list[AnchorRow]:
        """Return the anchor of each kind and name over the smallest checkpoint that holds leaf `index`."""
        return self._each("WHERE size > %s ORDER BY kind, name, size", index)

    def _each(self, which: LiteralString, value: int) -> list[AnchorRow]:
        with self._session.use() as connection:
            rows: list[Any] = connection.execute(
                f"SELECT DISTINCT ON (kind, name) * FROM anchors {which}",  # noqa: S608 - constants
                (value,),
            ).fetchall()
        return [AnchorRow(*row) for row in rows]
