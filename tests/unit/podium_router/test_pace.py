"""Live estimates follow what a worker does now."""

import pytest

from podium_core.domain.pool import LiveEstimate
from podium_router.pace import Pace


def test_nothing_is_known_before_the_first_answer() -> None:
    assert Pace().estimate is None


def test_the_first_answers_count_alike() -> None:
    pace = Pace()
    pace.learn(100, 1_000_000)
    pace.learn(300, 1_000_000)
    assert pace.estimate == LiveEstimate(2, 200, 200)


def test_long_answers_weigh_more_in_the_speed() -> None:
    pace = Pace()
    pace.learn(10, 1_000_000)
    pace.learn(990, 9_000_000)
    assert pace.estimate == LiveEstimate(2, 100, 500)


def test_a_new_pace_replaces_the_old_one() -> None:
    pace = Pace()
    for _ in range(1_000):
        pace.learn(100, 1_000_000)
    for _ in range(100):
        pace.learn(50, 2_000_000)
    estimate = pace.estimate
    assert estimate is not None
    assert estimate.output_tokens_per_second == pytest.approx(25, abs=1)
    assert estimate.output_tokens_per_answer == pytest.approx(50, abs=1)


def test_answers_without_tokens_or_time_say_nothing() -> None:
    pace = Pace()
    pace.learn(0, 1_000)
    pace.learn(5, 0)
    assert pace.estimate is None
