"""Pseudonyms in PostgreSQL, in the key database: replicas share them, and what is forgotten is so for all."""

from typing import Final

from podium_audit.stores.postgres.connection import Session
from podium_audit.stores.postgres.migrations import Steps, migrate

STEPS: Final[Steps] = (
    (
        "CREATE TABLE subject_key (id smallint PRIMARY KEY CHECK (id = 1), wrapped bytea NOT NULL)",
        # Deleted rows are swept from the pages at autovacuum's next round, not after a share of the table.
        """CREATE TABLE subjects (
            tenant_id text NOT NULL,
            digest bytea NOT NULL,
            pseudonym text NOT NULL,
            PRIMARY KEY (tenant_id, digest)
        ) WITH (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0)""",
    ),
)


class PostgresPseudonyms:
    """Used by one thread. Every method raises StoreError."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def open(self, new_wrapped_key: bytes) -> bytes:
        """Connect; return the wrapped key of the digests, which is this one where there is none yet."""
        migrate(self._session, "subjects", STEPS)
        with self._session.use() as connection:
            connection.execute(
                "INSERT INTO subject_key VALUES (1, %s) ON CONFLICT DO NOTHING", (new_wrapped_key,)
            )
            row = connection.execute("SELECT wrapped FROM subject_key").fetchone()
        return bytes(row[0]) if row else new_wrapped_key

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

    def find(self, tenant_id: str, digest: bytes) -> str | None:
        """Return the pseudonym under a digest."""
        with self._session.use() as connection:
            row = connection.execute(
                "SELECT pseudonym FROM subjects WHERE tenant_id = %s AND digest = %s", (tenant_id, digest)
            ).fetchone()
        return str(row[0]) if row else None

    def add(self, tenant_id: str, digest: bytes, pseudonym: str) -> str:
        """Keep a pseudonym durably and return it, or the one that somebody else kept first."""
        with self._session.use() as connection:
            connection.execute(
                "INSERT INTO subjects VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                (tenant_id, digest, pseudonym),
            )
        return self.find(tenant_id, digest) or pseudonym

    def forget(self, tenant_id: str, digest: bytes) -> None:
        """Delete a pseudonym; autovacuum overwrites its row soon after."""
        with self._session.use() as connection:
            connection.execute(
                "DELETE FROM subjects WHERE tenant_id = %s AND digest = %s", (tenant_id, digest)
            )
