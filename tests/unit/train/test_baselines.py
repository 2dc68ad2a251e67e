"""Baselines on recorded answers: who they ask, what they pay, and what they may not know."""

import asyncio

import pytest

pytest.importorskip("numpy", reason="cards and intervals are computed with numpy")

from podium_core.domain.plan import Step
from podium_train.baselines.ensembles import (
    EqualMoney,
    Majority,
    MixtureOfAgents,
    SelfConsistency,
    SelfRefine,
    winner,
)
from podium_train.baselines.scorers import (
    BestSingle,
    FamilyTable,
    RandomScorer,
    chosen,
    ranked_models,
)
from podium_train.baselines.single_step import OneWorker, Oracle, Routed
from podium_train.environments.port import Task, Verdict
from podium_train.environments.replay import ReplayEnvironment
from podium_train.evaluation.results import Answered
from podium_train.evaluation.systems import System
from podium_train.evaluation.trials import ReplayTrial
from podium_train.outcomes.items import RecordedItem, RecordedSet
from tests.unit.train.recorded import MODELS, item, maker, recorded

R, W, V = (1.0, "right", 40), (0.0, "wrong", 80), (0.0, "other", 120)


def history() -> RecordedSet:
    """One is good at sums, two at words; one is better overall. Three is bad; four was never recorded."""
    sums = [item(k, {"a/one": [R], "b/two": [W], "c/three": [W]}) for k in range(12)]
    words = [item(k, {"a/one": [W], "b/two": [R], "c/three": [W]}, "words") for k in range(8)]
    return recorded(*sums, *words)


def task_of(one: RecordedItem) -> Task:
    known = history()
    return maker(recorded(*known.items, *([one] if one.item_id not in known.by_id else []))).task(
        one, [model for model in MODELS if model in one.answers], 1
    )


def trial(*items: RecordedItem) -> ReplayTrial:
    return ReplayTrial(ReplayEnvironment(recorded(*items), max_steps=9))


def answer(system: System, task: Task) -> Answered:
    return asyncio.run(system.answer(task, 0))


def test_best_single_asks_one_worker_and_the_family_table_the_best_of_the_family() -> None:
    best, table = BestSingle(history()), FamilyTable(history())
    sums = task_of(item(90, {"a/one": [R], "b/two": [W]}))
    words = task_of(item(91, {"a/one": [R], "b/two": [W]}, "words"))
    assert [chosen(best, sums), chosen(best, words)] == ["one", "one"]
    assert [chosen(table, sums), chosen(table, words)] == ["one", "two"]
    strange = task_of(item(92, {"a/one": [R], "b/two": [W]}, "never seen"))
    assert chosen(table, strange) == "one"


def test_a_worker_that_nobody_recorded_is_scored_by_its_cards_mean() -> None:
    known = history()
    good = [item(k, {"d/four": [R]}, "graphs") for k in range(5)]
    rack = maker(recorded(*known.items, *good))
    task = rack.task(item(93, {"a/one": [W], "d/four": [R]}), ["a/one", "d/four"], 1)
    assert chosen(BestSingle(known), task) == "four"
    assert FamilyTable(known).scores(task)["four"] == 1.0


def test_random_depends_on_the_task_and_the_seed_alone() -> None:
    task = task_of(item(94, {"a/one": [R], "b/two": [W]}))
    assert RandomScorer(1).scores(task) == RandomScorer(1).scores(task)
    assert RandomScorer(1).scores(task) != RandomScorer(2).scores(task)


def test_models_are_ranked_on_the_items_that_all_of_them_answered() -> None:
    both = [item(k, {"a/one": [R], "b/two": [W]}) for k in range(3)]
    easy = [item(k, {"b/two": [R]}, "easy") for k in range(9)]
    assert ranked_models(recorded(*both, *easy), ["a/one", "b/two"]) == ["a/one", "b/two"]


MIXED = item(95, {"a/one": [W], "b/two": [R], "c/three": [R]})


def test_one_worker_is_unscorable_where_it_is_not_in_the_pool() -> None:
    task = task_of(MIXED)
    assert answer(OneWorker("two", trial(MIXED)), task).is_right
    assert answer(OneWorker("four", trial(MIXED)), task).verdict is Verdict.UNSCORABLE


def test_the_oracle_takes_a_worker_that_is_right_and_pays_for_it_alone() -> None:
    task, best = task_of(MIXED), BestSingle(history())
    found = answer(Oracle(best, trial(MIXED)), task)
    assert (found.is_right, found.worker_ids) == (True, ("two",))
    hopeless = item(96, {"a/one": [W], "b/two": [W]})
    assert not answer(Oracle(best, trial(hopeless)), task_of(hopeless)).is_right


def test_a_majority_pays_for_all_and_moa_for_one_who_compares_too() -> None:
    task, best = task_of(MIXED), BestSingle(history())
    voted = answer(Majority(best, trial(MIXED)), task)
    assert (voted.is_right, voted.worker_ids, voted.is_exact) == (True, ("one", "two", "three"), True)
    mixed = answer(MixtureOfAgents(best, trial(MIXED)), task)
    assert (mixed.is_right, mixed.worker_ids, mixed.is_exact) == (True, ("one", "two", "three", "one"), True)
    assert mixed.worker_usage.total_tokens > voted.worker_usage.total_tokens
    assert not answer(Majority(best, trial(MIXED), 1), task).is_right


def test_ties_go_to_the_higher_ranked_worker() -> None:
    split = item(97, {"a/one": [R], "b/two": [V]})
    assert answer(Majority(BestSingle(history()), trial(split)), task_of(split)).is_right


def test_self_refinement_is_marked_as_simulated_and_self_consistency_is_not() -> None:
    task, best = task_of(MIXED), BestSingle(history())
    assert not answer(SelfRefine(best, trial(MIXED)), task).is_exact
    again = answer(SelfConsistency(best, trial(MIXED)), task)
    assert (again.is_exact, again.worker_ids) == (True, ("one", "one", "one"))


def test_equal_money_buys_as_many_answers_as_the_rival_paid_for() -> None:
    task, best = task_of(MIXED), BestSingle(history())
    rival = MixtureOfAgents(best, trial(MIXED))
    spent = answer(EqualMoney(best, trial(MIXED), rival), task)
    once = answer(Routed("best single", best, trial(MIXED)), task)
    assert set(spent.worker_ids) == {"one"}
    assert 1 < len(spent.worker_ids) <= 5
    assert once.cost_usd_micros < spent.cost_usd_micros <= answer(rival, task).cost_usd_micros
    assert answer(EqualMoney(best, trial(MIXED), Routed("r", best, trial(MIXED))), task) == once


def test_votes_ignore_case_and_blanks_and_those_who_did_not_answer() -> None:
    said = item(98, {"a/one": [(0.0, None, 9)], "b/two": [(1.0, "X y", 9)], "c/three": [(1.0, "xY", 9)]})
    outcome = trial(said).environment.score_plan(
        [Step(w, "") for w in ("one", "two", "three")], task_of(said)
    )
    assert winner(outcome.steps) == 1


def test_text_routers_learn_from_words() -> None:
    pytest.importorskip("sklearn", reason="text routers need scikit-learn (requirements/train.txt)")
    from podium_train.baselines.text_routers import LogisticRouter, NeighbourRouter

    known = history()
    words = task_of(item(99, {"a/one": [R], "b/two": [W]}, "words"))
    sums = task_of(item(100, {"a/one": [R], "b/two": [W]}))
    for router in (
        LogisticRouter(known, known, by_level=True),
        LogisticRouter(known, recorded(), by_level=False),
        NeighbourRouter(known, known, by_level=True),
    ):
        assert [chosen(router, sums), chosen(router, words)] == ["one", "two"]
        assert all(0 <= score <= 1 for score in router.scores(sums).values())
