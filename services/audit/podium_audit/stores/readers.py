"""Readers beside the writer: a few threads, each with connections of its own that cannot write."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from podium_audit.ports import LogReader

T = TypeVar("T")

_CHUNK_BYTES = 256 * 1024


EVERY_TENANT: Final = "*"
"""In place of a tenant's id, for whoever may read all of them."""


class TenantReader(LogReader, Protocol):
    """A reader that can be held to one tenant's rows, where the database can do that."""

    def show_only(self, tenant_id: str) -> None:
        """See this tenant's rows from now on; with `EVERY_TENANT` all, with an empty name nobody's."""
        ...


class KeyReader(Protocol):
    """Finds data keys of runs."""

    def get(self, key_no: int) -> bytes | None:
        """Return a key; None once it is erased. Raises StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """What one reading thread sees: committed rows, and the keys to content."""

    log: TenantReader
    keys: KeyReader
    close: Callable[[], None]


class Readers:
    """Runs questions in reading threads. `open_view` makes a thread's view at its first question."""

    def __init__(self, open_view: Callable[[], View], *, threads: int = 2) -> None:
        self._open_view = open_view
        self._local = threading.local()
        self._views: list[View] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="log-reader")

    async def ask(self, question: Callable[[View], T], *, tenant_id: str) -> T:
        """Return the answer, from one tenant's rows (`EVERY_TENANT`: all; empty: what is nobody's).

        Raises what the question raises, StoreError among it.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._answer, question, tenant_id)

    async def stream(
        self, question: Callable[[View], Iterator[bytes]], *, tenant_id: str
    ) -> AsyncGenerator[bytes, None]:
        """Yield a long answer in chunks, over a view of its own. Reads and raises as `ask` does."""
        loop = asyncio.get_running_loop()
        view = await loop.run_in_executor(self._pool, self._open_view)
        view.log.show_only(tenant_id)
        try:
            pieces = question(view)
            while chunk := await loop.run_in_executor(self._pool, _take, pieces):
                yield chunk
        finally:
            view.close()

    def close(self) -> None:
        """End the threads, and close their views."""
        self._pool.shutdown(cancel_futures=True)
        for view in self._views:
            view.close()

    def _answer(self, question: Callable[[View], T], tenant_id: str) -> T:
        view: View | None = getattr(self._local, "view", None)
        if view is None:
            view = self._local.view = self._open_view()
            self._views.append(view)
        view.log.show_only(tenant_id)
        return question(view)


def _take(pieces: Iterator[bytes]) -> bytes:
    """Return the next pieces, joined to a chunk worth sending; empty at the end."""
    chunk = bytearray()
    for piece in pieces:
        chunk += piece
        if len(chunk) >= _CHUNK_BYTES:
            break
    return bytes(chunk)
