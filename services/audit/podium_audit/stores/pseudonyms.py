"""Pseudonyms in SQLite, in the file of the runs' keys: what is forgotten there is in no long backup."""

import sqlite3
from pathlib import Path

from podium_audit.ports import StoreError
from podium_audit.stores.sqlite_file import connect
from podium_audit.stores.sqlite_reader import store_errors

_STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS subject_key (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        wrapped BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE IF NOT EXISTS subjects (
        tenant_id TEXT NOT NULL,
        digest BLOB NOT NULL,
        pseudonym TEXT NOT NULL,
        PRIMARY KEY (tenant_id, digest)
    ) STRICT, WITHOUT ROWID""",
)


class SqlitePseudonyms:
    """Used by one thread. `busy_s` bounds how long it waits for a lock."""

    def __init__(self, file: Path, *, busy_s: float) -> None:
        self._file = file
        self._busy_s = busy_s
        self._connection: sqlite3.Connection | None = None

    def open(self, new_wrapped_key: bytes) -> bytes:
        """Connect; return the wrapped key of the digests, which is this one where there is none yet."""
        with store_errors():
            self._connection = connection = connect(self._file, busy_s=self._busy_s, forgets=True)
            for statement in _STATEMENTS:
                connection.execute(statement)
            connection.execute("INSERT OR IGNORE INTO subject_key VALUES (1, ?)", (new_wrapped_key,))
            (wrapped,) = connection.execute("SELECT wrapped FROM subject_key").fetchone()
        return bytes(wrapped)

    def close(self) -> None:
        """Let go of everything."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def find(self, tenant_id: str, digest: bytes) -> str | None:
        """Return the pseudonym under a digest."""
        with store_errors():
            row = self._connected.execute(
                "SELECT pseudonym FROM subjects WHERE tenant_id = ? AND digest = ?", (tenant_id, digest)
            ).fetchone()
        return str(row[0]) if row else None

    def add(self, tenant_id: str, digest: bytes, pseudonym: str) -> str:
        """Keep a pseudonym durably and return it, or the one that somebody else kept first."""
        with store_errors():
            self._connected.execute(
                "INSERT OR IGNORE INTO subjects VALUES (?, ?, ?)", (tenant_id, digest, pseudonym)
            )
        return self.find(tenant_id, digest) or pseudonym

    def forget(self, tenant_id: str, digest: bytes) -> None:
        """Delete a pseudonym so that no byte of the row stays in the store's files."""
        with store_errors():
            connection = self._connected
            connection.execute("DELETE FROM subjects WHERE tenant_id = ? AND digest = ?", (tenant_id, digest))
            (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise StoreError("the key store's write-ahead log is in use: what was forgotten is still in it")

    @property
    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("the pseudonyms are not open")
        return self._connection
