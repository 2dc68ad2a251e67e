"""The log in one SQLite file: WAL, synchronous FULL, one transaction per batch, one process."""

import fcntl
import os
import sqlite3
from pathlib import Path

from podium_audit.ports import Batch, EventRow, RunRow, StoreError
from podium_audit.stores import schema
from podium_audit.stores.sqlite_reader import SqliteReads, store_errors

_CACHE_KIB = 8_192
_WAL_PAGES = 2_000
_MS_PER_S = 1_000

_INSERTS = {
    "runs": "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "leaves": "INSERT INTO leaves VALUES (?, ?, ?)",
    "events": "INSERT INTO events VALUES (?, ?, ?, ?)",
    "contents": "INSERT INTO contents VALUES (?, ?)",
    "seals": "INSERT INTO seals VALUES (?, ?, ?, ?, ?)",
    "tiles": "INSERT OR REPLACE INTO tiles VALUES (?, ?, ?)",
    "leaf_counts": "INSERT OR REPLACE INTO leaf_counts VALUES (?, ?)",
    "settled": "INSERT OR REPLACE INTO settled VALUES (?, ?, ?)",
}


class SqliteStore(SqliteReads):
    """The writer's connection, used by one thread. `busy_s` bounds how long it waits for a lock."""

    def __init__(self, file: Path, *, busy_s: float) -> None:
        self._file = file
        self._busy_s = busy_s
        self._lock_fd: int | None = None

    def open(self) -> None:
        """Connect, or connect anew after an error. Makes an empty log where there is none."""
        self._lock_file()
        self._disconnect()
        with store_errors():
            connection = sqlite3.connect(
                self._file, timeout=self._busy_s, isolation_level=None, check_same_thread=False
            )
            self._connection = connection
            connection.execute(f"PRAGMA busy_timeout = {round(self._busy_s * _MS_PER_S)}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
            self._prepare(connection)

    def close(self) -> None:
        """Let go of everything."""
        self._disconnect()
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def commit(self, batch: Batch) -> None:
        """Make the whole batch durable, or raise StoreError and change nothing."""
        connection = self._connected
        with store_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._write(connection, batch)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def event(self, event_id: str) -> EventRow | None:
        """Return what an event id made."""
        row = self._one("SELECT * FROM events WHERE event_id = ?", event_id)
        return EventRow(*row) if row else None

    def open_runs(self) -> list[RunRow]:
        """Return the runs without an end."""
        rows = self._all("SELECT runs.* FROM open_runs JOIN runs USING (run_no) ORDER BY run_no")
        return [RunRow(*row) for row in rows]

    def last_key_no(self) -> int:
        """Return the highest `key_no` any run has; 0 when there is none."""
        row = self._one("SELECT key_no FROM runs ORDER BY run_no DESC LIMIT 1")
        return int(row[0]) if row else 0

    def next_run_no(self) -> int:
        """Return the number for the next run."""
        row = self._one("SELECT run_no FROM runs ORDER BY run_no DESC LIMIT 1")
        return int(row[0]) + 1 if row else 1

    def leaf_counts(self) -> dict[str, int]:
        """Return how many leaves each tenant has."""
        return dict(self._all("SELECT tenant_id, leaf_count FROM leaf_counts"))

    def settled(self) -> dict[tuple[str, str], int]:
        """Return settled USD micros by (tenant_id, month)."""
        rows = self._all("SELECT tenant_id, month, usd_micros FROM settled")
        return {(tenant_id, month): amount for tenant_id, month, amount in rows}

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> None:
        for table, insert in _INSERTS.items():
            rows = getattr(batch, table)
            if rows:
                connection.executemany(insert, rows)
        if batch.runs:
            connection.executemany("INSERT INTO open_runs VALUES (?)", [(row.run_no,) for row in batch.runs])
        if batch.seals:
            connection.executemany(
                "DELETE FROM open_runs WHERE run_no = ?", [(row.run_no,) for row in batch.seals]
            )
        if batch.checkpoint is not None:
            connection.execute("INSERT INTO checkpoints VALUES (?, ?)", batch.checkpoint)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == schema.SCHEMA_VERSION:
            return
        if version != 0 or connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            raise StoreError(
                f"the database has schema version {version}, this program knows {schema.SCHEMA_VERSION}"
            )
        connection.execute("BEGIN IMMEDIATE")
        for statement in schema.STATEMENTS:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")
        connection.execute("COMMIT")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lock_file(self) -> None:
        """Refuse a second process: each would sign a tree of its own."""
        if self._lock_fd is not None:
            return
        lock_fd = os.open(self._file.with_name(self._file.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock_fd)
            raise StoreError("another process writes this log: stop it first") from None
        self._lock_fd = lock_fd
