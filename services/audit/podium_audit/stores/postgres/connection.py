"""The way to a PostgreSQL database: every wait bounded, made anew when it breaks, discreet in its errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from podium_audit.ports import StoreError

_MS_PER_S = 1_000
_LEAST_CONNECT_S = 2
_KEEPALIVE_S = 2
_KEEPALIVE_COUNT = 3

Connection = psycopg.Connection[tuple[Any, ...]]


class Session:
    """A connection in autocommit, for one thread at a time. `wait_s` bounds each statement and each lock."""

    def __init__(self, url: str, *, wait_s: float) -> None:
        self._url = url
        self._wait_s = wait_s
        self._connection: Connection | None = None

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
            raise StoreError(_told(error)) from None

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            wait_ms = round(self._wait_s * _MS_PER_S)
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,
                application_name="podium-audit",
                connect_timeout=max(_LEAST_CONNECT_S, round(self._wait_s)),
                keepalives_idle=_KEEPALIVE_S,
                keepalives_interval=_KEEPALIVE_S,
                keepalives_count=_KEEPALIVE_COUNT,
                tcp_user_timeout=_KEEPALIVE_S * _KEEPALIVE_COUNT * _MS_PER_S,
                options=(
                    f"-c statement_timeout={wait_ms} -c lock_timeout={wait_ms}"
                    f" -c idle_in_transaction_session_timeout={wait_ms} -c timezone=UTC"
                ),
            )
        return self._connection


def _told(error: psycopg.Error) -> str:
    """Return what an operator needs to know. The server's details quote rows, so they are left out."""
    name = type(error).__name__
    if error.sqlstate is None:
        return f"{name}: {str(error).splitlines()[0] if str(error) else 'the connection is lost'}"
    constraint = error.diag.constraint_name
    return f"{name} (SQLSTATE {error.sqlstate})" + (f" of {constraint}" if constraint else "")
