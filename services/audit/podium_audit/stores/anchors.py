"""Anchors in one small SQLite file beside the log's."""

import sqlite3
from pathlib import Path
from typing import Any

from podium_audit.anchors import COSIGNATURE, AnchorRow
from podium_audit.ports import StoreError
from podium_audit.stores.sqlite_file import connect
from podium_audit.stores.sqlite_reader import store_errors

_COLUMNS = ", ".join(AnchorRow._fields)


class SqliteAnchors:
    """Used by one thread at a time. `busy_s` bounds how long it waits for a lock."""

    def __init__(self, file: Path, *, busy_s: float) -> None:
        self._file = file
        self._busy_s = busy_s
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        """Connect, or connect anew after an error."""
        self.close()
        with store_errors():
            connection = connect(self._file, busy_s=self._busy_s)
            connection.execute(
                "CREATE TABLE IF NOT EXISTS anchors (kind TEXT NOT NULL, name TEXT NOT NULL,"
                " size INTEGER NOT NULL, time_us INTEGER NOT NULL, data BLOB NOT NULL,"
                " PRIMARY KEY (kind, name, size)) STRICT, WITHOUT ROWID"
            )
        self._connection = connection

    def close(self) -> None:
        """Let go of everything."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def put(self, row: AnchorRow) -> None:
        """Keep an anchor durably; a cosignature takes the place of the older one of its name."""
        with store_errors(), self._connected:
            self._connected.execute("BEGIN IMMEDIATE")
            if row.kind == COSIGNATURE:
                self._connected.execute(
                    "DELETE FROM anchors WHERE kind = ? AND name = ? AND size < ?", row[:3]
                )
            self._connected.execute("INSERT OR REPLACE INTO anchors VALUES (?, ?, ?, ?, ?)", row)

    def newest(self, max_size: int) -> list[AnchorRow]:
        """Return the anchor of each kind and name over the largest checkpoint up to `max_size`."""
        return self._each("max(size)", "size <= ?", max_size)

    def first_over(self, index: int) -> list[AnchorRow]:
        """Return the anchor of each kind and name over the smallest checkpoint that holds leaf `index`."""
        return self._each("min(size)", "size > ?", index)

    def _each(self, which: str, where: str, value: int) -> list[AnchorRow]:
        inner = f"SELECT kind, name, {which} FROM anchors WHERE {where} GROUP BY kind, name"  # noqa: S608 - constants
        query = f"SELECT {_COLUMNS} FROM anchors WHERE (kind, name, size) IN ({inner}) ORDER BY kind, name"  # noqa: S608 - constants
        with store_errors():
            rows: list[Any] = self._connected.execute(query, (value,)).fetchall()
        return [AnchorRow(*row) for row in rows]

    @property
    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("the database of anchors is not open")
        return self._connection
