"""The way to a PostgreSQL database: every wait bounded, made anew when it breaks, discreet in its errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.abc import PQGen

from podium_audit.ports import StoreError
from podium_audit.stores.postgres.columns import take_columns

_MS_PER_S = 1_000
_LEAST_CONNECT_S = 2
_KEEPALIVE_S = 2
_KEEPALIVE_COUNT = 3

_GRACE_S = 1.0
"""How much longer than the server's own bound we wait for its answer: then it is gone, or frozen."""
_POLL_S = 0.1

_BY_INDEX = " -c enable_seqscan=off -c jit=off"
"""A plan that must read a whole table then looks costly enough to compile it, for tens of milliseconds."""

Connection = psycopg.Connection[tuple[Any, ...]]
RV = TypeVar("RV")


class _Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits for no answer longer than this; libpq itself would wait for ever."""

    wait_s = 60.0

    def wait(self, gen: PQGen[RV], interval: float = _POLL_S, timeout: float | None = None) -> RV:
        """Wait for an answer. Raises OperationalError when none comes."""
        return super().wait(gen, interval, self.wait_s if timeout is None else timeout)


class Session:
    """A connection in autocommit, for one thread at a time.

    `wait_s` bounds each statement, and each idle moment within a transaction: whoever is frozen for longer
    has lost its session and what it locked. `lock_s` bounds each lock. With a `role` it has only the rights
    of that. The password may be in a file, read whenever a connection is made. One that looks rows up
    `by_index` never reads a whole table where an index leads there: a statement's plan is kept, and one made
    while a table was small would read all of it for as long as nobody analyzes it.
    """

    def __init__(
        self,
        url: str,
        *,
        wait_s: float,
        lock_s: float | None = None,
        role: str = "",
        password_file: Path | None = None,
        by_index: bool = False,
    ) -> None:
        self._url = url
        self._wait_s = wait_s
        self._lock_s = wait_s if lock_s is None else lock_s
        self._role = role
        self._password_file = password_file
        self._by_index = by_index
        self._connection: Connection | None = None

    def another(self) -> "Session":
        """Return a session like this one, for another thread."""
        return Session(
            self._url,
            wait_s=self._wait_s,
            lock_s=self._lock_s,
            role=self._role,
            password_file=self._password_file,
            by_index=self._by_index,
        )

    @property
    def wait_s(self) -> float:
        """The longest wait for an answer, in seconds."""
        return self._wait_s

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """Lend the connection, made anew if it had broken. What goes wrong is raised as StoreError."""
        try:
            yield self._connected()
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
                self.close()  # whatever became of it, the next use begins afresh
            raise StoreError(told(error)) from None

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            wait_ms, lock_ms = (round(seconds * _MS_PER_S) for seconds in (self._wait_s, self._lock_s))
            connection = _Bounded.connect(
                self._url,
                autocommit=True,
                prepare_threshold=1,
                application_name="podium-audit",
                client_encoding="UTF8",
                connect_timeout=max(_LEAST_CONNECT_S, round(self._wait_s)),
                keepalives_idle=_KEEPALIVE_S,
                keepalives_interval=_KEEPALIVE_S,
                keepalives_count=_KEEPALIVE_COUNT,
                tcp_user_timeout=_KEEPALIVE_S * _KEEPALIVE_COUNT * _MS_PER_S,
                options=(
                    f"-c statement_timeout={wait_ms} -c lock_timeout={lock_ms}"
                    f" -c idle_in_transaction_session_timeout={wait_ms} -c timezone=UTC"
                    f"{_BY_INDEX if self._by_index else ''}"
                ),
                password=self._password(),
            )
            take_columns(connection)
            connection.wait_s = self._wait_s + _GRACE_S
            self._connection = connection
            if self._role:
                connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(self._role)))
        return self._connection

    def _password(self) -> str | None:
        if self._password_file is None:
            return None
        try:
            return self._password_file.read_text().strip()
        except OSError as error:
            raise StoreError(f"cannot read the database's password file: {error.strerror}") from None


def told(error: psycopg.Error) -> str:
    """Return what an operator needs to know. The server's details quote rows, so they are left out."""
    name = type(error).__name__
    if error.sqlstate is None:
        return f"{name}: {str(error).splitlines()[0] if str(error) else 'the connection is lost'}"
    constraint = error.diag.constraint_name
    return f"{name} (SQLSTATE {error.sqlstate})" + (f" of {constraint}" if constraint else "")
