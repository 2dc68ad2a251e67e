"""Token counts are the provider's where they make sense, and never nonsense."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.usage import Price, Usage, UsageSource
from podium_router.usage import estimated_usage, is_possible, provider_usage


def test_details_are_subsets() -> None:
    reported = {
        "prompt_tokens": 100,
        "completion_tokens": 40,
        "total_tokens": 140,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 25},
    }
    assert provider_usage(reported) == Usage(100, 40, 60, 30, 25, UsageSource.PROVIDER)


def test_zero_output_is_zero_and_not_unknown() -> None:
    reported = {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7}
    assert provider_usage(reported) == Usage(7, 0, source=UsageSource.PROVIDER)
    assert Price(0, 0).cost_usd_micros(10**6, 10**6) == 0
    assert Price(1, 0).cost_usd_micros(0, 10**9) == 0


def test_subsets_never_exceed_their_whole() -> None:
    reported = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 99, "cache_write_tokens": 99},
        "completion_tokens_details": {"reasoning_tokens": 99},
    }
    assert provider_usage(reported) == Usage(10, 4, 10, 0, 4)


def test_reasoning_counted_beside_the_output_is_added_to_it() -> None:
    reported = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "total_tokens": 34,
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    assert provider_usage(reported) == Usage(10, 24, reasoning_output_tokens=20)


@pytest.mark.parametrize(
    "reported",
    [
        None,
        [],
        {},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": -1, "completion_tokens": 5},
        {"prompt_tokens": 5, "completion_tokens": -1},
        {"prompt_tokens": "5", "completion_tokens": 5},
        {"prompt_tokens": True, "completion_tokens": 5},
        {"prompt_tokens": 10**18, "completion_tokens": 5},
        {"completion_tokens": 5},
    ],
)
def test_numbers_that_cannot_be_true_are_no_usage(reported: object) -> None:
    assert provider_usage(reported) is None


@pytest.mark.parametrize("details", [None, [], "x", {"cached_tokens": None}, {"cached_tokens": -1}])
def test_odd_details_are_left_out(details: Any) -> None:
    assert provider_usage(
        {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": details}
    ) == Usage(3, 1)


NUMBERS = st.none() | st.integers(-5, 200) | st.just(10**20) | st.text(max_size=2)


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS))
def test_counts_always_add_up(numbers: tuple[Any, ...]) -> None:
    prompt, completion, total, cached, written, reasoning = numbers
    usage = provider_usage(
        {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": total,
            "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
    )
    if usage is not None:
        assert usage.cached_input_tokens + usage.cache_write_input_tokens <= usage.input_tokens
        assert usage.reasoning_output_tokens <= usage.output_tokens
        assert usage.total_tokens < 10**10


def test_estimates_say_so() -> None:
    assert estimated_usage(401, 9, 5) == Usage(101, 3, 0, 0, 1, UsageSource.ESTIMATED)


def test_counts_far_above_what_was_sent_and_allowed_are_not_possible() -> None:
    assert is_possible(Usage(400, 100), input_tokens=200, output_tokens=100), (
        "providers add words of their own"
    )
    assert not is_possible(Usage(1_000_000, 5), input_tokens=200, output_tokens=100)
    assert not is_possible(Usage(200, 1_000_000), input_tokens=200, output_tokens=100)
