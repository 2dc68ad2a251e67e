"""A failing worker is paused, probed, and taken back."""

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_router.breaker import Breaker, BreakerLimits, Sign
from tests.fakes.ids import FakeClock

LIMITS = BreakerLimits(failures=3, pause_s=5.0, max_pause_s=15.0)


def call(breaker: Breaker, sign: Sign) -> None:
    breaker.leave(sign, was_probe=breaker.enter())


def down(breaker: Breaker) -> bool:
    return breaker.is_down


def opened(clock: FakeClock) -> Breaker:
    breaker = Breaker(LIMITS, clock)
    for _ in range(3):
        call(breaker, Sign.FAILED)
    return breaker


def test_only_failures_in_a_row_count() -> None:
    breaker = Breaker(LIMITS, FakeClock())
    for sign in (Sign.FAILED, Sign.FAILED, Sign.ALIVE, Sign.FAILED, Sign.NOTHING, Sign.FAILED):
        call(breaker, sign)
    assert not down(breaker)
    call(breaker, Sign.FAILED)
    assert down(breaker)


def test_while_down_it_refuses_and_says_for_how_long() -> None:
    clock = FakeClock()
    breaker = opened(clock)
    clock.advance(2)
    with pytest.raises(PodiumError) as refused:
        breaker.enter()
    error = refused.value
    assert (error.code, error.reason, error.retry_after_s) == (Code.PROVIDER_FAILED, "WORKER_DOWN", 3.0)
    assert error.metadata["retryable"] == "false", "the caller's fallback worker is the better choice"


def test_after_the_pause_one_call_may_try() -> None:
    clock = FakeClock()
    breaker = opened(clock)
    clock.advance(5)
    assert not down(breaker), "listed as up, or nobody would ever try"
    was_probe = breaker.enter()
    assert was_probe
    assert down(breaker)
    with pytest.raises(PodiumError):
        breaker.enter()
    breaker.leave(Sign.ALIVE, was_probe=was_probe)
    assert not down(breaker)
    call(breaker, Sign.FAILED)
    assert not down(breaker), "the count starts anew"


def test_each_failed_probe_doubles_the_pause_up_to_a_bound() -> None:
    clock = FakeClock()
    breaker = opened(clock)
    for pause_s in (5, 10, 15, 15):
        clock.advance(pause_s - 0.001)
        assert down(breaker)
        clock.advance(0.001)
        assert not down(breaker)
        call(breaker, Sign.FAILED)


def test_a_cancelled_probe_leaves_room_for_the_next() -> None:
    clock = FakeClock()
    breaker = opened(clock)
    clock.advance(5)
    call(breaker, Sign.NOTHING)
    assert breaker.enter()


def test_calls_from_before_the_pause_do_not_disturb_the_probe() -> None:
    clock = FakeClock()
    breaker = Breaker(LIMITS, clock)
    old = breaker.enter()
    for _ in range(3):
        call(breaker, Sign.FAILED)
    clock.advance(5)
    probe = breaker.enter()
    breaker.leave(Sign.FAILED, was_probe=old)
    with pytest.raises(PodiumError):
        breaker.enter()
    breaker.leave(Sign.ALIVE, was_probe=probe)
    assert not down(breaker)
