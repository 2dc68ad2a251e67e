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


def test_the_time_of_nineteen_of_twenty_answers_is_known_after_twenty() -> None:
    pace = Pace()
    for number in range(1, 20):
        pace.learn(10, number * 1_000)
    assert pace.estimate is not None
    assert pace.estimate.answer_p95_ms == 0
    pace.learn(10, 900_000)
    assert pace.estimate.answer_p95_ms == 19, "one slow answer of twenty is no reason to wait longer"
    assert pace.estimate.first_output_p95_ms == 0, "no stream has been seen"


def test_streams_are_known_by_their_first_output() -> None:
    pace = Pace()
    for _ in range(20):
        pace.learn(10, 9_000_000, 250_500)
    assert pace.estimate is not None
    assert (pace.estimate.first_output_p95_ms, pace.estimate.answer_p95_ms) == (251, 0)


def test_what_is_given_up_beyond_the_quantile_counts_and_what_is_given_up_early_does_not() -> None:
    pace = Pace()
    for _ in range(40):
        pace.learn(10, 100_000)
    for _ in range(40):
        pace.learn_silence(5_000, streamed=False)
    assert pace.estimate is not None
    assert pace.estimate.answer_p95_ms == 100
    for _ in range(5):
        pace.learn_silence(700_000, streamed=False)
    assert pace.estimate.answer_p95_ms == 700, "else racing the slow would make it believe that none is slow"


def test_a_silence_says_nothing_before_the_answers_do() -> None:
    pace = Pace()
    for _ in range(50):
        pace.learn_silence(700_000, streamed=True)
    pace.learn(10, 1_000)
    assert pace.estimate == LiveEstimate(1, 10_000, 10, answer_p95_ms=0, first_output_p95_ms=0)
