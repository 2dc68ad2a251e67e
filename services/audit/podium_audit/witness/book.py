"""What a witness remembers: of each log the largest tree that it cosigned. Kept durably before it answers."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium_audit.ports import StoreError
from podium_audit.tree.checkpoint import Checkpoint

_BUSY_S = 5.0


class WitnessBook:
    """One SQLite file, used by one thread at a time. Every method raises StoreError when it cannot."""

    def __init__(self, file: Path) -> None:
        with _errors():
            self._connection = sqlite3.connect(
                file, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS heads (origin TEXT PRIMARY KEY, size INTEGER NOT NULL,"
                " root BLOB NOT NULL, note TEXT NOT NULL) STRICT"
            )
        file.chmod(0o600)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def head(self, origin: str) -> tuple[int, bytes]:
        """Return size and root of the largest tree cosigned; (0, empty) for a log never seen."""
        with _errors():
            row = self._connection.execute(
                "SELECT size, root FROM heads WHERE origin = ?", (origin,)
            ).fetchone()
        return (int(row[0]), bytes(row[1])) if row else (0, b"")

    def advance(self, checkpoint: Checkpoint, note: str, old_size: int) -> bool:
        """Remember a tree unless another one than `old_size` is remembered; say whether it was done."""
        with _errors():
            done = self._connection.execute(
                "INSERT INTO heads VALUES (?, ?, ?, ?) ON CONFLICT (origin) DO UPDATE"
                " SET size = excluded.size, root = excluded.root, note = excluded.note WHERE size = ?",
                (checkpoint.origin, checkpoint.size, checkpoint.root, note, old_size),
            )
            return done.rowcount == 1

    def forget(self, origin: str) -> bool:
        """Forget a log, so that it may begin anew; say whether it was known."""
        with _errors():
            return self._connection.execute("DELETE FROM heads WHERE origin = ?", (origin,)).rowcount == 1


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OverflowError) as error:
        raise StoreError(f"{type(error).__name__}: {error}") from error
