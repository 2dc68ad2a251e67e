"""Token counts and money: what an attempt used, and what that costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_TOKENS_PER_PRICE_UNIT = 1_000_000


class UsageSource(StrEnum):
    """Where the token counts come from."""

    PROVIDER = "provider"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more attempts.

    Cached and cache-write tokens are within input, reasoning tokens within output (OpenTelemetry GenAI
    conventions v0.1.0), so sums never count them twice.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    reasoning_output_tokens: int = 0
    source: UsageSource = UsageSource.PROVIDER

    @property
    def total_tokens(self) -> int:
        """Input plus output."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        """Add counts; the sum is only as sure as its least sure part."""
        order = (UsageSource.PROVIDER, UsageSource.ESTIMATED, UsageSource.UNKNOWN)
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.cache_write_input_tokens + other.cache_write_input_tokens,
            self.reasoning_output_tokens + other.reasoning_output_tokens,
            max(self.source, other.source, key=order.index),
        )


@dataclass(frozen=True, slots=True)
class Price:
    """What a worker costs, in millionths of a US dollar per million tokens.

    Input that the provider read from its cache, or wrote to it, has a rate of its own, or none: then it costs
    as all input.
    """

    input_usd_micros_per_mtok: int
    output_usd_micros_per_mtok: int
    cached_input_usd_micros_per_mtok: int | None = None
    cache_write_input_usd_micros_per_mtok: int | None = None

    def cost_usd_micros(
        self,
        input_tokens: int,
        output_tokens: int,
        cached_input_tokens: int = 0,
        cache_write_input_tokens: int = 0,
    ) -> int:
        """Return the cost, rounded up to the next millionth of a dollar.

        The cached and the cache-write tokens are within the input.
        """
        input_rate, cached_rate = self.input_usd_micros_per_mtok, self.cached_input_usd_micros_per_mtok
        write_rate = self.cache_write_input_usd_micros_per_mtok
        exact = input_tokens * input_rate + output_tokens * self.output_usd_micros_per_mtok
        cached_tokens = min(cached_input_tokens, input_tokens)
        if cached_rate is not None:
            exact -= cached_tokens * (input_rate - cached_rate)
        if write_rate is not None:
            exact += min(cache_write_input_tokens, input_tokens - cached_tokens) * (write_rate - input_rate)
        return -(-exact // _TOKENS_PER_PRICE_UNIT)

    def most_usd_micros(self, input_tokens: int, output_tokens: int) -> int:
        """Return the most that so many tokens can cost: with all input at its dearest rate."""
        return self.cost_usd_micros(input_tokens, output_tokens, cache_write_input_tokens=input_tokens)


def failure_facts(usage: Usage, cost_usd_micros: int) -> dict[str, str]:
    """Return what a failed attempt used and cost, as facts that its error carries."""
    return {
        "cost_usd_micros": str(cost_usd_micros),
        "input_tokens": str(usage.input_tokens),
        "output_tokens": str(usage.output_tokens),
        "usage_source": usage.source.value,
    }


def read_failure_facts(facts: Mapping[str, str]) -> tuple[Usage, int] | None:
    """Return the usage and the cost that an error's facts tell; None when they tell none."""
    try:
        usage = Usage(
            input_tokens=int(facts["input_tokens"]),
            output_tokens=int(facts["output_tokens"]),
            source=UsageSource(facts["usage_source"]),
        )
        return usage, int(facts["cost_usd_micros"])
    except (KeyError, ValueError):
        return None
