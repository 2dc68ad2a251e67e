"""How every SQLite file of audit is opened: write-ahead log, nothing in the file trusted to be code."""

import sqlite3
from pathlib import Path

_CACHE_KIB = 1_024


def connect(
    file: Path,
    *,
    busy_s: float,
    cache_kib: int = _CACHE_KIB,
    statements: int = 128,
    may_lose: bool = False,
    forgets: bool = False,
) -> sqlite3.Connection:
    """Return a connection in autocommit that waits `busy_s` for a lock; any one thread may use it.

    A commit is on disk when it returns, unless it `may_lose` the last ones. With `forgets`, what is deleted
    is overwritten. Raises sqlite3.Error.
    """
    connection = sqlite3.connect(
        file, timeout=busy_s, isolation_level=None, check_same_thread=False, cached_statements=statements
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'NORMAL' if may_lose else 'FULL'}")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        if forgets:
            connection.execute("PRAGMA secure_delete = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
