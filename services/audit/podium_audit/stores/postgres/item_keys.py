"""Keys of conversation items, wrapped, in the key database: what is deleted here can be read nowhere else.

An item and its key are in two databases, which no transaction joins. A key is made before its item and is
*unsettled* until the item is known to be stored; what a crash leaves unsettled is looked into later.
"""

from collections.abc import Sequence
from typing import Final

from podium_audit.stores.postgres.connection import Session
from podium_audit.stores.postgres.migrations import Steps, migrate

STEPS: Final[Steps] = (
    (
        """CREATE TABLE item_keys (
            key_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            is_settled boolean NOT NULL DEFAULT false,
            wrapped bytea NOT NULL
        ) WITH (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0)""",
        "CREATE INDEX item_keys_unsettled ON item_keys (made_at) WHERE NOT is_settled",
    ),
)

_DOUBTFUL_AFTER_S: Final = 60


class PostgresItemKeys:
    """Used by one thread at a time. Every method raises StoreError."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def open(self) -> None:
        """Make the table where there is none."""
        migrate(self._session, "item_keys", STEPS)

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

    def add(self, wrapped: bytes) -> int:
        """Keep a key, unsettled; return its number, which no other key ever has."""
        with self._session.use() as connection:
            query = "INSERT INTO item_keys (wrapped) VALUES (%s) RETURNING key_no"
            ((key_no,),) = connection.execute(query, (wrapped,)).fetchall()
        return int(key_no)

    def get(self, key_nos: Sequence[int]) -> dict[int, bytes]:
        """Return the wrapped keys that there are."""
        with self._session.use() as connection:
            query = "SELECT key_no, wrapped FROM item_keys WHERE key_no = ANY(%s)"
            return dict(connection.execute(query, (list(key_nos),)).fetchall())

    def settle(self, key_nos: Sequence[int]) -> int:
        """Note that the items of these keys are stored; return how many of the keys there are."""
        with self._session.use() as connection:
            query = "UPDATE item_keys SET is_settled = true WHERE key_no = ANY(%s)"
            return connection.execute(query, (list(key_nos),)).rowcount

    def delete(self, key_nos: Sequence[int]) -> int:
        """Destroy keys for good; return how many there were."""
        with self._session.use() as connection:
            query = "DELETE FROM item_keys WHERE key_no = ANY(%s)"
            return connection.execute(query, (list(key_nos),)).rowcount

    def doubtful(self, limit: int) -> list[int]:
        """Return keys that have not been settled for longer than any replica takes to store an item."""
        with self._session.use() as connection:
            rows = connection.execute(
                "SELECT key_no FROM item_keys"
                " WHERE NOT is_settled AND made_at < clock_timestamp() - %s * interval '1 s'"
                " ORDER BY made_at LIMIT %s",
                (_DOUBTFUL_AFTER_S, limit),
            ).fetchall()
        return [key_no for (key_no,) in rows]
