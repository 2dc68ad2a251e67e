"""Leases that all replicas share, by the database's clock.

The table is not logged: after a crash of the database it is empty, and every open run gets a fresh lease.
"""

from collections.abc import Mapping, Sequence
from typing import Final, LiteralString

from podium_audit.stores.postgres.connection import Session

TABLES: Final[tuple[LiteralString, ...]] = (
    """CREATE UNLOGGED TABLE leases (
            run_id text PRIMARY KEY,
            ends_at timestamptz NOT NULL,
            taken_until timestamptz
        ) WITH (fillfactor = 50)""",
)

_ASKED: Final = "unnest(%(run_ids)s::text[], %(lengths_ms)s::bigint[]) AS asked (run_id, length_ms)"
_PUT: Final = f"""INSERT INTO leases
    SELECT run_id, clock_timestamp() + length_ms * interval '1 ms', NULL FROM {_ASKED} ORDER BY run_id
    ON CONFLICT (run_id) DO UPDATE
    SET ends_at = greatest(leases.ends_at, excluded.ends_at), taken_until = NULL"""  # noqa: S608 - constants
_PUT_MISSING: Final = """INSERT INTO leases
    SELECT run_id, clock_timestamp() + %(length_ms)s * interval '1 ms', NULL
    FROM unnest(%(run_ids)s::text[]) AS asked (run_id) ORDER BY run_id ON CONFLICT DO NOTHING"""
_LEFT: Final = """SELECT run_id, (extract(epoch FROM ends_at - clock_timestamp()) * 1000000000)::bigint
    FROM leases WHERE run_id = ANY(%s)"""
# A renewal that would add little is not written: each one leaves a dead row behind.
_RENEW: Final = """UPDATE leases SET ends_at = clock_timestamp() + %(length_ms)s * interval '1 ms'
    WHERE run_id = ANY(%(run_ids)s) AND taken_until IS NULL
    AND ends_at < clock_timestamp() + %(length_ms)s * 0.8 * interval '1 ms'"""
_STATE: Final = "SELECT run_id, taken_until IS NOT NULL FROM leases WHERE run_id = ANY(%s)"
_TAKE: Final = """UPDATE leases SET taken_until = clock_timestamp() + %(taken_ms)s * interval '1 ms'
    WHERE run_id IN (
        SELECT run_id FROM leases
        WHERE ends_at <= clock_timestamp() AND (taken_until IS NULL OR taken_until <= clock_timestamp())
        ORDER BY ends_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) RETURNING run_id"""


class PostgresLeases:
    """Used by one thread at a time. Every method raises StoreError."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def open(self) -> None:
        """Connect. The table is made with the log's."""
        with self._session.use():
            pass

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

    def put(self, lengths_ms: Mapping[str, int]) -> None:
        """Let runs have a lease of at least so many milliseconds from now."""
        with self._session.use() as connection:
            values = {"run_ids": list(lengths_ms), "lengths_ms": list(lengths_ms.values())}
            connection.execute(_PUT, values)

    def put_missing(self, run_ids: Sequence[str], length_ms: int) -> None:
        """Give a lease to those runs that have none."""
        with self._session.use() as connection:
            connection.execute(_PUT_MISSING, {"run_ids": list(run_ids), "length_ms": length_ms})

    def left_ns(self, run_ids: Sequence[str]) -> dict[str, int]:
        """Return how long the leases of these runs still last, of those that have one; below 0: lapsed."""
        with self._session.use() as connection:
            return dict(connection.execute(_LEFT, (list(run_ids),)).fetchall())

    def renew(self, run_ids: Sequence[str], length_ms: int) -> dict[str, bool]:
        """Renew leases that nobody has taken; return, of those that there are, whether they are taken."""
        with self._session.use() as connection:
            connection.execute(_RENEW, {"run_ids": list(run_ids), "length_ms": length_ms})
            return dict(connection.execute(_STATE, (list(run_ids),)).fetchall())

    def take_lapsed(self, limit: int, taken_ms: int) -> list[str]:
        """Take lapsed leases; another may take them again after `taken_ms`, should the taker be gone."""
        with self._session.use() as connection:
            rows = connection.execute(_TAKE, {"limit": limit, "taken_ms": taken_ms}).fetchall()
        return [run_id for (run_id,) in rows]

    def remove(self, run_ids: Sequence[str]) -> None:
        """Remove leases."""
        with self._session.use() as connection:
            connection.execute("DELETE FROM leases WHERE run_id = ANY(%s)", (list(run_ids),))
