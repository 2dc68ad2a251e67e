"""Reads the log from PostgreSQL: the writer sees everything, a reader one tenant's part."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString

from podium_audit.ports import CheckpointRow, RunRow, SealRow, UseRow
from podium_audit.rows.custody import ControlRow, ErasureRow, KeptRun, ReadRow
from podium_audit.rows.run_search import RunSearch
from podium_audit.stores.postgres.connection import Session
from podium_audit.stores.run_search_sql import selection

_RUN_COLUMNS: Final[LiteralString] = (
    "runs.run_no, runs.run_id, runs.tenant_id, runs.principal_id, runs.kind, runs.requested_model,"
    " runs.key_no, runs.tenant_budget_usd_micros, runs.opened_us, runs.key_budget_usd_micros"
)
_RUN_AND_SEAL: Final[LiteralString] = (
    f"{_RUN_COLUMNS}, seals.run_no, sealed_us, outcome, cost_usd_micros, attempt_count"
)
_RUNS: Final[LiteralString] = f"SELECT {_RUN_AND_SEAL} FROM runs LEFT JOIN seals USING (run_no)"  # noqa: S608 - constants
_RUN_WIDTH: Final = len(RunRow._fields)
_TILE_WIDTH: Final = 256
_ON_SHELVES: Final[LiteralString] = (
    # An event's leaves are on one shelf, and fewer than 256: that is how far back the first of them may be.
    "shelf = ANY (ARRAY(SELECT shelf FROM events"
    " WHERE first_index > %(begin)s::bigint - 256 AND first_index < %(end)s::bigint))"
    " AND leaf_index >= %(begin)s AND leaf_index < %(end)s"
)

ROWS: Final[LiteralString] = (
    f"SELECT leaf_index, run_no, data, tenant_id, shelf FROM leaves WHERE {_ON_SHELVES}"  # noqa: S608 - constants
    " ORDER BY leaf_index"
)
"""The query for whole leaf rows from `begin` to before `end`."""


class PostgresReads:
    """The queries of `LogReader` over a session that a subclass has."""

    _session: Session

    def checkpoint(self) -> CheckpointRow | None:
        """Return the newest checkpoint; None for an empty log."""
        row = self._one("SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1")
        return CheckpointRow(*row) if row else None

    def checkpoint_over(self, index: int) -> CheckpointRow | None:
        """Return the oldest checkpoint that covers leaf `index`."""
        row = self._one(
            "SELECT size, note FROM checkpoints WHERE size > %(index)s ORDER BY size LIMIT 1", index=index
        )
        return CheckpointRow(*row) if row else None

    def tile(self, level: int, index: int) -> bytes:
        """Return the hashes of a tile; empty when there are none. The newest leaves' are made here."""
        row = self._one(
            "SELECT hashes FROM tiles WHERE level = %(level)s AND tile_index = %(index)s",
            level=level,
            index=index,
        )
        if row is None and level == 0:
            begin = index * _TILE_WIDTH
            row = self._one(
                "SELECT podium_leaf_hashes(%(begin)s, %(end)s)", begin=begin, end=begin + _TILE_WIDTH
            )
        return bytes(row[0]) if row else b""

    def leaves(self, begin: int, end: int) -> list[bytes]:
        """Return the bytes of the leaves from index `begin` to before `end`, as far as there are any."""
        query: LiteralString = f"SELECT data FROM leaves WHERE {_ON_SHELVES} ORDER BY leaf_index"  # noqa: S608 - constants
        return [row[0] for row in self._all(query, begin=begin, end=end)]

    def history(self) -> list[tuple[int, bytes]]:
        """Return (index, bytes) of every leaf about the log itself, ascending."""
        return self._all("SELECT leaf_index, data FROM history ORDER BY leaf_index")

    def run(self, run_id: str) -> tuple[RunRow, SealRow | None] | None:
        """Return a run by its id, with its end when it is sealed."""
        row = self._one(f"{_RUNS} WHERE run_id = %(run_id)s", run_id=run_id)
        return _run(row) if row else None

    def find_runs(
        self, search: RunSearch, *, before_no: int | None, limit: int
    ) -> list[tuple[RunRow, SealRow | None]]:
        """Return the runs that fit, newest first."""
        found = selection(search, with_rows=True, before_no=before_no)
        query: LiteralString = (
            f"SELECT {_RUN_AND_SEAL} {found.text} ORDER BY {found.run_no} DESC LIMIT {{limit}}"
        )
        return [_run(row) for row in self._named(query, {**found.values, "limit": limit})]

    def count_runs(self, search: RunSearch) -> int:
        """Return how many runs fit in all."""
        found = selection(search, with_rows=False)
        return int(self._named(f"SELECT count(*) {found.text}", found.values)[0][0])

    def leaves_of(self, run_no: int, *, below: int | None = None) -> list[tuple[int, bytes]]:
        """Return (index, bytes) of every leaf that names the run, ascending, with an index under `below`."""
        query: LiteralString = (
            "SELECT leaf_index, data FROM leaves"
            " WHERE shelf = (SELECT shelf FROM runs WHERE run_no = %(run)s) AND run_no = %(run)s"
        )
        if below is not None:
            query += " AND leaf_index < %(below)s"
        return self._all(f"{query} ORDER BY leaf_index", run=run_no, below=below)

    def tenant_leaves(self, tenant_id: str, begin: int, end: int) -> list[tuple[int, bytes]]:
        """Return (index, bytes) of every leaf of a tenant from index `begin` to before `end`, ascending."""
        return self._all(
            "SELECT leaf_index, data FROM leaves WHERE tenant_id = %(tenant)s"
            " AND leaf_index >= %(begin)s AND leaf_index < %(end)s ORDER BY leaf_index",
            tenant=tenant_id,
            begin=begin,
            end=end,
        )

    def content(self, content_no: int) -> bytes | None:
        """Return sealed content."""
        rows = self._all(
            "SELECT sealed FROM contents WHERE content_no = %(content)s AND shelf ="
            " (SELECT shelf FROM events WHERE first_index <= %(content)s / 256"
            " ORDER BY first_index DESC LIMIT 1) ORDER BY chunk_no",
            content=content_no,
        )
        return b"".join([row[0] for row in rows]) if rows else None

    def uses(
        self, tenant_id: str, principal_id: str | None, first_day: str, last_day: str, *, limit: int
    ) -> list[UseRow]:
        """Return the sums of a tenant's days, oldest first; only one principal's when given."""
        where: LiteralString = "tenant_id = %(tenant)s AND day BETWEEN %(first)s AND %(last)s"
        if principal_id is not None:
            where += " AND principal_id = %(principal)s"
        rows = self._all(
            f"SELECT * FROM uses WHERE {where}"  # noqa: S608 - constants
            " ORDER BY day, principal_id, worker_id, model LIMIT %(limit)s",
            tenant=tenant_id,
            principal=principal_id,
            first=first_day,
            last=last_day,
            limit=limit,
        )
        return [UseRow(*row) for row in rows]

    def controls(self, kind: str, tenant_id: str) -> list[ControlRow]:
        """Return what stands of one kind for a tenant, by `item_id`."""
        rows = self._all(
            "SELECT tenant_id, kind, item_id, stands, body FROM controls"
            " WHERE tenant_id = %(tenant)s AND kind = %(kind)s AND stands ORDER BY item_id",
            tenant=tenant_id,
            kind=kind,
        )
        return [ControlRow(*row) for row in rows]

    def pending_erasures(self, limit: int) -> list[ErasureRow]:
        """Return erasures of any tenant that have begun and are not finished, the oldest first."""
        rows = self._all(
            "SELECT run_no, run_id, tenant_id, key_no, begun_index, erased_index FROM erasures"
            " WHERE erased_index IS NULL ORDER BY begun_index LIMIT %(limit)s",
            limit=limit,
        )
        return [ErasureRow(*row) for row in rows]

    def expired_runs(
        self, tenant_id: str, *, sealed_before_us: int, after_no: int, limit: int
    ) -> list[KeptRun]:
        """Return a tenant's runs that ended before then and whose erasure has not begun, by `run_no`."""
        rows = self._all(
            "SELECT run_no, run_id FROM runs JOIN seals USING (run_no)"
            " WHERE runs.tenant_id = %(tenant)s AND run_no > %(after)s AND sealed_us < %(before)s"
            " AND NOT EXISTS (SELECT FROM erasures WHERE erasures.run_no = runs.run_no)"
            " ORDER BY run_no LIMIT %(limit)s",
            tenant=tenant_id,
            after=after_no,
            before=sealed_before_us,
            limit=limit,
        )
        return [KeptRun(*row) for row in rows]

    def runs_of_subject(self, tenant_id: str, subject: str, limit: int) -> list[KeptRun]:
        """Return runs for a person whose erasure has not begun, by `run_no`."""
        rows = self._all(
            "SELECT run_no, run_id FROM subjects JOIN runs USING (run_no, tenant_id)"
            " WHERE tenant_id = %(tenant)s AND subject = %(subject)s"
            " AND NOT EXISTS (SELECT FROM erasures WHERE erasures.run_no = runs.run_no)"
            " ORDER BY run_no LIMIT %(limit)s",
            tenant=tenant_id,
            subject=subject,
            limit=limit,
        )
        return [KeptRun(*row) for row in rows]

    def reads(self, tenant_id: str, *, before_index: int | None, limit: int) -> list[ReadRow]:
        """Return who read what of a tenant, newest first."""
        where: LiteralString = "tenant_id = %(tenant)s"
        if before_index is not None:
            where += " AND leaf_index < %(before)s"
        rows = self._all(
            f"SELECT * FROM reads WHERE {where} ORDER BY leaf_index DESC LIMIT %(limit)s",  # noqa: S608 - constants
            tenant=tenant_id,
            before=before_index,
            limit=limit,
        )
        return [ReadRow(*row) for row in rows]

    def count_reads(self, tenant_id: str) -> int:
        """Return how many rows `reads` could show in all."""
        row = self._one("SELECT count(*) FROM reads WHERE tenant_id = %(tenant)s", tenant=tenant_id)
        return int(row[0]) if row else 0

    def _named(self, query: LiteralString, values: Mapping[str, object]) -> list[Any]:
        places: dict[str, LiteralString] = {name: f"%({name})s" for name in values}
        return self._all(query.format(**places), **values)

    def _one(self, query: LiteralString, **values: object) -> Any:
        rows = self._all(query, **values)
        return rows[0] if rows else None

    def _all(self, query: LiteralString, **values: object) -> list[Any]:
        with self._session.use() as connection:
            return connection.execute(query, values).fetchall()


class PostgresReader(PostgresReads):
    """Reads with the reader's rights, for one thread at a time: one tenant's rows, and what is nobody's."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tenant_id = ""

    def show_only(self, tenant_id: str) -> None:
        """See this tenant's rows from now on; with `EVERY_TENANT` all, with an empty name nobody's."""
        self._tenant_id = tenant_id

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _all(self, query: LiteralString, **values: object) -> list[Any]:
        # The tenant's name ends with the transaction: no other question ever meets it.
        with self._session.use() as connection, connection.pipeline(), connection.transaction():
            connection.execute("SELECT set_config('podium.tenant_id', %s, true)", (self._tenant_id,))
            return connection.execute(query, values).fetchall()


def _run(row: Sequence[Any]) -> tuple[RunRow, SealRow | None]:
    seal = None if row[_RUN_WIDTH] is None else SealRow(*row[_RUN_WIDTH:])
    return RunRow(*row[:_RUN_WIDTH]), seal


def runs_query(condition: LiteralString) -> LiteralString:
    """Return the query for run rows that fit a condition."""
    return f"SELECT {_RUN_COLUMNS} FROM runs WHERE {condition}"  # noqa: S608 - constants
