"""A run in a task of its own, so that neither a slow reader nor a hang-up decides how it ends."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing

from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.events import AnswerDelta, RunEvent, StepEnded

_log = logging.getLogger(__name__)
_MAX_WAITING_EVENTS = 256
_MAX_WAITING_CHARS = 65_536

Watch = Callable[[RunEvent], None]


class LiveRun:
    """Holds what a run has told until its reader takes it. Cancelling it seals it `cancelled`.

    Once a few events, or their text, wait for a slow reader, so does the run, and its provider with it.
    `on_output` hears how many characters the run has made; what it raises stops the run.
    """

    def __init__(
        self,
        run_id: str,
        events: AsyncGenerator[RunEvent, None],
        watching: AbstractContextManager[Watch],
        on_end: Callable[[], None],
        on_output: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.run_id = run_id
        self._waiting: list[RunEvent] = []
        self._waiting_chars = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._error: PodiumError | None = None
        self._stopped_by: PodiumError | None = None
        self._on_end = on_end
        self._on_output = on_output
        self._task = asyncio.create_task(self._listen(events, watching), name=run_id)
        self._task.add_done_callback(self._ended)

    async def batch(self) -> list[RunEvent]:
        """Wait for news and return all there is; nothing after `nudge`.

        Raises PodiumError when the run ended without RunFinished: what stopped it, or INTERNAL for a defect.
        """
        if not self._waiting and not self._task.done():
            await self._changed.wait()
        self._changed.clear()
        events, self._waiting, self._waiting_chars = self._waiting, [], 0
        self._room.set()
        if not events and self._task.done():
            raise self._failure()
        return events

    def nudge(self) -> None:
        """Wake the reader although nothing happened."""
        self._changed.set()

    def cancel(self, error: PodiumError | None = None) -> None:
        """Stop the run; it seals itself in its own time. `error` is what a reader still there hears."""
        if self._stopped_by is None and not self._task.done():
            self._stopped_by = error or PodiumError(Code.CANCELLED, "the run was cancelled")
            self._task.cancel()

    async def _listen(
        self, events: AsyncGenerator[RunEvent, None], watching: AbstractContextManager[Watch]
    ) -> None:
        try:
            with watching as watch:
                async with aclosing(events):
                    async for event in events:
                        watch(event)
                        self._waiting.append(event)
                        self._weigh(event)
                        self._changed.set()
                        if (
                            len(self._waiting) >= _MAX_WAITING_EVENTS
                            or self._waiting_chars >= _MAX_WAITING_CHARS
                        ):
                            self._room.clear()
                            await self._room.wait()
        except PodiumError as error:
            self._error = error

    def _weigh(self, event: RunEvent) -> None:
        """Count an event's text, which is also kept until the run ends; `on_output` may raise PodiumError."""
        if isinstance(event, AnswerDelta):
            size = event.delta.size_chars
            self._waiting_chars += size
            self._on_output(size)
        elif isinstance(event, StepEnded):
            self._on_output(event.result.delta.size_chars)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (defect := task.exception()) is not None:
            _log.error("a run failed unexpectedly", exc_info=defect, extra={"run_id": self.run_id})
        self._changed.set()
        self._on_end()

    def _failure(self) -> PodiumError:
        ended = PodiumError(Code.INTERNAL, "the run ended without a result")
        return self._stopped_by or self._error or ended
