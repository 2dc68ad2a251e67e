"""The log in PostgreSQL: replicas take turns on the locked head row, each batch one transaction.

Whoever holds the head and is frozen or cut off loses its session, and so the head: the server ends one that
is idle for `FENCED_AFTER_S`, and those who wait end one that holds it for `HELD_AT_MOST_S`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg.pq import TransactionStatus

from podium_audit.ports import (
    Batch,
    EventRow,
    Head,
    LeafRow,
    RunRow,
    StoreBusyError,
    StoreError,
)
from podium_audit.stores.postgres.connection import Session, told
from podium_audit.stores.postgres.log_reads import ROWS, PostgresReader, PostgresReads, runs_query
from podium_audit.stores.postgres.log_schema import READER, STEPS, WRITER
from podium_audit.stores.postgres.log_writes import write
from podium_audit.stores.postgres.migrations import migrate
from podium_audit.stores.postgres.shared_tables import make_shared_tables
from podium_audit.stores.postgres.shelves import PostgresShelves
from podium_audit.stores.standing import StandingReads

FENCED_AFTER_S: Final = 5.0
"""How long a writer may do nothing, or wait for one statement, while it holds the head."""
HELD_AT_MOST_S: Final = 7.0
"""How long a writer may hold the head at all while another waits for it."""

_MIGRATION_WAIT_S: Final = 60.0
_PROBE_BYTES: Final = 16_384
_FENCE: Final = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND xact_start < clock_timestamp() - %s * interval '1 s'
    AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'head'::regclass AND granted)
    AND pid NOT IN (SELECT pid FROM pg_locks WHERE NOT granted)"""
_TAKE_HEAD: Final = "BEGIN; SELECT size, epoch FROM head WHERE id = 1 FOR UPDATE"
_MOVE_HEAD: Final = (
    "UPDATE head SET size = CASE WHEN size = %s AND epoch = %s THEN %s::bigint END WHERE id = 1"
)
"""No size at all, which the column refuses, unless the head is where we found it."""


@dataclass(frozen=True, slots=True)
class Database:
    """Where the log's database is. `owner_url` names who makes its tables; else the service's own login does.

    `lock_s` is how long a writer waits for its turn.
    """

    url: str
    lock_s: float
    owner_url: str = ""
    password_file: Path | None = None

    def session(self, role: str) -> Session:
        """Return a session with the rights of a role."""
        return Session(
            self.url,
            wait_s=FENCED_AFTER_S,
            lock_s=self.lock_s,
            role=role,
            password_file=self.password_file,
            by_index=role == WRITER,
        )

    def owner(self) -> Session:
        """Return a session with the rights of the tables' owner."""
        own = self.password_file if not self.owner_url else None
        return Session(self.owner_url or self.url, wait_s=_MIGRATION_WAIT_S, password_file=own)

    def reader(self) -> PostgresReader:
        """Return a reader for one reading thread."""
        return PostgresReader(self.session(READER))


def migrate_log(database: Database) -> None:
    """Make or change the tables, as their owner; any number may do so at once. Raises StoreError."""
    owner = database.owner()
    try:
        migrate(owner, "log", STEPS, wait_s=_MIGRATION_WAIT_S)
        make_shared_tables(owner, wait_s=_MIGRATION_WAIT_S)
    finally:
        owner.close()


class PostgresStore(StandingReads, PostgresReads):
    """The writer's side of one replica, used by one thread."""

    is_shared = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = database.session(WRITER)
        self._shelves = PostgresShelves(database.owner())
        self._head: Head | None = None
        self._known_shelves: set[int] = set()
        self._is_migrated = False

    @property
    def shelves(self) -> PostgresShelves:
        """What makes and drops shelves."""
        return self._shelves

    def open(self) -> None:
        """Connect, or connect anew after an error. Makes an empty log where there was none from the start."""
        self._session.close()
        self._head = None
        if not self._is_migrated:
            migrate_log(self._database)
            self._is_migrated = True
        with self._session.use() as connection:
            row = connection.execute(
                "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            if row is None or row[0]:
                raise StoreError(f"the role {WRITER} may not be a superuser or bypass row-level security")
            version = connection.execute("SELECT version FROM podium_schema WHERE part = 'log'").fetchone()
        if version is None or version[0] != len(STEPS):
            raise StoreError("a newer program has changed the log's tables: update this one")

    def close(self) -> None:
        """Let go of everything."""
        self._session.close()
        self._shelves.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Within it, everything that is read was there at one moment."""
        with self._session.use() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            self.abandon()

    def head(self) -> Head:
        """Return where the log stands, without keeping anybody away."""
        return Head(*self._one("SELECT size, epoch FROM head WHERE id = 1"))

    def begin(self) -> Head:
        """Keep other writers away until `commit` or `abandon`. Raises StoreBusyError."""
        with self._session.use() as connection:
            try:
                # Not a pipeline: after one, PostgreSQL 15 does not time out a transaction that is idle.
                cursor = connection.execute(_TAKE_HEAD, prepare=False)
                cursor.nextset()
                row = cursor.fetchone()
            except psycopg.errors.LockNotAvailable as error:
                connection.execute("ROLLBACK")
                self._fence()
                raise StoreBusyError(f"another replica holds the log: {told(error)}") from None
        self._head = Head(*row) if row else None
        if self._head is None:
            raise StoreError("the log's head is missing")
        return self._head

    def _fence(self) -> None:
        """End the session of whoever has held the head for too long, however it is stuck."""
        session = self._database.session("")
        try:
            with session.use() as connection:
                connection.execute(_FENCE, (HELD_AT_MOST_S,))
        finally:
            session.close()

    def abandon(self) -> None:
        """End what `begin` began without a commit. Never fails."""
        self._head = None
        with suppress(StoreError), self._session.use() as connection:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")

    def commit(self, batch: Batch) -> None:
        """Make the whole batch durable, or raise StoreError and change nothing. Begins where nobody did."""
        head = self._head or self.begin()
        try:
            self._make_shelves(batch)
            size = _size_after(head, batch)
            with self._session.use() as connection:
                if connection.info.transaction_status != TransactionStatus.INTRANS:
                    raise StoreError("the session that held the log was lost")
                with connection.pipeline():
                    connection.execute(_MOVE_HEAD, (*head, size))
                    write(connection, batch)
                    connection.execute("COMMIT")
        finally:
            self.abandon()

    def rows(self, begin: int, end: int) -> list[LeafRow]:
        """Return the leaves from index `begin` to before `end`, as far as there are any."""
        return [LeafRow(*row) for row in self._all(ROWS, begin=begin, end=end)]

    def runs_by_no(self, run_nos: Sequence[int]) -> dict[int, RunRow]:
        """Return runs by their numbers."""
        if not run_nos:
            return {}
        rows = self._all(runs_query("run_no = ANY (%(run_nos)s::bigint[])"), run_nos=list(run_nos))
        return {row[0]: RunRow(*row) for row in rows}

    def probe(self) -> None:
        """Make a small commit that means nothing. Raises StoreError when that fails."""
        with self._session.use() as connection:
            connection.execute(
                "INSERT INTO probe VALUES (1, %s) ON CONFLICT (id) DO UPDATE SET filler = excluded.filler",
                (bytes(_PROBE_BYTES),),
            )

    def events(self, event_ids: Sequence[str]) -> dict[str, EventRow]:
        """Return what these event ids made, those that made anything."""
        if not event_ids:
            return {}
        rows = self._all(
            "SELECT event_id, digest, first_index, leaf_count FROM events WHERE event_id = ANY (%(ids)s)",
            ids=list(event_ids),
        )
        return {row[0]: EventRow(*row) for row in rows}

    def known_runs(self, run_ids: Sequence[str]) -> set[str]:
        """Return which of these runs exist."""
        if not run_ids:
            return set()
        rows = self._all("SELECT run_id FROM runs WHERE run_id = ANY (%(ids)s)", ids=list(run_ids))
        return {row[0] for row in rows}

    def open_runs(self) -> list[RunRow]:
        """Return the runs without an end."""
        rows = self._all(runs_query("run_no IN (SELECT run_no FROM open_runs) ORDER BY run_no"))
        return [RunRow(*row) for row in rows]

    def last_key_no(self) -> int:
        """Return the highest `key_no` any run has; 0 when there is none."""
        return int(self._one("SELECT coalesce(max(key_no), 0) FROM runs")[0])

    def _make_shelves(self, batch: Batch) -> None:
        wanted = {row.shelf for row in batch.leaves}
        for shelf in wanted - self._known_shelves:
            self._shelves.make(shelf)
            self._known_shelves.add(shelf)


def _size_after(head: Head, batch: Batch) -> int:
    """Return how many leaves the log will have. Raises StoreError unless they follow the stored ones."""
    if not batch.leaves:
        return head.size
    if batch.leaves[0].leaf_index != head.size:
        raise StoreError("these leaves do not follow the stored ones")
    return batch.leaves[-1].leaf_index + 1
