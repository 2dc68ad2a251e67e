"""Conversation items in an SQLite file of their own: unlike the log, everything in it can be deleted."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from podium_audit.ports import ItemRow, StoreError
from podium_audit.stores.own_file import OwnFile
from podium_audit.stores.sqlite_file import connect
from podium_audit.stores.sqlite_reader import store_errors
from podium_core.domain.conversation import ItemRange

_SCHEMA_VERSION = 2
_BEHIND_IDS = "~"
"""Sorts behind every character of an id."""
_COLUMNS = ", ".join(ItemRow._fields)
_BY_RUN = "CREATE INDEX items_by_run ON items (run_id) WHERE run_id != ''"
_STATEMENTS = (
    """CREATE TABLE items (
        version INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        item_id TEXT NOT NULL,
        run_id TEXT NOT NULL,
        expires_ms INTEGER NOT NULL,
        wrapped_key BLOB NOT NULL,
        sealed BLOB NOT NULL,
        UNIQUE (tenant_id, kind, item_id)
    ) STRICT""",
    "CREATE INDEX items_by_expiry ON items (expires_ms) WHERE expires_ms > 0",
    _BY_RUN,
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)


class SqliteConversations:
    """Used by one thread at a time. `busy_s` bounds how long it waits for a lock."""

    def __init__(self, file: Path, *, busy_s: float) -> None:
        self._file = file
        self._own = OwnFile(file)
        self._busy_s = busy_s
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        """Connect, or connect anew after an error. Makes an empty store where there is none."""
        self._own.check()
        self.close()
        with store_errors():
            self._connection = connection = connect(self._file, busy_s=self._busy_s, forgets=True)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == _SCHEMA_VERSION - 1:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_BY_RUN)
                connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
                connection.execute("COMMIT")
                version = _SCHEMA_VERSION
            if version not in (0, _SCHEMA_VERSION):
                raise StoreError(
                    f"the conversation store has schema version {version}, not {_SCHEMA_VERSION}"
                )
            if version == 0:
                connection.execute("BEGIN IMMEDIATE")
                for statement in _STATEMENTS:
                    connection.execute(statement)
                connection.execute("COMMIT")
        self._own.check()

    def close(self) -> None:
        """Let go of everything."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._own.disconnected()

    def find(self, tenant_id: str, kind: str, item_id: str) -> tuple[int, ItemRow] | None:
        """Return an item, expired or not, with its version."""
        with store_errors():
            found = self._connected.execute(
                f"SELECT version, {_COLUMNS} FROM items WHERE tenant_id = ? AND kind = ? AND item_id = ?",  # noqa: S608 - constants
                (tenant_id, kind, item_id),
            ).fetchone()
        return None if found is None else (found[0], ItemRow(*found[1:]))

    def page(self, wanted: ItemRange, now_ms: int, limit: int) -> Sequence[tuple[int, ItemRow]]:
        """Return the items of a range, in the order of their ids."""
        low, high = wanted.prefix, wanted.prefix + _BEHIND_IDS
        if wanted.after:
            low, high = (low, wanted.after) if wanted.is_descending else (wanted.after, high)
        order = "DESC" if wanted.is_descending else "ASC"
        with store_errors():
            found = self._connected.execute(
                f"SELECT version, {_COLUMNS} FROM items WHERE tenant_id = ? AND kind = ?"  # noqa: S608 - constants
                " AND item_id > ? AND item_id < ? AND substr(item_id, 1, ?) = ?"
                f" AND (expires_ms = 0 OR expires_ms > ?) ORDER BY item_id {order} LIMIT ?",
                (
                    wanted.tenant_id,
                    wanted.kind.value,
                    low,
                    high,
                    len(wanted.prefix),
                    wanted.prefix,
                    now_ms,
                    limit,
                ),
            ).fetchall()
        return [(row[0], ItemRow(*row[1:])) for row in found]

    def replace(self, row: ItemRow, over: int) -> int | None:
        """Store a row durably over the version `over`; return its new version, None if that is gone."""
        connection = self._connected
        with store_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                if over and not connection.execute("DELETE FROM items WHERE version = ?", (over,)).rowcount:
                    return None
                made = connection.execute(
                    f"INSERT INTO items ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
                    " ON CONFLICT DO NOTHING RETURNING version",
                    row,
                ).fetchone()
                if made is None:
                    return None
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        self._own.check()  # after the commit: nobody may be told of an item in a file that is gone
        return int(made[0])

    def delete(self, version: int) -> bool:
        """Delete an item so that no byte of it stays in the store's files; return whether it was there."""
        with store_errors():
            count = self._connected.execute("DELETE FROM items WHERE version = ?", (version,)).rowcount
        if count:
            self._forget()
        return bool(count)

    def delete_of_runs(self, runs: Sequence[tuple[str, str]]) -> int:
        """Delete every item of these (tenant_id, run_id), as thoroughly; return how many."""
        connection = self._connected
        with store_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                count = connection.executemany(
                    "DELETE FROM items WHERE tenant_id = ? AND run_id = ?", runs
                ).rowcount
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        self._forget()  # also when a try before this one deleted them and did not get here
        return max(count, 0)

    def sweep(self, now_ms: int, limit: int) -> int:
        """Delete up to `limit` items that had expired by `now_ms`, as thoroughly; return how many."""
        with store_errors():
            count = self._connected.execute(
                "DELETE FROM items WHERE version IN"
                " (SELECT version FROM items WHERE expires_ms > 0 AND expires_ms <= ? LIMIT ?)",
                (now_ms, limit),
            ).rowcount
        if count:
            self._forget()
        return count

    def _forget(self) -> None:
        """Empty the write-ahead log: it still has the pages as they were."""
        with store_errors():
            (is_busy, *_) = self._connected.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._own.check()
        if is_busy:
            raise StoreError("the write-ahead log is in use: what was deleted is still in it")

    @property
    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("the conversation store is not open")
        return self._connection
