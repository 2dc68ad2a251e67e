"""Spans in an SQLite file of their own: unlike the log they may be lost, and are deleted by age."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from podium_audit.ports import StoreError
from podium_audit.rows.spans import SpanRow
from podium_audit.stores.sqlite_file import connect
from podium_audit.stores.sqlite_reader import store_errors

_SCHEMA_VERSION = 1
_COLUMNS = ", ".join(SpanRow._fields)
_PLACES = ", ".join("?" * len(SpanRow._fields))
_STATEMENTS = (
    """CREATE TABLE spans (
        trace_id TEXT NOT NULL,
        span_id TEXT NOT NULL,
        parent_span_id TEXT NOT NULL,
        tenant_id TEXT NOT NULL,
        run_id TEXT NOT NULL,
        service TEXT NOT NULL,
        name TEXT NOT NULL,
        kind INTEGER NOT NULL,
        started_ns INTEGER NOT NULL,
        ended_ns INTEGER NOT NULL,
        is_error INTEGER NOT NULL,
        attributes_json TEXT NOT NULL,
        PRIMARY KEY (trace_id, tenant_id, span_id)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX spans_of_run ON spans (run_id) WHERE run_id != ''",
    "CREATE INDEX spans_by_end ON spans (ended_ns)",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)


class SqliteSpans:
    """Used by one thread at a time. `busy_s` bounds how long it waits for a lock."""

    def __init__(self, file: Path, *, busy_s: float) -> None:
        self._file = file
        self._busy_s = busy_s
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        """Connect, or connect anew after an error. Makes an empty store where there is none."""
        self.close()
        with store_errors():
            self._connection = connection = connect(self._file, busy_s=self._busy_s, may_lose=True)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, _SCHEMA_VERSION):
                raise StoreError(f"the span store has schema version {version}, not {_SCHEMA_VERSION}")
            if version == 0:
                connection.execute("BEGIN IMMEDIATE")
                for statement in _STATEMENTS:
                    connection.execute(statement)
                connection.execute("COMMIT")

    def close(self) -> None:
        """Let go of everything."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def add(self, rows: Sequence[SpanRow]) -> None:
        """Keep spans; one that is kept already stays as it is."""
        connection = self._connected
        with store_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(f"INSERT OR IGNORE INTO spans VALUES ({_PLACES})", rows)  # noqa: S608 - placeholders
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def of_run(self, run_id: str, tenant_id: str, limit: int) -> list[SpanRow]:
        """Return spans of the run's traces, by start: Podium's own and the tenant's."""
        query = (
            f"SELECT {_COLUMNS} FROM spans WHERE trace_id IN"  # noqa: S608 - constants
            " (SELECT trace_id FROM spans WHERE run_id = ? AND run_id != '' AND tenant_id IN ('', ?))"
            " AND tenant_id IN ('', ?) ORDER BY started_ns, span_id LIMIT ?"
        )
        with store_errors():
            found = self._connected.execute(query, (run_id, tenant_id, tenant_id, limit)).fetchall()
        return [SpanRow(*row)._replace(is_error=bool(row[10])) for row in found]

    def sweep(self, before_ns: int, limit: int) -> int:
        """Delete up to `limit` spans that ended before a time; return how many."""
        with store_errors():
            return self._connected.execute(
                "DELETE FROM spans WHERE (trace_id, tenant_id, span_id) IN"
                " (SELECT trace_id, tenant_id, span_id FROM spans WHERE ended_ns < ? LIMIT ?)",
                (before_ns, limit),
            ).rowcount

    @property
    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("the span store is not open")
        return self._connection
