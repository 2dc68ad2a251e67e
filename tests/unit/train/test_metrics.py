"""What a system is worth: shares, entropies and comparisons over made-up lines."""

import pytest

pytest.importorskip("numpy", reason="comparisons are computed with numpy")

from podium_train.environments.port import Verdict
from podium_train.evaluation.budget import ALL_ITEMS, SEVERAL_STEPS, budgets
from podium_train.evaluation.comparison import compare
from podium_train.evaluation.metrics import headroom_captured, metrics_of
from tests.unit.train.measured import line, suite, system


def test_an_invalid_plan_is_wrong_but_not_in_accuracy_given_valid() -> None:
    lines = [line(0, True), line(1, False), line(2, False, verdict=Verdict.INVALID), line(3, True)]
    metrics = metrics_of(system("s", lines), range(4))
    assert metrics.accuracy == 0.5
    assert metrics.accuracy_given_valid == pytest.approx(2 / 3)
    assert metrics.validity == 0.75


def test_steps_and_workers_are_counted_by_calls() -> None:
    lines = [line(0, True, "one", "two", "one"), line(1, True, "one")]
    metrics = metrics_of(system("s", lines), range(2))
    assert metrics.steps == {1: 0.5, 3: 0.5}
    assert metrics.worker_shares == {"one": 0.75, "two": 0.25}
    assert metrics.worker_entropy == pytest.approx(0.8113, abs=1e-4)
    assert (metrics.calls, metrics.one_call_share) == (2.0, 0.5)


def test_a_collapsed_conductor_has_no_entropy() -> None:
    metrics = metrics_of(system("s", [line(k, True, "one") for k in range(3)]), range(3))
    assert (metrics.worker_entropy, metrics.used_entropy_share) == (0.0, 0.0)


def test_own_tokens_stand_apart_and_seeds_are_spread() -> None:
    runs = [[line(0, True, own=7), line(1, True, own=9)], [line(0, True, own=7), line(1, False, own=9)]]
    metrics = metrics_of(system("s", *runs), range(2))
    assert (metrics.worker_tokens, metrics.conductor_tokens) == (100, 8)
    assert (metrics.seeds.count, metrics.seeds.lowest, metrics.seeds.highest) == (2, 0.5, 1.0)


def test_headroom_is_the_share_of_what_the_oracle_adds() -> None:
    assert headroom_captured(0.75, 0.7, 0.9) == pytest.approx(0.25)
    assert headroom_captured(0.75, 0.9, 0.9) is None


def test_an_item_that_one_system_could_not_be_scored_on_counts_for_nobody() -> None:
    runs = suite(
        system("a", [line(0, True), line(1, True), line(2, False)]),
        system("b", [line(0, False), line(1, False, verdict=Verdict.UNSCORABLE), line(2, False)]),
    )
    assert runs.scorable == [0, 2]
    (found,) = compare(runs, [("a", "b")], seed=1, resamples=200)
    assert (found.item_count, found.interval.mean) == (2, 0.5)


def test_comparisons_average_seeds_per_item_and_keep_each_apart() -> None:
    better = [[line(k, True) for k in range(20)], [line(k, k % 2 == 0) for k in range(20)]]
    runs = suite(system("a", *better), system("b", [line(k, False) for k in range(20)]))
    (found,) = compare(runs, [("a", "b")], seed=1, resamples=500)
    assert found.interval.mean == 0.75
    assert found.per_seed == (1.0, 0.5)
    assert found.mcnemar == pytest.approx((2 / 2**20, 2 / 2**10))
    assert found.interval.low > 0.5


def test_systems_of_a_suite_must_have_seen_the_same_tasks() -> None:
    with pytest.raises(ValueError, match="same tasks"):
        suite(system("a", [line(0, True)]), system("b", [line(1, True)]))
    with pytest.raises(ValueError, match="same tasks"):
        system("a", [line(0, True)], [line(1, True)])


def test_levels_are_suites_of_their_own() -> None:
    runs = suite(system("a", [line(0, True), line(1, False, difficulty="hard")]))
    assert [(part.name, part.title) for part in runs.levels()] == [
        ("suite-easy", "A suite: easy items"),
        ("suite-hard", "A suite: hard items"),
    ]
    assert suite(system("a", [line(0, True)])).levels() == []


def test_a_budget_counts_own_tokens_and_shows_several_steps_apart() -> None:
    ours = [line(0, True, "one", tokens=50, own=50), line(1, True, "one", "two", tokens=150, own=50)]
    dear = [line(0, False, tokens=600), line(1, True, tokens=600)]
    everything, several = budgets(suite(system("ours", ours), system("MoA", dear)), "ours", "MoA", seed=1)
    assert (everything.subset, several.subset) == (ALL_ITEMS, SEVERAL_STEPS)
    assert everything.worker_tokens == pytest.approx(200 / 1200)
    assert everything.own_included == pytest.approx(300 / 1200)
    assert everything.difference.mean == 0.5
    assert (several.pair_count, several.worker_tokens) == (1, 0.25)
