"""A circuit breaker per worker: failures in a row pause it, then one probe may try."""

from dataclasses import dataclass
from enum import Enum, auto

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError

_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """`failures` in a row open it for `pause_s`, doubled with each failed probe up to `max_pause_s`."""

    failures: int = 5
    pause_s: float = 5.0
    max_pause_s: float = 60.0


class Sign(Enum):
    """What a call says about its worker."""

    ALIVE = auto()
    """It answered, even if with a refusal."""
    FAILED = auto()
    """It could not be reached, broke, or kept silent."""
    NOTHING = auto()
    """The call ended for a reason of ours, such as a cancellation."""


class Breaker:
    """Counts failures in a row. While it pauses the worker is down; after the pause one call may try."""

    def __init__(self, limits: BreakerLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._failures = 0
        self._open_until_ns: int | None = None
        self._pause_s = limits.pause_s
        self._is_probing = False

    @property
    def is_down(self) -> bool:
        """Whether calls are refused now."""
        if self._open_until_ns is None:
            return False
        return self._is_probing or self._clock.monotonic_ns() < self._open_until_ns

    def check(self) -> None:
        """Raise PodiumError (WORKER_DOWN) when calls are refused now."""
        if self.is_down:
            raise self._refusal()

    def enter(self) -> bool:
        """Begin a call and say whether it is the probe. Raises PodiumError (WORKER_DOWN) when down.

        Whatever happens, `leave` must be told.
        """
        self.check()
        self._is_probing = self._open_until_ns is not None
        return self._is_probing

    def leave(self, sign: Sign, *, was_probe: bool) -> None:
        """End a call that was let in."""
        if was_probe:
            self._is_probing = False
        if sign is Sign.ALIVE:
            self._failures = 0
            self._open_until_ns = None
            self._pause_s = self._limits.pause_s
        elif sign is Sign.FAILED:
            self._failures += 1
            if was_probe:
                self._pause_s = min(2 * self._pause_s, self._limits.max_pause_s)
                self._open()
            elif self._open_until_ns is None and self._failures >= self._limits.failures:
                self._open()

    def _refusal(self) -> PodiumError:
        left_ns = max(0, (self._open_until_ns or 0) - self._clock.monotonic_ns())
        return PodiumError(
            Code.PROVIDER_FAILED,
            "the worker failed several times in a row and is paused",
            reason="WORKER_DOWN",
            metadata={"retryable": "false"},
            retry_after_s=max(left_ns / _NS, 1.0),
        )

    def _open(self) -> None:
        self._open_until_ns = self._clock.monotonic_ns() + round(self._pause_s * _NS)
