"""Brings a database's tables to the version this program knows, whichever replica comes first."""

import time
from collections.abc import Sequence
from typing import LiteralString

from podium_audit.ports import StoreError
from podium_audit.stores.postgres.connection import Session

_LOCK_NO = 0x506F6469756D
"""The advisory lock of every Podium migration in a database: "Podium" as a number."""
_POLL_S = 0.05
_WAIT_S = 30.0

Steps = Sequence[Sequence[LiteralString]]
"""The statements that lead from one version to the next, from an empty database on."""


def migrate(session: Session, part: str, steps: Steps, *, wait_s: float = _WAIT_S) -> None:
    """Take the steps that a part of the database still lacks, each in a transaction of its own.

    Any number of replicas may call it at once; one that is killed leaves whole steps behind. Raises
    StoreError: the database is of a newer program, or another replica migrates it for longer than `wait_s`.
    """
    with session.use() as connection:
        _lock(session, wait_s)
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS podium_schema (part text PRIMARY KEY, version integer NOT NULL)"
            )
            row = connection.execute("SELECT version FROM podium_schema WHERE part = %s", (part,)).fetchone()
            version = row[0] if row else 0
            if version > len(steps):
                raise StoreError(
                    f"the {part} tables have schema version {version}, this program knows {len(steps)}"
                )
            for number, statements in enumerate(steps[version:], version + 1):
                with connection.transaction():
                    for statement in statements:
                        connection.execute(statement)
                    connection.execute(
                        "INSERT INTO podium_schema VALUES (%s, %s)"
                        " ON CONFLICT (part) DO UPDATE SET version = excluded.version",
                        (part, number),
                    )
        finally:
            if not connection.closed:
                connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK_NO,))


def _lock(session: Session, wait_s: float) -> None:
    """Take the lock of this session; it is asked for again and again, so that the wait is ours to bound."""
    deadline_s = time.monotonic() + wait_s
    with session.use() as connection:
        while True:
            row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK_NO,)).fetchone()
            if row is not None and row[0]:
                return
            if time.monotonic() > deadline_s:
                raise StoreError("another replica has been preparing the database for too long: try again")
            time.sleep(_POLL_S)
