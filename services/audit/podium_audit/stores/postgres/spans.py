"""Spans in PostgreSQL, beside the log: any replica takes them and any shows them."""

from collections.abc import Sequence
from typing import Final, LiteralString

from podium_audit.rows.spans import SpanRow
from podium_audit.stores.postgres.connection import Session

TABLES: Final[tuple[LiteralString, ...]] = (
    """CREATE TABLE spans (
        trace_id text COLLATE "C" NOT NULL,
        span_id text COLLATE "C" NOT NULL,
        parent_span_id text NOT NULL,
        tenant_id text NOT NULL,
        run_id text NOT NULL,
        service text NOT NULL,
        name text NOT NULL,
        kind integer NOT NULL,
        started_ns bigint NOT NULL,
        ended_ns bigint NOT NULL,
        is_error boolean NOT NULL,
        attributes_json text NOT NULL,
        PRIMARY KEY (trace_id, tenant_id, span_id)
    )""",
    "CREATE INDEX spans_of_run ON spans (run_id) WHERE run_id != ''",
    "CREATE INDEX spans_by_end ON spans (ended_ns)",
)
_ADD: Final = (
    "INSERT INTO spans VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
_OF_RUN: Final = (
    "SELECT * FROM spans WHERE trace_id IN"
    " (SELECT trace_id FROM spans WHERE run_id = %(run)s AND run_id != '' AND tenant_id IN ('', %(tenant)s))"
    " AND tenant_id IN ('', %(tenant)s) ORDER BY started_ns, span_id LIMIT %(limit)s"
)
_SWEEP: Final = (
    "DELETE FROM spans WHERE ctid IN"
    " (SELECT ctid FROM spans WHERE ended_ns < %s LIMIT %s FOR UPDATE SKIP LOCKED)"
)
_NUL: Final = "\x00"


class PostgresSpans:
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

    def add(self, rows: Sequence[SpanRow]) -> None:
        """Keep spans; one that is kept already stays as it is."""
        with self._session.use() as connection, connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(_ADD, [_storable(row) for row in rows])

    def of_run(self, run_id: str, tenant_id: str, limit: int) -> list[SpanRow]:
        """Return spans of the run's traces, by start: Podium's own and the tenant's."""
        with self._session.use() as connection:
            found = connection.execute(
                _OF_RUN, {"run": run_id, "tenant": tenant_id, "limit": limit}
            ).fetchall()
        return [SpanRow(*row) for row in found]

    def sweep(self, before_ns: int, limit: int) -> int:
        """Delete up to `limit` spans that ended before a time; return how many."""
        with self._session.use() as connection:
            return connection.execute(_SWEEP, (before_ns, limit)).rowcount


def _storable(row: SpanRow) -> SpanRow:
    """Return the row without NUL, which PostgreSQL's text cannot hold."""
    return SpanRow._make(value.replace(_NUL, "") if isinstance(value, str) else value for value in row)
