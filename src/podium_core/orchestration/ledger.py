"""The run's caps as a ledger: every attempt reserves its worst case before it starts, then settles.

The runner enforces caps, not the model and not the workers. Money is checked a second time by audit,
durably and across runs.
"""

from dataclasses import dataclass, replace

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import Caps
from podium_core.domain.usage import Price, Usage


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one attempt may use at most."""

    tokens: int
    cost_usd_micros: int
    max_output_tokens: int


class Ledger:
    """Counts calls, tokens and money of one run against its caps. Used by one event loop only."""

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._calls = 0
        self._tokens = 0
        self._cost_usd_micros = 0

    def reserve(self, input_tokens_at_most: int, max_output_tokens: int, price: Price | None) -> Reservation:
        """Take one call and its worst case, with the output limit shrunk to fit.

        Raises PodiumError (BUDGET_EXHAUSTED) that names the cap when nothing useful fits any more.
        """
        caps = self._caps
        if caps.max_calls is not None and self._calls >= caps.max_calls:
            raise _exhausted("max_calls", f"all {caps.max_calls} calls are used")
        output = max_output_tokens
        if caps.max_tokens is not None:
            output = min(output, caps.max_tokens - self._tokens - input_tokens_at_most)
            if output < 1:
                raise _exhausted("max_tokens", f"{caps.max_tokens} tokens cannot hold another call")
        if caps.max_cost_usd_micros is not None:
            output = self._affordable(input_tokens_at_most, output, price, caps.max_cost_usd_micros)
        cost = price.most_usd_micros(input_tokens_at_most, output) if price else 0
        reservation = Reservation(input_tokens_at_most + output, cost, output)
        self._calls += 1
        self._tokens += reservation.tokens
        self._cost_usd_micros += reservation.cost_usd_micros
        return reservation

    def settle(self, reservation: Reservation, usage: Usage, cost_usd_micros: int) -> None:
        """Replace the worst case by what was really used. The call stays counted."""
        self._tokens += usage.total_tokens - reservation.tokens
        self._cost_usd_micros += cost_usd_micros - reservation.cost_usd_micros

    def spend_tokens(self, usage: Usage) -> None:
        """Count tokens that no reservation covered: the Conductor's own."""
        self._tokens += usage.total_tokens

    def spend_call(self, usage: Usage, cost_usd_micros: int) -> None:
        """Count a call that somebody else made for this run, within what was left."""
        self._calls += 1
        self._tokens += usage.total_tokens
        self._cost_usd_micros += cost_usd_micros

    def left(self) -> Caps:
        """Return the caps less what is used; raise PodiumError (BUDGET_EXHAUSTED) when one is used up."""
        caps = self._caps
        calls = _less(caps.max_calls, self._calls)
        tokens = _less(caps.max_tokens, self._tokens)
        cost = _less(caps.max_cost_usd_micros, self._cost_usd_micros)
        if calls == 0:
            raise _exhausted("max_calls", f"all {caps.max_calls} calls are used")
        if tokens == 0:
            raise _exhausted("max_tokens", f"all {caps.max_tokens} tokens are used")
        return replace(caps, max_calls=calls, max_tokens=tokens, max_cost_usd_micros=cost)

    def _affordable(self, input_tokens: int, output: int, price: Price | None, cap: int) -> int:
        if price is None:
            raise _exhausted("max_usd", "a worker without a price cannot run under a money cap")
        left = cap - self._cost_usd_micros - price.most_usd_micros(input_tokens, 0)
        if price.output_usd_micros_per_mtok:
            output = min(output, max(0, left) * 1_000_000 // price.output_usd_micros_per_mtok)
        if left < 0 or output < 1:
            raise _exhausted("max_usd", f"${cap / 1_000_000:.6f} cannot pay another call")
        return output


def _less(cap: int | None, used: int) -> int | None:
    return None if cap is None else max(0, cap - used)


def _exhausted(cap: str, why: str) -> PodiumError:
    return PodiumError(
        Code.BUDGET_EXHAUSTED,
        f"the run's {cap} is exhausted: {why}; raise podium.{cap} or ask for less",
        reason=f"CAP_{cap.upper()}",
        param=f"podium.{cap}",
    )
