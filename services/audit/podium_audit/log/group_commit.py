"""Group commit: one thread owns the log; what arrives while it commits makes up its next batch.

Callers wait for their commit, never longer than `commit_wait_s`. When a commit fails everyone of the batch
is refused, the log is read back from the store, and the next batch tries again: no restart is needed.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from podium_audit.log.log import Log
from podium_audit.ports import StoreBusyError, StoreError
from podium_audit.records.commands import Applied, Command, EndAttempt
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError

_NS_PER_S = 1_000_000_000
_LOOK_EVERY_S = 1.0
_RETRY_AFTER_S = 1.0
_PATIENCE_S = 0.004

_log = logging.getLogger(__name__)


class Metrics(Protocol):
    """Hears how the log does."""

    def committed(self, *, leaves: int, seconds: float) -> None:
        """One commit succeeded."""
        ...

    def refused(self) -> None:
        """One commit failed, or an operation found no room in the queue or waited in vain."""
        ...


@dataclass(slots=True, eq=False)
class _Item:
    """One command on its way, and what became of it. Leaving its `with` block keeps what was raised."""

    command: Command
    future: "asyncio.Future[Applied]"
    deadline_ns: int
    applied: Applied = field(default_factory=Applied)
    error: Exception | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, StoreError):
            _log.error("the store could not answer", exc_info=error)
            self.error = unavailable()
        elif isinstance(error, Exception):
            self.error = error
        return isinstance(error, Exception)


class GroupCommit:
    """The only way to write. `start` it before use; `submit` from the event loop that started it."""

    def __init__(
        self,
        log: Log,
        clock: Clock,
        metrics: Metrics,
        *,
        queue_bound: int,
        batch_limit: int,
        commit_wait_s: float,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._log = log
        self._clock = clock
        self._metrics = metrics
        self._queue_bound = queue_bound
        self._batch_limit = batch_limit
        self._commit_wait_s = commit_wait_s
        self._patience_s = patience_s
        self._queue: deque[_Item] = deque()
        self._wake = threading.Condition()
        self._is_stopping = False
        self._is_healthy = True
        self._thread = threading.Thread(target=self._work, name="log-writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()

    @property
    def is_healthy(self) -> bool:
        """Whether the last commit, or a probe after it, succeeded."""
        return self._is_healthy and not self._ended.is_set()

    @property
    def is_shared(self) -> bool:
        """Whether other processes write the same log."""
        return self._log.is_shared

    async def start(self) -> None:
        """Read the log in and begin to write. Raises StoreError when the log cannot be used."""
        self._loop = asyncio.get_running_loop()
        self._log.load()
        self._thread.start()

    async def stop(self) -> None:
        """Take no more commands, commit what waits, and end the thread."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        await asyncio.to_thread(self._thread.join)

    async def until_ended(self) -> None:
        """Return when the writer thread has ended, asked or not."""
        await self._ended.wait()

    async def submit(self, command: Command) -> Applied:
        """Return once the command is durable.

        Raises PodiumError: what the log refuses it for, or AUDIT_UNAVAILABLE when it cannot be committed
        within the wait (it may have been committed all the same: repeat it with the same event id).
        """
        loop = asyncio.get_running_loop()
        deadline_ns = self._clock.monotonic_ns() + int(self._commit_wait_s * _NS_PER_S)
        item = _Item(command, loop.create_future(), deadline_ns)
        with self._wake:
            if self._is_stopping or self._ended.is_set() or len(self._queue) >= self._queue_bound:
                self._metrics.refused()
                raise unavailable()
            self._queue.append(item)
            self._wake.notify()
        timer = loop.call_later(self._commit_wait_s, self._expire, item)
        try:
            return await item.future
        finally:
            timer.cancel()

    def _expire(self, item: _Item) -> None:
        """Refuse a command that has waited long enough. A disk that hangs fails no commit: this tells."""
        if not item.future.done():
            self._metrics.refused()
            item.future.set_exception(unavailable())

    def _work(self) -> None:
        try:
            while (batch := self._next_batch()) is not None:
                self._perform(batch)
        finally:
            self._end()

    def _next_batch(self) -> list[_Item] | None:
        """Wait for commands; an empty batch asks for a look at the store, None ends the thread."""
        with self._wake:
            while not self._queue:
                if self._is_stopping:
                    return None
                may_rest = self._is_healthy and not self._log.is_shared
                if not self._wake.wait(None if may_rest else _LOOK_EVERY_S):
                    return []
            if self._is_healthy and not self._is_hurried():
                # The seal, or the next step's permit, is a moment behind: let them share this commit.
                self._wake.wait_for(self._is_hurried, self._patience_s)
            count = min(len(self._queue), self._batch_limit)
            return [self._queue.popleft() for _ in range(count)]

    def _is_hurried(self) -> bool:
        """Whether somebody waits for this commit: nothing that a client sees waits for an attempt's end."""
        return self._is_stopping or any(not isinstance(item.command, EndAttempt) for item in self._queue)

    def _perform(self, batch: Sequence[_Item]) -> None:
        started_ns = self._clock.monotonic_ns()
        live = [item for item in batch if item.deadline_ns > started_ns and not item.future.done()]
        try:
            leaf_count = self._commit(live)
        except StoreBusyError as error:
            self._refuse(live, error)
        except StoreError as error:
            self._log.roll_back()
            self._refuse(live, error)
        else:
            self._is_healthy = True
            if leaf_count:
                seconds = (self._clock.monotonic_ns() - started_ns) / _NS_PER_S
                self._metrics.committed(leaves=leaf_count, seconds=seconds)
        if live and self._loop is not None:
            self._loop.call_soon_threadsafe(_answer, live)

    def _refuse(self, items: Sequence[_Item], error: StoreError) -> None:
        if self._is_healthy:
            _log.error("cannot commit: refusing everything until it works again", exc_info=error)
        self._is_healthy = False
        self._metrics.refused()
        for item in items:
            item.error = unavailable()

    def _commit(self, items: Sequence[_Item]) -> int:
        self._log.load()
        if not items:
            if not self._is_healthy:
                self._log.probe()
            self._log.refresh()
            return 0
        commands = [item.command for item in items]
        self._log.prepare(commands)
        self._log.begin()
        self._log.prefetch(commands)
        for item in items:
            with item:
                item.applied = self._log.apply(item.command)
        return self._log.commit()

    def _end(self) -> None:
        with self._wake:
            self._is_stopping = True
            left = list(self._queue)
            self._queue.clear()
        for item in left:
            item.error = unavailable()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_answer, left)
            self._loop.call_soon_threadsafe(self._ended.set)


def unavailable() -> PodiumError:
    """Return the refusal for everything that cannot be made durable now."""
    return PodiumError(
        Code.AUDIT_UNAVAILABLE,
        "the log cannot commit now, so nothing was permitted: try again",
        retry_after_s=_RETRY_AFTER_S,
    )


def _answer(items: Sequence[_Item]) -> None:
    for item in items:
        if item.future.done():
            continue
        if item.error is not None:
            item.future.set_exception(item.error)
        else:
            item.future.set_result(item.applied)
