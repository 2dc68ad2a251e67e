"""An allowance per minute is never exceeded by more than the minute's worth it starts with."""

from hypothesis import given
from hypothesis import strategies as st

from podium_router.rates import Allowance

CALLS = st.lists(st.tuples(st.floats(0, 30), st.integers(1, 2_000)), max_size=60)


@given(st.integers(1, 1_000), CALLS)
def test_what_is_taken_never_exceeds_what_has_filled(per_minute: int, calls: list[tuple[float, int]]) -> None:
    allowance = Allowance(per_minute, 0.0)
    now_s = taken = 0.0
    for pause_s, amount in calls:
        now_s += pause_s
        if amount <= per_minute and allowance.wait_s(amount, now_s) == 0:
            allowance.take(amount, now_s)
            taken += amount
        assert taken <= per_minute * (1 + now_s / 60) + 1e-6


@given(st.integers(1, 1_000), st.integers(1, 5_000), st.integers(1, 5_000))
def test_the_wait_that_is_told_is_enough(per_minute: int, first: int, then: int) -> None:
    allowance = Allowance(per_minute, 0.0)
    allowance.take(first, 0.0)
    wait_s = allowance.wait_s(then, 0.0)
    assert allowance.wait_s(then, wait_s + 1e-6) <= 1e-6


def test_a_clock_that_goes_back_gives_nothing() -> None:
    allowance = Allowance(60, 100.0)
    allowance.take(60, 100.0)
    assert allowance.wait_s(1, 50.0) == 1.0
