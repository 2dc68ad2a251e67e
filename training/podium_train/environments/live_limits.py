"""What live workers may be asked: how many calls at once and per minute, for how long, for how much money."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError, invalid

Sleep = Callable[[float], Awaitable[None]]
_NS = 1e9
_S_PER_MINUTE = 60.0
_SHORTEST_PAUSE_S = 0.001


@dataclass(frozen=True, slots=True)
class LiveLimits:
    """Bounds on live runs. `max_cost_usd_micros` covers all runs of an environment together."""

    max_cost_usd_micros: int
    calls_at_once: int = 8
    calls_per_minute: float = 600.0
    burst: int = 8
    call_timeout_s: float = 120.0
    rollout_timeout_s: float = 600.0
    grading_timeout_s: float = 60.0
    retry_pause_s: float = 1.0
    retry_pause_at_most_s: float = 30.0

    def __post_init__(self) -> None:
        counts = (self.calls_at_once, self.burst)
        times = (self.calls_per_minute, self.call_timeout_s, self.rollout_timeout_s, self.grading_timeout_s)
        if min(counts) < 1 or min(times) <= 0 or self.max_cost_usd_micros < 0 or self.retry_pause_s < 0:
            raise invalid("live limits must be positive, and the money cap must not be negative")


class TokenBucket:
    """At most `burst` calls at once out of nothing, and `per_minute` on the long run. Waiters go in order."""

    def __init__(self, per_minute: float, burst: int, clock: Clock, sleep: Sleep) -> None:
        self._per_ns = per_minute / _S_PER_MINUTE / _NS
        self._burst = burst
        self._clock = clock
        self._sleep = sleep
        self._tokens = float(burst)
        self._filled_ns = clock.monotonic_ns()
        self._turn = asyncio.Lock()

    async def take(self) -> None:
        """Wait for a token and take it."""
        async with self._turn:
            while True:
                now_ns = self._clock.monotonic_ns()
                gained = (now_ns - self._filled_ns) * self._per_ns
                self._tokens = min(float(self._burst), self._tokens + gained)
                self._filled_ns = now_ns
                if self._tokens >= 1.0:
                    self._tokens -= 1.0
                    return
                await self._sleep(max(_SHORTEST_PAUSE_S, (1.0 - self._tokens) / self._per_ns / _NS))


class MoneyGuard:
    """Lets a call go only if its worst case still fits. What nobody can tell is counted at its worst case."""

    def __init__(self, max_cost_usd_micros: int) -> None:
        self._limit = max_cost_usd_micros
        self._reserved = 0
        self.spent_usd_micros = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is left at all."""
        return self.spent_usd_micros >= self._limit

    def reserve(self, worst_usd_micros: int) -> None:
        """Set the worst case of a call aside; raises BUDGET_EXHAUSTED when it does not fit."""
        if self.spent_usd_micros + self._reserved + worst_usd_micros > self._limit:
            raise PodiumError(
                Code.BUDGET_EXHAUSTED,
                f"the next call may cost {worst_usd_micros} millionths of a US dollar, and of {self._limit}"
                f" there are {self.spent_usd_micros} spent and {self._reserved} set aside; raise the cap",
                reason="MONEY_GUARD",
            )
        self._reserved += worst_usd_micros

    def settle(self, worst_usd_micros: int, cost_usd_micros: int) -> None:
        """Replace a call's worst case by what it cost."""
        self._reserved -= worst_usd_micros
        self.spent_usd_micros += cost_usd_micros
