"""Reads the log's SQLite database: committed rows only, on a connection that cannot write."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podium_audit.ports import CheckpointRow, RunRow, SealRow, StoreError, UseRow
from podium_audit.records.commands import HISTORY_EVENTS
from podium_audit.rows.run_search import RunSearch
from podium_audit.stores.run_search_sql import selection
from podium_audit.stores.sqlite_custody import SqliteCustodyReads

_RUN_COLUMNS = ", ".join(f"runs.{name}" for name in RunRow._fields)
_SEAL_COLUMNS = ", ".join(f"seals.{name}" for name in SealRow._fields)
_RUN_AND_SEAL = f"{_RUN_COLUMNS}, {_SEAL_COLUMNS}"
_RUNS = f"SELECT {_RUN_AND_SEAL} FROM runs LEFT JOIN seals USING (run_no)"  # noqa: S608 - constants
_RUN_WIDTH = len(RunRow._fields)
_CACHE_KIB = 1_024


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn the database's errors into StoreError; its text names no content, but stays in the log file.

    OverflowError is how SQLite's module refuses an integer of more than 64 bits.
    """
    try:
        yield
    except (sqlite3.Error, OverflowError) as error:
        raise StoreError(f"{type(error).__name__}: {error}") from error


class SqliteReads(SqliteCustodyReads):
    """The queries of `LogReader` over a connection that a subclass opens."""

    _connection: sqlite3.Connection | None = None

    def checkpoint(self) -> CheckpointRow | None:
        """Return the newest checkpoint; None for an empty log."""
        row = self._one("SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1")
        return CheckpointRow(*row) if row else None

    def checkpoint_over(self, index: int) -> CheckpointRow | None:
        """Return the oldest checkpoint that covers leaf `index`."""
        row = self._one("SELECT size, note FROM checkpoints WHERE size > ? ORDER BY size LIMIT 1", index)
        return CheckpointRow(*row) if row else None

    def tile(self, level: int, index: int) -> bytes:
        """Return the hashes stored for a tile; empty when there are none."""
        row = self._one("SELECT hashes FROM tiles WHERE level = ? AND tile_index = ?", level, index)
        return row[0] if row else b""

    def leaves(self, begin: int, end: int) -> list[bytes]:
        """Return the bytes of the leaves from index `begin` to before `end`, as far as there are any."""
        query = "SELECT data FROM leaves WHERE leaf_index >= ? AND leaf_index < ? ORDER BY leaf_index"
        return [row[0] for row in self._all(query, begin, end)]

    def history(self) -> list[tuple[int, bytes]]:
        """Return (index, bytes) of every leaf about the log itself, ascending."""
        return self._all(
            "SELECT leaf_index, data FROM events JOIN leaves ON leaf_index = first_index"
            " WHERE event_id > ? AND event_id < ? ORDER BY leaf_index",
            HISTORY_EVENTS,
            HISTORY_EVENTS + "~",
        )

    def run(self, run_id: str) -> tuple[RunRow, SealRow | None] | None:
        """Return a run by its id, with its end when it is sealed."""
        row = self._one(f"{_RUNS} WHERE run_id = ?", run_id)
        return _run(row) if row else None

    def find_runs(
        self, search: RunSearch, *, before_no: int | None, limit: int
    ) -> list[tuple[RunRow, SealRow | None]]:
        """Return the runs that fit, newest first."""
        found = selection(search, with_rows=True, before_no=before_no)
        query = f"SELECT {_RUN_AND_SEAL} {found.text} ORDER BY {found.run_no} DESC LIMIT {{limit}}"
        return [_run(row) for row in self._named(query, {**found.values, "limit": limit})]

    def count_runs(self, search: RunSearch) -> int:
        """Return how many runs fit in all."""
        found = selection(search, with_rows=False)
        rows = self._named(f"SELECT count(*) {found.text}", found.values)
        return int(rows[0][0])

    def leaves_of(self, run_no: int, *, below: int | None = None) -> list[tuple[int, bytes]]:
        """Return (index, bytes) of every leaf that names the run, ascending, with an index under `below`."""
        if below is None:
            return self._all(
                "SELECT leaf_index, data FROM leaves WHERE run_no = ? ORDER BY leaf_index", run_no
            )
        return self._all(
            "SELECT leaf_index, data FROM leaves WHERE run_no = ? AND leaf_index < ? ORDER BY leaf_index",
            run_no,
            below,
        )

    def tenant_leaves(self, tenant_id: str, begin: int, end: int) -> list[tuple[int, bytes]]:
        """Return (index, bytes) of every leaf of a tenant from index `begin` to before `end`, ascending."""
        return self._all(
            "SELECT leaf_index, data FROM leaves LEFT JOIN runs USING (run_no)"
            " WHERE leaf_index >= ? AND leaf_index < ?"
            " AND coalesce(tenant_id, json_extract(CAST(data AS TEXT), '$.tenant_id')) = ?"
            " ORDER BY leaf_index",
            begin,
            end,
            tenant_id,
        )

    def content(self, content_no: int) -> bytes | None:
        """Return sealed content."""
        row = self._one("SELECT sealed FROM contents WHERE content_no = ?", content_no)
        return row[0] if row else None

    def uses(
        self, tenant_id: str, principal_id: str | None, first_day: str, last_day: str, *, limit: int
    ) -> list[UseRow]:
        """Return the sums of a tenant's days, oldest first; only one principal's when given."""
        where, values = "tenant_id = ? AND day BETWEEN ? AND ?", [tenant_id, first_day, last_day]
        if principal_id is not None:
            where, values = f"{where} AND principal_id = ?", [*values, principal_id]
        query = f"SELECT * FROM uses WHERE {where} ORDER BY day, principal_id, worker_id, model LIMIT ?"  # noqa: S608 - constants
        return [UseRow(*row) for row in self._all(query, *values, limit)]

    def _one(self, query: str, *values: object) -> Any:
        with store_errors():
            return self._connected.execute(query, values).fetchone()

    def _named(self, query: str, values: Mapping[str, object]) -> list[Any]:
        with store_errors():
            places = {name: f":{name}" for name in values}
            return self._connected.execute(query.format(**places), dict(values)).fetchall()

    def _all(self, query: str, *values: object) -> list[Any]:
        with store_errors():
            return self._connected.execute(query, values).fetchall()

    @property
    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("the database is not open")
        return self._connection


class SqliteReader(SqliteReads):
    """A read-only connection, for one thread at a time."""

    def __init__(self, file: Path) -> None:
        with store_errors():
            self._connection = sqlite3.connect(
                f"file:{file}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA query_only = ON")
            self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")

    def show_only(self, tenant_id: str) -> None:
        """SQLite knows no rights: whoever asks looks at whose a run is."""

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _owner(tenant_id: str, principal_id: str | None) -> tuple[str, list[object]]:
    if principal_id is None:
        return "runs.tenant_id = ?", [tenant_id]
    return "runs.tenant_id = ? AND runs.principal_id = ?", [tenant_id, principal_id]


def _run(row: Sequence[Any]) -> tuple[RunRow, SealRow | None]:
    seal = None if row[_RUN_WIDTH] is None else SealRow(*row[_RUN_WIDTH:])
    return RunRow(*row[:_RUN_WIDTH]), seal
