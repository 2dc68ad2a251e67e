"""Intervals, tests and spreads: against known values, and with families taken seriously."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy", reason="intervals are computed with numpy")

from podium_train.evaluation.statistics import clustered_intervals, holm, mcnemar_p, spread  # noqa: E402


def test_an_interval_holds_the_mean_and_is_the_same_for_the_same_seed() -> None:
    rng = np.random.default_rng(3)
    differences = rng.integers(-1, 2, (300, 2)).astype(float)
    families = [f"family {k % 20}" for k in range(300)]
    first = clustered_intervals(differences, families, seed=7, resamples=2_000)
    assert first == clustered_intervals(differences, families, seed=7, resamples=2_000)
    for k, interval in enumerate(first):
        assert interval.mean == pytest.approx(differences[:, k].mean())
        assert interval.low < interval.mean < interval.high
        # A normal interval is 1.96 standard errors to each side, a detectable difference 2.80.
        assert interval.detectable == pytest.approx(2.80 / 1.96 * (interval.high - interval.low) / 2, rel=0.1)


def test_items_that_agree_within_families_give_wider_intervals() -> None:
    alike = np.repeat(np.tile([1.0, 0.0], 10), 20)[:, None]
    (clustered,) = clustered_intervals(alike, [f"f{k // 20}" for k in range(400)], seed=1, resamples=2_000)
    (apart,) = clustered_intervals(alike, [f"f{k}" for k in range(400)], seed=1, resamples=2_000)
    assert clustered.high - clustered.low > 3 * (apart.high - apart.low)


def test_one_family_resamples_its_items() -> None:
    (interval,) = clustered_intervals(np.array([[1.0], [0.0]] * 50), ["only"] * 100, seed=1, resamples=2_000)
    # The binomial's 95 %: 0.098 to each side.
    assert interval.low == pytest.approx(0.402, abs=0.02)
    assert interval.high == pytest.approx(0.598, abs=0.02)


def test_a_difference_that_never_turns_has_the_smallest_p() -> None:
    (sure,) = clustered_intervals(np.ones((40, 1)), [f"f{k % 8}" for k in range(40)], seed=1, resamples=999)
    (none,) = clustered_intervals(np.zeros((40, 1)), [f"f{k % 8}" for k in range(40)], seed=1, resamples=999)
    assert (sure.low, sure.high, sure.p) == (1.0, 1.0, 2 / 1000)
    assert none.p == 1.0


def test_items_need_a_family_each() -> None:
    with pytest.raises(ValueError, match="one family per item"):
        clustered_intervals(np.zeros((3, 1)), ["a", "b"], seed=1)


def test_mcnemar_has_the_textbook_values() -> None:
    assert mcnemar_p(0, 0) == 1.0
    assert mcnemar_p(5, 5) == 1.0
    assert mcnemar_p(1, 9) == pytest.approx(22 / 1024)
    assert mcnemar_p(9, 1) == mcnemar_p(1, 9)
    assert mcnemar_p(0, 2_000) == 0.0 or mcnemar_p(0, 2_000) < 1e-300


def test_holm_steps_down_in_order_of_size() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_never_lowers_a_p_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(raw <= p <= 1 for raw, p in zip(p_values, adjusted, strict=True))
    by_raw = sorted(range(len(p_values)), key=lambda k: p_values[k])
    assert [adjusted[k] for k in by_raw] == sorted(adjusted)


def test_a_spread_tells_the_seeds_apart() -> None:
    assert spread([0.5]).deviation == 0.0
    assert spread([0.4, 0.6]).deviation == pytest.approx(0.1414, abs=1e-4)
    with pytest.raises(ValueError, match="at least one seed"):
        spread([])
