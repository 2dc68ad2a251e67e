"""Data keys of runs, wrapped, in a PostgreSQL database of their own that all replicas share.

Numbers come from a sequence, so no two replicas ever hold the same one. Keys are made ahead, many per commit.
"""

import contextlib
import secrets
from collections import deque
from collections.abc import Sequence
from typing import Final

from podium_audit.key_ports import KeyWrapper
from podium_audit.ports import StoreError
from podium_audit.stores.postgres.columns import Column
from podium_audit.stores.postgres.connection import Session
from podium_audit.stores.postgres.migrations import Steps, migrate
from podium_audit.stores.run_keys import run_key_context

_KEY_BYTES: Final = 32

STEPS: Final[Steps] = (
    (
        "CREATE SEQUENCE run_key_no",
        # Deleted keys are swept from the pages at autovacuum's next round, not after a share of the table.
        """CREATE TABLE run_keys (key_no bigint PRIMARY KEY, wrapped bytea NOT NULL)
            WITH (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0)""",
    ),
)


class PostgresRunKeys:
    """A pool of unused keys in memory, and every used key by number. Used by one thread at a time."""

    def __init__(self, session: Session, wrapper: KeyWrapper, *, pool_size: int = 256) -> None:
        self._session = session
        self._wrapper = wrapper
        self._pool_size = pool_size
        self._pool: deque[tuple[int, bytes]] = deque()

    def open(self, last_used: int) -> None:
        """Get ready to hand out keys numbered above `last_used`. Raises StoreError.

        A store that never made the keys in use is a lost or an old one: it would number new keys like them.
        """
        with self._session.use() as connection:
            (is_log,) = connection.execute("SELECT to_regclass('leaves') IS NOT NULL").fetchone() or (False,)
        if is_log:
            raise StoreError(
                "the key store must be a database of its own: in the log's, backups would keep erased keys"
            )
        migrate(self._session, "keys", STEPS)
        with self._session.use() as connection:
            row = connection.execute("SELECT last_value, is_called FROM run_key_no").fetchone()
        last_made = row[0] if row and row[1] else 0
        if last_made < last_used:
            raise StoreError(
                f"the key database holds keys up to {last_made}, but the log uses keys up to {last_used}:"
                " restore the key store that belongs to this log"
            )

    def take(self) -> tuple[int, bytes]:
        """Return the number and the 32 bytes of a key nobody had before. Raises StoreError."""
        if not self._pool:
            self._fill()
        return self._pool.popleft()

    def get(self, key_no: int) -> bytes | None:
        """Return a key; None once it is erased. Raises StoreError."""
        return _get(self._session, self._wrapper, key_no)

    def erase(self, key_nos: Sequence[int]) -> None:
        """Destroy keys for good; any thread may ask. Raises StoreError.

        Autovacuum overwrites their rows soon after, and the write-ahead log's copies end with its segments.
        """
        session = self._session.another()
        try:
            with session.use() as connection:
                connection.execute("DELETE FROM run_keys WHERE key_no = ANY (%s)", (list(key_nos),))
        finally:
            session.close()

    def close(self) -> None:
        """Let go of everything; keys that were made ahead are given up, since nobody else may use them."""
        unused = [key_no for key_no, _ in self._pool]
        self._pool.clear()
        if unused:
            with contextlib.suppress(StoreError), self._session.use() as connection:
                connection.execute("DELETE FROM run_keys WHERE key_no = ANY(%s)", (unused,))
        self._session.close()

    def _fill(self) -> None:
        with self._session.use() as connection:
            rows = connection.execute(
                "SELECT nextval('run_key_no') FROM generate_series(1, %s)", (self._pool_size,)
            ).fetchall()
            fresh = [(int(key_no), secrets.token_bytes(_KEY_BYTES)) for (key_no,) in rows]
            wrapped = [self._wrapper.wrap(key, run_key_context(key_no)) for key_no, key in fresh]
            connection.execute(
                "INSERT INTO run_keys SELECT * FROM unnest(%s::bigint[], %s::bytea[])",
                (Column("bigint", [key_no for key_no, _ in fresh]), Column("bytea", wrapped)),
            )
        self._pool.extend(fresh)


class PostgresKeyReader:
    """Finds keys, for one thread at a time."""

    def __init__(self, session: Session, wrapper: KeyWrapper) -> None:
        self._session = session
        self._wrapper = wrapper

    def get(self, key_no: int) -> bytes | None:
        """Return a key; None once it is erased. Raises StoreError."""
        return _get(self._session, self._wrapper, key_no)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


def _get(session: Session, wrapper: KeyWrapper, key_no: int) -> bytes | None:
    with session.use() as connection:
        row = connection.execute("SELECT wrapped FROM run_keys WHERE key_no = %s", (key_no,)).fetchone()
    return wrapper.unwrap(row[0], run_key_context(key_no)) if row else None
