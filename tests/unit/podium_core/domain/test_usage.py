"""Tokens and money: sums that never flatter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.usage import Price, Usage, UsageSource

counts = st.integers(0, 10**9)
prices = st.builds(Price, counts, counts)
cached_rates = st.none() | counts
usages = st.builds(Usage, counts, counts, counts, counts, counts, st.sampled_from(UsageSource))


@pytest.mark.parametrize(
    ("input_tokens", "output_tokens", "cost_usd_micros"),
    [(0, 0, 0), (1, 0, 1), (0, 1, 1), (1_000_000, 0, 3), (1_000_001, 0, 4), (333_333, 0, 1), (1, 1, 1)],
)
def test_a_begun_millionth_of_a_dollar_is_charged(
    input_tokens: int, output_tokens: int, cost_usd_micros: int
) -> None:
    assert Price(3, 5).cost_usd_micros(input_tokens, output_tokens) == cost_usd_micros


@given(prices, counts, counts)
def test_a_cost_is_the_exact_one_or_less_than_a_millionth_above(price: Price, tokens: int, more: int) -> None:
    exact_ppm = tokens * price.input_usd_micros_per_mtok + more * price.output_usd_micros_per_mtok
    assert 0 <= price.cost_usd_micros(tokens, more) * 1_000_000 - exact_ppm < 1_000_000


@given(counts, counts, counts, counts, cached_rates)
def test_cached_input_is_a_subset_at_its_own_rate(
    rate: int, fresh: int, cached: int, output: int, cached_rate: int | None
) -> None:
    cost = Price(rate, 3, cached_rate).cost_usd_micros(fresh + cached, output, cached)
    exact_ppm = fresh * rate + cached * (rate if cached_rate is None else cached_rate) + output * 3
    assert 0 <= cost * 1_000_000 - exact_ppm < 1_000_000


def test_a_cached_rate_of_zero_is_free_and_none_costs_as_all_input() -> None:
    assert Price(1_000_000, 0, 0).cost_usd_micros(100, 0, 60) == 40
    assert Price(1_000_000, 0, 0).cost_usd_micros(100, 0, 100) == 0
    assert Price(1_000_000, 0).cost_usd_micros(100, 0, 60) == 100
    assert Price(1_000_000, 0, 0).cost_usd_micros(100, 0, 900) == 0, "never below zero"


@given(counts, counts, counts, counts, cached_rates, cached_rates)
def test_cache_writes_are_a_subset_at_their_own_rate_and_never_above_the_most(
    fresh: int, cached: int, written: int, output: int, cached_rate: int | None, dearer: int | None
) -> None:
    rate = cached_rate or 0
    write_rate = None if dearer is None else rate + dearer
    price = Price(rate, 3, cached_rate, write_rate)
    tokens = fresh + cached + written
    cost = price.cost_usd_micros(tokens, output, cached, written)
    exact_ppm = (fresh + cached) * rate + written * (rate if write_rate is None else write_rate) + output * 3
    assert 0 <= cost * 1_000_000 - exact_ppm < 1_000_000
    assert cost <= price.most_usd_micros(tokens, output)


def test_more_writes_than_input_cost_no_more_than_all_input_written() -> None:
    price = Price(1_000_000, 0, 100_000, 1_250_000)
    assert price.cost_usd_micros(100, 0, 0, 100) == 125
    assert price.cost_usd_micros(100, 0, 0, 900) == 125
    assert price.cost_usd_micros(100, 0, 80, 900) == 8 + 25
    assert price.most_usd_micros(100, 0) == 125


@given(usages, usages)
def test_a_sum_is_only_as_sure_as_its_least_sure_part(one: Usage, other: Usage) -> None:
    total = one + other
    assert total.total_tokens == one.total_tokens + other.total_tokens
    sureness = [UsageSource.PROVIDER, UsageSource.ESTIMATED, UsageSource.UNKNOWN]
    assert total.source is max(one.source, other.source, key=sureness.index)
