"""Shelves in PostgreSQL: made ahead as partitions, dropped whole when their time is over."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import psycopg
from psycopg import sql

from podium_audit.ports import StoreError
from podium_audit.records.shelves import next_shelf
from podium_audit.rows.custody import ShelfUse
from podium_audit.stores.postgres.connection import Connection, Session

_SPLIT: Final = ("leaves", "contents")
_TILE_WIDTH: Final = 256
_DELETED_AT_ONCE: Final = 10_000
_MADE_AHEAD: Final = 2
_LOCK_NO: Final = 0x53686C6600
"""The advisory lock around making and dropping partitions."""


_REFUSE: Final = " EXECUTE FUNCTION podium_append_only()"


class Shelf(NamedTuple):
    """A shelf as it stands. `dropped_us` is 0 while it is kept."""

    shelf: int
    dropped_us: int


class PostgresShelves:
    """Makes and drops partitions with the rights of the tables' owner. Used by one thread at a time."""

    def __init__(self, owner: Session) -> None:
        self._owner = owner

    def all(self) -> list[Shelf]:
        """Return every shelf there is or was, oldest first. Raises StoreError."""
        with self._owner.use() as connection:
            return [Shelf(*row) for row in connection.execute("SELECT * FROM shelves ORDER BY shelf")]

    def kept(self) -> list[int]:
        """Return the shelves that are not dropped, oldest first. Raises StoreError."""
        return [shelf.shelf for shelf in self.all() if not shelf.dropped_us]

    def use_of(self, shelf: int) -> ShelfUse:
        """Return what is on a shelf. Raises StoreError."""
        with self._owner.use() as connection:
            row = connection.execute(
                "SELECT ARRAY(SELECT DISTINCT tenant_id FROM seals WHERE shelf = %(shelf)s"
                " UNION SELECT DISTINCT tenant_id FROM leaves WHERE shelf = %(shelf)s AND run_no IS NULL"
                " AND tenant_id != ''),"
                " (SELECT coalesce(max(sealed_us), 0) FROM seals WHERE shelf = %(shelf)s),"
                " EXISTS (SELECT FROM runs LEFT JOIN erasures USING (run_no)"
                " WHERE shelf = %(shelf)s AND erased_index IS NULL)",
                {"shelf": shelf},
            ).fetchone()
        return ShelfUse(tuple(sorted(row[0])), row[1], row[2]) if row else ShelfUse((), 0, has_words=True)

    def has_any(self, shelf: int, run_ids: Sequence[str]) -> bool:
        """Whether one of these runs is on a shelf. Raises StoreError."""
        with self._owner.use() as connection:
            row = connection.execute(
                "SELECT EXISTS (SELECT FROM runs WHERE shelf = %s AND run_id = ANY (%s))",
                (shelf, list(run_ids)),
            ).fetchone()
        return row is None or bool(row[0])

    def make(self, shelf: int) -> None:
        """Make sure of a shelf and the next months' of its class. Replicas may at once. Raises StoreError."""
        with self._owner.use() as connection:
            for _ in range(1 + _MADE_AHEAD):
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_NO,))
                    found = connection.execute("SELECT FROM shelves WHERE shelf = %s", (shelf,)).fetchone()
                    if found is None:
                        for table in _SPLIT:
                            _make_partition(connection, table, shelf)
                        connection.execute("INSERT INTO shelves (shelf) VALUES (%s)", (shelf,))
                shelf = next_shelf(shelf)

    def drop(self, shelf: int, now_us: int) -> None:
        """Drop a shelf with everything on it; proofs of other leaves stay, since hashes do.

        A drop that was cut short is finished by the next. Raises StoreError: a run on it is open, or its last
        leaves have no tile yet, or the database cannot.
        """
        with self._owner.use() as connection:
            self._mark(connection, shelf, now_us)
            for table in _SPLIT:
                _drop_partition(connection, table, shelf)
            self._forget_facets(connection, shelf)
            for named in ("erasures", "subjects"):
                connection.execute(
                    sql.SQL(
                        "DELETE FROM {} WHERE run_no IN (SELECT run_no FROM runs WHERE shelf = %s)"
                    ).format(sql.Identifier(named)),
                    (shelf,),
                )
            for table in ("events", "seals", "runs"):
                statement = sql.SQL(
                    "DELETE FROM {0} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {0} WHERE shelf = %s LIMIT %s))"
                ).format(sql.Identifier(table))
                while connection.execute(statement, (shelf, _DELETED_AT_ONCE)).rowcount:
                    pass

    def close(self) -> None:
        """Let go of the connection."""
        self._owner.close()

    @staticmethod
    def _forget_facets(connection: Connection, shelf: int) -> None:
        """Let nobody find runs that are gone."""
        statement = (
            "DELETE FROM run_facets WHERE ctid = ANY (ARRAY(SELECT run_facets.ctid FROM run_facets"
            " JOIN runs USING (run_no) WHERE shelf = %s LIMIT %s))"
        )
        while connection.execute(statement, (shelf, _DELETED_AT_ONCE)).rowcount:
            pass

    @staticmethod
    def _mark(connection: Connection, shelf: int, now_us: int) -> None:
        with connection.transaction():
            # Nobody writes between the checks and the mark, and nobody writes to a shelf that is marked.
            connection.execute("SELECT FROM head FOR UPDATE")
            found = connection.execute("SELECT dropped_us FROM shelves WHERE shelf = %s", (shelf,)).fetchone()
            if found is None:
                raise StoreError(f"there is no shelf {shelf}")
            if found[0]:
                return
            row = connection.execute(
                "SELECT EXISTS (SELECT FROM open_runs JOIN runs USING (run_no) WHERE shelf = %(shelf)s),"
                " (SELECT max(leaf_index) FROM leaves WHERE shelf = %(shelf)s), (SELECT size FROM head)",
                {"shelf": shelf},
            ).fetchone()
            is_open, last, size = row or (True, None, 0)
            if is_open:
                raise StoreError(f"a run on shelf {shelf} is open: seal it first")
            if last is not None and last >= size - size % _TILE_WIDTH:
                raise StoreError(f"shelf {shelf} has leaves among the log's newest {_TILE_WIDTH}: try later")
            connection.execute("UPDATE shelves SET dropped_us = %s WHERE shelf = %s", (now_us, shelf))


def _make_partition(connection: Connection, table: str, shelf: int) -> None:
    """Attach a new partition: unlike creating one in place, that lets everybody read and write meanwhile."""
    names = {"table": sql.Identifier(table), "part": sql.Identifier(f"{table}_{shelf}")}
    for statement in (
        "CREATE TABLE {part} (LIKE {table} INCLUDING DEFAULTS INCLUDING STORAGE)",
        "ALTER TABLE {part} ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE {part} FORCE ROW LEVEL SECURITY",
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {part} FOR EACH ROW" + _REFUSE,
        "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {part} FOR EACH STATEMENT" + _REFUSE,
        "ALTER TABLE {part} ENABLE ALWAYS TRIGGER append_only",
        "ALTER TABLE {part} ENABLE ALWAYS TRIGGER no_truncate",
    ):
        connection.execute(sql.SQL(statement).format(**names))
    attach = sql.SQL("ALTER TABLE {table} ATTACH PARTITION {part} FOR VALUES IN ({shelf})")
    connection.execute(attach.format(**names, shelf=sql.Literal(shelf)))


def _drop_partition(connection: Connection, table: str, shelf: int) -> None:
    names = {"table": sql.Identifier(table), "part": sql.Identifier(f"{table}_{shelf}")}
    state = connection.execute(
        "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = to_regclass(%s)", (f"{table}_{shelf}",)
    ).fetchone()
    if state is not None:
        how = "FINALIZE" if state[0] else "CONCURRENTLY"
        with suppress(psycopg.errors.UndefinedTable):
            detach = sql.SQL("ALTER TABLE {table} DETACH PARTITION {part} " + how)
            connection.execute(detach.format(**names))
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {part}").format(**names))
