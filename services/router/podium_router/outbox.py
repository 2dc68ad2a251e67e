"""Carries one attempt's events from the task that makes them to the RPC that sends them.

Deltas are batched, since a gRPC message costs ten times the parsing of a delta: the first goes at once,
then what has gathered goes after a short while or a certain size. Bounded: a slow reader slows the
provider down. All boxes send at the same ticks of the clock, so that what they send can share a message.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import Usage
from podium_router.calls import Delta

_FULL_AT_BATCHES = 64
_ENTRY_SIZE = 64
"""What a tool call or a token's log-probabilities count, in characters."""


@dataclass(frozen=True, slots=True)
class Permitted:
    """The log holds the attempt."""

    leaf_index: int


@dataclass(frozen=True, slots=True)
class Completed:
    """The attempt reached its end. `message` is the whole output of a call that was not streamed.

    `replay_message` is the assistant message to put back, where it must hold more than text and calls.
    """

    finish_reason: str
    usage: Usage
    cost_usd_micros: int
    latency_us: int
    first_delta_us: int
    provider_response_id: str
    served_model: str
    message: Delta
    replay_message: bytes = b""
    vectors: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When gathered deltas are sent: at the next multiple of `interval_s`, or at `size` characters."""

    interval_s: float = 0.025
    size: int = 1_024


class Outbox:
    """One writer, one reader.

    The reader calls `take` until it returns Completed or raises, or it is told by `listen` and `poll`s.
    """

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._permitted: Permitted | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._tool_calls: list[dict[str, object]] = []
        self._refusal: list[str] = []
        self._logprobs: list[dict[str, object]] = []
        self._size = 0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._end: Completed | BaseException | None = None
        self._is_ready = False
        self._is_listened_to = False
        self._signal = asyncio.Event()
        self._on_ready: Callable[[], None] = self._signal.set
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_finished(self) -> bool:
        """Whether the writer has said how the attempt ended."""
        return self._end is not None

    def permit(self, leaf_index: int) -> None:
        """Tell the reader that the permit is there: at once, or, to one that listens, with what comes next.

        Nobody acts on it while the attempt goes on, so that at the next tick is early enough.
        """
        self._permitted = Permitted(leaf_index)
        if self._is_listened_to:
            self._arm(_next_tick(self._loop.time(), self._limits.interval_s))
        else:
            self._wake()

    def put(self, delta: Delta) -> None:
        """Add output; it is sent alone, or with what comes in the next moments."""
        if delta.text:
            self._text.append(delta.text)
        if delta.reasoning:
            self._reasoning.append(delta.reasoning)
        if delta.tool_calls:
            self._tool_calls.extend(delta.tool_calls)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        self._logprobs.extend(delta.logprobs)
        self._size += len(delta.text) + len(delta.reasoning) + len(delta.refusal)
        self._size += _ENTRY_SIZE * (len(delta.tool_calls) + len(delta.logprobs))
        if self._size >= self._limits.size:
            self._wake()
            if self._size >= self._limits.size * _FULL_AT_BATCHES:
                self._room.clear()
        elif not self._is_ready:
            if self._loop.time() >= self._due:
                self._wake()
            else:
                self._arm(self._due)

    @property
    def has_room(self) -> bool:
        """Whether more may be put."""
        return self._room.is_set()

    async def room(self) -> None:
        """Wait until the reader has taken enough that more may be put."""
        await self._room.wait()

    def close(self, writer: "asyncio.Task[None]") -> None:
        """End the box when its writer is gone without a word: by a defect, or because it was stopped."""
        if self._end is None:
            error = None if writer.cancelled() else writer.exception()
            self.finish(error or _stopping())

    def finish(self, end: Completed | BaseException) -> None:
        """Say how the attempt ended. Deltas that were put before are still delivered."""
        if self._end is None:
            self._end = end
            self._room.set()
            self._wake()

    def listen(self, on_ready: Callable[[], None]) -> None:
        """Call `on_ready` each time that `poll` may have something new, instead of waking `take`."""
        self._is_listened_to = True
        self._on_ready = on_ready

    async def take(self) -> Permitted | Delta | Completed:
        """Return the next event. Raises the error that ended the attempt."""
        while True:
            self._signal.clear()
            event = self.poll()
            if isinstance(event, BaseException):
                raise event
            if event is not None:
                return event
            await self._signal.wait()

    def poll(self) -> Permitted | Delta | Completed | BaseException | None:
        """Return the next event, or the error that ended the attempt; None while there is nothing new."""
        if not self._is_ready:
            return None
        if self._permitted is not None:
            permitted, self._permitted = self._permitted, None
            return permitted
        if self._size:
            return self._take_batch()
        if self._end is None:
            self._is_ready = False
        return self._end

    def _arm(self, when_s: float) -> None:
        if self._timer is None:
            self._timer = self._loop.call_at(when_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._wake()

    def _wake(self) -> None:
        self._is_ready = True
        self._on_ready()

    def _take_batch(self) -> Delta:
        batch = Delta(
            "".join(self._text),
            "".join(self._reasoning),
            tuple(self._tool_calls),
            "".join(self._refusal),
            tuple(self._logprobs),
        )
        self._refusal.clear()
        self._logprobs.clear()
        self._text.clear()
        self._reasoning.clear()
        self._tool_calls.clear()
        self._size = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = _next_tick(self._loop.time(), self._limits.interval_s)
        if self._end is None:
            self._is_ready = False
        self._room.set()
        return batch


def _next_tick(now_s: float, interval_s: float) -> float:
    return (math.floor(now_s / interval_s) + 1) * interval_s if interval_s else now_s


def _stopping() -> PodiumError:
    return PodiumError(Code.UNAVAILABLE, "the router is stopping; retry", reason="ROUTER_STOPPING")
