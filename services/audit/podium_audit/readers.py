"""Readers beside the writer: a few threads, each with connections of its own that cannot write."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from podium_audit.ports import LogReader

T = TypeVar("T")

_CHUNK_BYTES = 256 * 1024


class KeyReader(Protocol):
    """Finds data keys of runs."""

    def get(self, key_no: int) -> bytes | None:
        """Return a key; None once it is erased. Raises StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """What one reading thread sees: committed rows, and the keys to content."""

    log: LogReader
    keys: KeyReader
    close: Callable[[], None]


class Readers:
    """Runs questions in reading threads. `open_view` makes a thread's view at its first question."""

    def __init__(self, open_view: Callable[[], View], *, threads: int = 2) -> None:
        self._open_view = open_view
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="log-reader")

    async def ask(self, question: Callable[[View], T]) -> T:
        """Return the answer. Raises what the question raises, StoreError among it."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._answer, question)

    async def stream(self, question: Callable[[View], Iterator[bytes]]) -> AsyncGenerator[bytes, None]:
        """Yield a long answer in chunks, over a view of its own. Raises as `ask` does."""
        loop = asyncio.get_running_loop()
        view = await loop.run_in_executor(self._pool, self._open_view)
        try:
            pieces = question(view)
            while chunk := await loop.run_in_executor(self._pool, _take, pieces):
                yield chunk
        finally:
            view.close()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _answer(self, question: Callable[[View], T]) -> T:
        view: View | None = getattr(self._local, "view", None)
        if view is None:
            view = self._local.view = self._open_view()
        return question(view)


def _take(pieces: Iterator[bytes]) -> bytes:
    """Return the next pieces, joined to a chunk worth sending; empty at the end."""
    chunk = bytearray()
    for piece in pieces:
        chunk += piece
        if len(chunk) >= _CHUNK_BYTES:
            break
    return bytes(chunk)
