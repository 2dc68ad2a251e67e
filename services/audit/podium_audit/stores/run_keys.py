"""Data keys of runs, wrapped, in a small SQLite file of their own that can be backed up and erased apart.

Keys are made ahead, hundreds per commit, so that opening a run costs no extra one.
"""

import secrets
import sqlite3
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from podium_audit.key_ports import KeyWrapper
from podium_audit.ports import StoreError
from podium_audit.stores.own_file import OwnFile
from podium_audit.stores.sqlite_file import connect
from podium_audit.stores.sqlite_reader import store_errors

_KEY_BYTES = 32
_LOCK_S = 5.0
_SCHEMA_VERSION = 1


class SqliteKeyReader:
    """Finds keys on a connection that cannot write, for one thread at a time."""

    def __init__(self, file: Path, wrapper: KeyWrapper) -> None:
        self._wrapper = wrapper
        with store_errors():
            self._connection = sqlite3.connect(
                f"file:{file}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
            )

    def get(self, key_no: int) -> bytes | None:
        """Return a key; None once it is erased. Raises StoreError."""
        return _get(self._connection, self._wrapper, key_no)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class SqliteRunKeys:
    """A pool of unused keys in memory, and every used key by number. Used by one thread."""

    def __init__(self, file: Path, wrapper: KeyWrapper, *, pool_size: int = 512, busy_s: float = 2.0) -> None:
        self._file = file
        self._own = OwnFile(file)
        self._wrapper = wrapper
        self._pool_size = pool_size
        self._busy_s = busy_s
        self._pool: deque[tuple[int, bytes]] = deque()
        self._connection: sqlite3.Connection | None = None

    def open(self, last_used: int) -> None:
        """Get ready to hand out keys numbered above `last_used`. Raises StoreError.

        A store that never made the keys in use is a lost or an old one: it would number new keys like them.
        """
        self._own.check()
        with store_errors():
            self._connection = connection = connect(self._file, busy_s=_LOCK_S, forgets=True)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, _SCHEMA_VERSION):
                raise StoreError(f"the key store has schema version {version}, not {_SCHEMA_VERSION}")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS run_keys"
                " (key_no INTEGER PRIMARY KEY AUTOINCREMENT, wrapped BLOB NOT NULL) STRICT"
            )
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            rows = connection.execute(
                "SELECT key_no, wrapped FROM run_keys WHERE key_no > ? ORDER BY key_no", (last_used,)
            ).fetchall()
            last_made = _last_made(connection)
        self._own.check()
        if last_made < last_used:
            raise StoreError(
                f"{self._file.name} holds keys up to {last_made}, but the log uses keys up to {last_used}:"
                " restore the key store that belongs to this log"
            )
        self._pool = deque(
            (key_no, self._wrapper.unwrap(wrapped, run_key_context(key_no))) for key_no, wrapped in rows
        )

    def take(self) -> tuple[int, bytes]:
        """Return the number and the 32 bytes of a key nobody had before. Raises StoreError."""
        if not self._pool:
            self._fill()
        self._own.check()
        return self._pool.popleft()

    def get(self, key_no: int) -> bytes | None:
        """Return a key; None once it is erased. Raises StoreError."""
        return _get(self._connected, self._wrapper, key_no)

    def erase(self, key_nos: Sequence[int]) -> None:
        """Destroy keys for good, in the write-ahead log too; any thread may ask. Raises StoreError."""
        with store_errors(), closing(self._connect()) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM run_keys WHERE key_no = ?", [(key_no,) for key_no in key_nos])
            connection.execute("COMMIT")
            (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._own.check()
        if is_busy:
            raise StoreError("the key store's write-ahead log is in use: erased keys are still in it")

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=self._busy_s, isolation_level=None)

    def close(self) -> None:
        """Let go of everything."""
        self._pool.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._own.disconnected()

    def _fill(self) -> None:
        connection = self._connected
        with store_errors():
            last = _last_made(connection)
            fresh = [(last + 1 + at, secrets.token_bytes(_KEY_BYTES)) for at in range(self._pool_size)]
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(
                    "INSERT INTO run_keys VALUES (?, ?)",
                    [(key_no, self._wrapper.wrap(key, run_key_context(key_no))) for key_no, key in fresh],
                )
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        self._pool.extend(fresh)

    @property
    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("the key store is not open")
        return self._connection


def _get(connection: sqlite3.Connection, wrapper: KeyWrapper, key_no: int) -> bytes | None:
    with store_errors():
        row = connection.execute("SELECT wrapped FROM run_keys WHERE key_no = ?", (key_no,)).fetchone()
    return wrapper.unwrap(row[0], run_key_context(key_no)) if row else None


def _last_made(connection: sqlite3.Connection) -> int:
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()
    return int(last)


def run_key_context(key_no: int) -> bytes:
    """Return what a wrapped key is bound to: its number."""
    return f"podium-run-key/1\x00{key_no}".encode()
