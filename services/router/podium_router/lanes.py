"""How many calls, and tokens per minute, one worker takes. Further calls wait in a bounded, fair queue.

Fair means by tenant: whoever waits gets a place in turn, however many calls another tenant has sent; and
where the queue is full, the tenant with most calls in it gives way.
"""

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_router.rates import Allowance

_RETRY_AFTER_S = 1.0
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """`max_waiting` calls per worker wait at most `max_wait_s` seconds each.

    A provider's wish keeps calls off its worker for at most `max_pause_s` seconds. Pauses of up to
    `max_pause_wait_s` are waited out, no longer than a run waits itself before it asks again.
    """

    max_waiting: int = 256
    max_wait_s: float = 10.0
    max_pause_s: float = 60.0
    max_pause_wait_s: float = 5.0


@dataclass(frozen=True, slots=True)
class LaneSize:
    """What a worker takes: calls at once (0: any number), requests and tokens per minute (None: likewise)."""

    max_concurrency: int = 0
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(eq=False, slots=True)
class Place:
    """One call's place. `tokens` are reserved for it; set `used_tokens` before it leaves.

    Until `waits_until` (a time of the event loop) it may wait; the lane sets it.
    """

    tenant_id: str
    tokens: int
    used_tokens: int = 0
    waits_until: float = 0.0


class Lane:
    """One worker's lane."""

    def __init__(self, limits: LaneLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self.size = LaneSize()
        self._active = 0
        self._requests: Allowance | None = None
        self._tokens: Allowance | None = None
        self._turns: dict[Place, asyncio.Future[None]] = {}
        self._queues: OrderedDict[str, deque[Place]] = OrderedDict()
        """Who waits, by tenant; the first tenant is next."""
        self._timer: asyncio.TimerHandle | None = None
        self._paused_until_s = 0.0

    @property
    def is_paused(self) -> bool:
        """Whether its provider has asked for a pause that is longer than any call waits."""
        return self._pause_left_s > min(self._limits.max_wait_s, self._limits.max_pause_wait_s)

    @property
    def active(self) -> int:
        """How many calls are in the lane now."""
        return self._active

    @property
    def waiting(self) -> int:
        """How many calls wait for a place."""
        return len(self._turns)

    async def enter(self, place: Place, deadline: float) -> None:
        """Take a place in the lane; `leave` gives it back. `deadline` is a time of the event loop.

        Raises PodiumError RATE_LIMITED when too many wait (WORKER_BUSY), no place came free in time
        (WORKER_BUSY), or the worker's allowance per minute is used up (WORKER_RATE_LIMITED) or its provider
        has asked for a pause (WORKER_PAUSED) for longer than the call may wait; `retry_after_s` says when to
        come again.
        """
        if not self._turns and self._wait_s(place) == 0:
            self._admit(place)
            return
        loop_now_s = asyncio.get_running_loop().time()
        until = min(deadline, loop_now_s + self._limits.max_wait_s)
        if self.is_paused or self._steady_wait_s(place) > until - loop_now_s:
            raise self._refusal(place)
        self._make_room(place.tenant_id)
        place.waits_until = until
        await self._wait(place)

    def leave(self, place: Place) -> None:
        """Give the place back, and settle what it reserved with what it used."""
        self._active -= 1
        if self._tokens is not None:
            self._tokens.take(place.used_tokens - place.tokens, self._now_s)
        self._admit_waiting()

    def pause(self, seconds: float) -> None:
        """Let no call in for as long as the provider asks, within bounds (Retry-After, RFC 9110).

        Whoever waits, and cannot wait that long, is refused at once: another worker may take over.
        """
        pause_s = min(seconds, self._limits.max_pause_s)
        self._paused_until_s = max(self._paused_until_s, self._now_s + pause_s)
        loop_now_s, left_s = asyncio.get_running_loop().time(), self._pause_left_s
        for place in list(self._turns):
            if self.is_paused or place.waits_until - loop_now_s < left_s:
                self._drop(place).set_exception(self._refusal(place))
        self._admit_waiting()

    def end_pause(self) -> None:
        """Forget the pause: the worker is reached another way now."""
        self._paused_until_s = 0.0
        self._admit_waiting()

    def resize(self, size: LaneSize) -> None:
        """Change the limits; calls that are in stay in."""
        if size == self.size:
            return
        now_s = self._now_s
        if size.requests_per_minute != self.size.requests_per_minute:
            self._requests = _allowance(size.requests_per_minute, now_s)
        if size.tokens_per_minute != self.size.tokens_per_minute:
            self._tokens = _allowance(size.tokens_per_minute, now_s)
        self.size = size
        self._admit_waiting()

    # --- admission -------------------------------------------------------------------------------

    @property
    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / _NS_PER_S

    @property
    def _is_full(self) -> bool:
        return 0 < self.size.max_concurrency <= self._active

    @property
    def _pause_left_s(self) -> float:
        return max(0.0, self._paused_until_s - self._now_s)

    def _steady_wait_s(self, place: Place) -> float:
        """Return the wait that nobody's leaving shortens."""
        return max(self._pause_left_s, self._allowance_wait_s(place))

    def _allowance_wait_s(self, place: Place) -> float:
        now_s = self._now_s
        requests_s = self._requests.wait_s(1, now_s) if self._requests else 0.0
        tokens_s = self._tokens.wait_s(place.tokens, now_s) if self._tokens else 0.0
        return max(requests_s, tokens_s)

    def _wait_s(self, place: Place) -> float | None:
        """Return how long until this call may go in; None: until somebody leaves."""
        return None if self._is_full else self._steady_wait_s(place)

    def _admit(self, place: Place) -> None:
        now_s = self._now_s
        self._active += 1
        if self._requests is not None:
            self._requests.take(1, now_s)
        if self._tokens is not None:
            self._tokens.take(place.tokens, now_s)

    def _admit_waiting(self) -> None:
        """Let in whoever is next for as long as there is room; come back when the allowance has grown."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queues:
            tenant_id, queue = next(iter(self._queues.items()))
            wait_s = self._wait_s(queue[0])
            if wait_s is None:
                return
            if wait_s > 0:
                self._timer = asyncio.get_running_loop().call_later(wait_s, self._admit_waiting)
                return
            place = queue.popleft()
            self._queues.move_to_end(tenant_id)
            if not queue:
                del self._queues[tenant_id]
            self._admit(place)
            turn = self._turns.pop(place)
            turn.set_result(None)

    # --- the queue -------------------------------------------------------------------------------

    def _make_room(self, tenant_id: str) -> None:
        """Raise PodiumError when the queue is full, unless another tenant fills more of it: it gives way."""
        if len(self._turns) < self._limits.max_waiting:
            return
        own = len(self._queues.get(tenant_id, ()))
        most = max(self._queues.values(), key=len, default=None)
        if most is None or len(most) <= own + 1:
            raise _busy()
        self._drop(most[-1]).set_exception(_busy())

    async def _wait(self, place: Place) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns[place] = turn
        self._queues.setdefault(place.tenant_id, deque()).append(place)
        self._admit_waiting()
        try:
            async with asyncio.timeout_at(place.waits_until):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if place in self._turns:
                self._drop(place)
                self._admit_waiting()
            elif turn.done() and turn.exception() is None:  # the place came at the same moment: pass it on
                self.leave(place)
            if isinstance(error, TimeoutError):
                raise self._refusal(place) from None
            raise

    def _drop(self, place: Place) -> "asyncio.Future[None]":
        queue = self._queues[place.tenant_id]
        queue.remove(place)
        if not queue:
            del self._queues[place.tenant_id]
        return self._turns.pop(place)

    def _refusal(self, place: Place) -> PodiumError:
        wait_s, pause_s = self._allowance_wait_s(place), self._pause_left_s
        if pause_s > 0 and pause_s >= wait_s:
            return PodiumError(
                Code.RATE_LIMITED,
                "the worker's provider takes no more requests for now and has said when to come again",
                reason="WORKER_PAUSED",
                retry_after_s=pause_s,
            )
        if wait_s > 0 and not self._is_full:
            return PodiumError(
                Code.RATE_LIMITED,
                "the worker's allowance per minute is used up; retry later, or raise "
                "limits.requests_per_minute or limits.tokens_per_minute in pool.yaml",
                reason="WORKER_RATE_LIMITED",
                retry_after_s=wait_s,
            )
        return _busy()


def _allowance(per_minute: int | None, now_s: float) -> Allowance | None:
    return None if per_minute is None else Allowance(per_minute, now_s)


def _busy() -> PodiumError:
    return PodiumError(
        Code.RATE_LIMITED,
        "the worker is at its concurrency limit; retry, or raise limits.max_concurrency in pool.yaml",
        reason="WORKER_BUSY",
        retry_after_s=_RETRY_AFTER_S,
    )
