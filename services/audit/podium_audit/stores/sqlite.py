"""The log in one SQLite file: WAL, synchronous FULL, one transaction per batch, one process."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from podium_audit.ports import (
    USE_KEY_FIELDS,
    Batch,
    EventRow,
    Head,
    LeafRow,
    RunRow,
    StoreError,
    UseRow,
)
from podium_audit.stores import schema, sqlite_custody
from podium_audit.stores.own_file import OwnFile
from podium_audit.stores.sqlite_file import connect
from podium_audit.stores.sqlite_reader import SqliteReads, store_errors
from podium_audit.stores.standing import StandingReads

T = TypeVar("T")

_CACHE_KIB = 2_048
_WAL_PAGES = 2_000
_CACHED_STATEMENTS = 256

_PROBE_BYTES = 16_384
_CHUNKS = (128, 32, 8, 1)

_TABLES = {
    "runs": ("INSERT INTO runs", 10),
    "leaves": ("INSERT INTO leaves", 3),
    "events": ("INSERT INTO events", 4),
    "contents": ("INSERT INTO contents", 2),
    "seals": ("INSERT INTO seals", 5),
    "facets": ("INSERT INTO run_facets", 4),
    "tiles": ("INSERT OR REPLACE INTO tiles", 3),
    "leaf_counts": ("INSERT OR REPLACE INTO leaf_counts", 2),
    "settled": ("INSERT OR REPLACE INTO settled", 3),
    "stops": ("INSERT OR REPLACE INTO stops", 3),
    "grade_tallies": ("INSERT OR REPLACE INTO grade_tallies", 6),
    **sqlite_custody.TABLES,
}
"""In an order that foreign keys allow, with how many columns each has."""

_PLACED = ("leaves", "contents")

_KEY, _SUMS = UseRow._fields[:USE_KEY_FIELDS], UseRow._fields[USE_KEY_FIELDS:]
_ADD_USE = (
    f"INSERT INTO uses VALUES ({', '.join('?' * len(UseRow._fields))})"  # noqa: S608 - constants
    f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {', '.join(f'{n} = {n} + excluded.{n}' for n in _SUMS)}"
)


class SqliteStore(StandingReads, SqliteReads):
    """The writer's connection, used by one thread. `busy_s` bounds how long it waits for a lock."""

    is_shared = False

    def __init__(self, file: Path, *, busy_s: float) -> None:
        self._file = file
        self._busy_s = busy_s
        self._own = OwnFile(file)
        self._lock_fd: int | None = None
        self._size = 0

    def open(self) -> None:
        """Connect, or connect anew after an error. Makes an empty log where there was none from the start."""
        self._lock_file()
        self._own.check()
        self._disconnect()
        with store_errors():
            connection = connect(
                self._file, busy_s=self._busy_s, cache_kib=_CACHE_KIB, statements=_CACHED_STATEMENTS
            )
            self._connection = connection
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
            self._prepare(connection)
            (last,) = connection.execute("SELECT max(leaf_index) FROM leaves").fetchone()
        self._size = 0 if last is None else last + 1
        self._own.check()

    def close(self) -> None:
        """Let go of everything."""
        self._disconnect()
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def snapshot(self) -> AbstractContextManager[None]:
        """Nobody else writes: everything is always of one moment."""
        return nullcontext()

    def head(self) -> Head:
        """Return where the log stands."""
        return Head(self._size)

    def begin(self) -> Head:
        """Return where the log stands: the file lock keeps everybody else away."""
        return Head(self._size)

    def abandon(self) -> None:
        """Nothing has begun: a commit is one transaction of its own."""

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
        if batch.leaves:
            self._size = batch.leaves[-1].leaf_index + 1
        self._own.check()  # after the commit: nobody may be told of records in a file that is gone

    def rows(self, begin: int, end: int) -> list[LeafRow]:
        """Return the leaves from index `begin` to before `end`, as far as there are any."""
        query = "SELECT leaf_index, run_no, data FROM leaves WHERE leaf_index >= ? AND leaf_index < ?"
        return [LeafRow(*row) for row in self._all(f"{query} ORDER BY leaf_index", begin, end)]

    def runs_by_no(self, run_nos: Sequence[int]) -> dict[int, RunRow]:
        """Return runs by their numbers."""
        rows: list[Any] = []
        for chunk in _chunks(run_nos):
            query = f"SELECT * FROM runs WHERE run_no IN {_places(len(chunk))}"  # noqa: S608 - placeholders
            rows += self._all(query, *chunk)
        return {row[0]: RunRow(*row) for row in rows}

    def probe(self) -> None:
        """Make a small commit that means nothing. Raises StoreError when that fails."""
        connection = self._connected
        with store_errors():
            connection.execute("INSERT OR REPLACE INTO probe VALUES (1, zeroblob(?))", (_PROBE_BYTES,))
        self._own.check()

    def events(self, event_ids: Sequence[str]) -> dict[str, EventRow]:
        """Return what these event ids made, those that made anything."""
        rows: list[tuple[str, bytes, int, int]] = []
        for chunk in _chunks(event_ids):
            query = f"SELECT * FROM events WHERE event_id IN {_places(len(chunk))}"  # noqa: S608 - placeholders
            rows += self._all(query, *chunk)
        return {row[0]: EventRow(*row) for row in rows}

    def known_runs(self, run_ids: Sequence[str]) -> set[str]:
        """Return which of these runs exist."""
        found: set[str] = set()
        for chunk in _chunks(run_ids):
            query = f"SELECT run_id FROM runs WHERE run_id IN {_places(len(chunk))}"  # noqa: S608 - placeholders
            rows = self._all(query, *chunk)
            found.update(row[0] for row in rows)
        return found

    def open_runs(self) -> list[RunRow]:
        """Return the runs without an end."""
        rows = self._all("SELECT runs.* FROM open_runs JOIN runs USING (run_no) ORDER BY run_no")
        return [RunRow(*row) for row in rows]

    def last_key_no(self) -> int:
        """Return the highest `key_no` any run has; 0 when there is none."""
        row = self._one("SELECT key_no FROM runs ORDER BY run_no DESC LIMIT 1")
        return int(row[0]) if row else 0

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> None:
        for table, (insert, width) in _TABLES.items():
            rows = getattr(batch, table)
            # A leaf's and a content's last two fields place it in a store that is split up; one file is not.
            _insert(connection, insert, width, [row[:width] for row in rows] if table in _PLACED else rows)
        _insert(connection, "INSERT INTO open_runs", 1, [(row.run_no,) for row in batch.runs])
        for chunk in _chunks([row.run_no for row in batch.seals]):
            connection.execute(f"DELETE FROM open_runs WHERE run_no IN {_places(len(chunk))}", chunk)  # noqa: S608 - placeholders
        for row in batch.uses:
            connection.execute(_ADD_USE, row)
        sqlite_custody.delete_contents(connection, batch.erasures)
        if batch.checkpoint is not None:
            connection.execute("INSERT INTO checkpoints VALUES (?, ?)", batch.checkpoint)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == schema.SCHEMA_VERSION:
            return
        if version in schema.STEPS:
            self._upgrade(connection, version)
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

    @staticmethod
    def _upgrade(connection: sqlite3.Connection, version: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for older in range(version, schema.SCHEMA_VERSION):
            for statement in schema.STEPS[older]:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")
        connection.execute("COMMIT")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._own.disconnected()

    def _lock_file(self) -> None:
        """Refuse a second process: each would sign a tree of its own."""
        if self._lock_fd is not None:
            return
        try:
            lock_fd = os.open(self._file.with_name(self._file.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(f"cannot make the lock file: {error.strerror}") from None
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock_fd)
            raise StoreError("another process writes this log: stop it first") from None
        self._lock_fd = lock_fd


def _insert(connection: sqlite3.Connection, insert: str, width: int, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, many per statement: each statement hands the interpreter lock over and back."""
    for chunk in _chunks(rows):
        places = ", ".join([_places(width)] * len(chunk))
        connection.execute(f"{insert} VALUES {places}", list(chain.from_iterable(chunk)))


def _chunks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split rows into pieces of few different lengths, so that prepared statements are met again."""
    at = 0
    for size in _CHUNKS:
        while len(rows) - at >= size:
            yield rows[at : at + size]
            at += size


def _places(count: int) -> str:
    return f"({', '.join('?' * count)})"
