"""What is held out is fixed, cards are measured on the train split, and pools are drawn fairly."""

import random

import numpy as np
import pytest

from podium_train.outcomes.cards import Grain, measure_cards, noisy, only_skills, shuffled_cards, worker_id
from podium_train.outcomes.items import RecordedSet
from podium_train.outcomes.pools import TaskMaker, clean_pool, is_informative, training_pool
from podium_train.outcomes.splits import (
    HELD_OUT_WORKERS,
    UNCLEAN_WORKERS,
    Split,
    is_held_out_family,
    select,
    split_of,
)
from tests.unit.train.recorded import MODELS, item, maker, recorded

CLEAN = (
    "anthropic/claude-sonnet-4",
    "deepseek/deepseek-r1",
    "meta-llama/llama-4-maverick",
    "meta-llama/llama-4-scout",
    "mistralai/mistral-small-3.1-24b-instruct",
    "openai/o3-mini",
)


def many(count: int = 300, family: str = "sums", difficulty: str = "easy") -> RecordedSet:
    right, wrong = (1.0, "r", 40), (0.0, "w", 40)
    return recorded(
        *(
            item(
                number,
                {
                    "a/one": [right],
                    "b/two": [wrong, right] if number % 2 else [wrong, wrong],
                    "c/three": [(0.0, None, 40)],
                    "d/four": [right if number % 3 else wrong],
                },
                family,
                difficulty,
            )
            for number in range(count)
        )
    )


def test_the_split_is_pinned() -> None:
    # These lines may never change: every published figure stands on them.
    held_out = ["caesar_cipher", "codeio", "group_anagrams", "sokoban", "tower_of_hanoi", "tsumego"]
    known = ["ab", "acre", "sudoku", "zebra_puzzles", "aiw", "dice", "gcd", "sums"]
    assert [name for name in held_out + known if is_held_out_family(name)] == held_out
    letters = "".join(split_of(one).value[:2] for one in many(12).items)
    assert letters == "trtetetrtrtrtrtetrtrtrtr"
    assert {"deepseek/deepseek-r1", "mistralai/mistral-small-3.1-24b-instruct"} == HELD_OUT_WORKERS


def test_the_same_question_falls_on_one_side_whatever_its_spacing() -> None:
    from dataclasses import replace

    for one in many(40).items:
        other = replace(one, question=f"  {one.question.replace(' ', '  ')}\n", difficulty="hard")
        assert split_of(one) is split_of(other)


def test_the_split_has_about_its_shares() -> None:
    data = many(2_000)
    shares = {split: len(select(data, [split]).items) / 2_000 for split in Split}
    assert shares[Split.TRAIN] == pytest.approx(0.6, abs=0.04)
    assert shares[Split.DEV] == pytest.approx(0.1, abs=0.03)
    assert shares[Split.UNSEEN] == 0
    assert all(split_of(one) is Split.UNSEEN for one in many(20, "sokoban").items)


def test_the_clean_pool_leaves_out_unextractable_models_and_training_the_held_out() -> None:
    assert clean_pool([*CLEAN, *UNCLEAN_WORKERS]) == CLEAN
    assert training_pool(CLEAN) == (CLEAN[0], CLEAN[2], CLEAN[3], CLEAN[5])
    assert training_pool(["new/model", *CLEAN])[-2:] == ("new/model", CLEAN[5])


def test_cards_are_measured_on_the_train_split_only() -> None:
    data = many()
    rack = measure_cards(data)
    (skill,) = rack.worker("b/two").card.skills
    trained = select(data, [Split.TRAIN]).items
    assert skill.name == "sums"
    assert skill.sample_count == 2 * len(trained)
    share = sum(one.accuracy("b/two") or 0 for one in trained) / len(trained)
    assert skill.accuracy_ppm == round(1e6 * share)
    held_out = many(family="sokoban")
    assert measure_cards(held_out).worker("a/one").card.skills == ()


def test_grains_name_skills_ever_finer() -> None:
    (hard,) = many(1, "count_primes", "hard").items
    assert [grain.skill_of(hard) for grain in Grain] == ["arithmetic", "count primes", "count primes, hard"]


def test_noise_is_binomial_and_says_its_sample_count() -> None:
    worker = measure_cards(many(), split=None).worker("b/two")
    rng = np.random.default_rng(5)
    drawn = [noisy(worker, rng, 20).card.skills[0] for _ in range(400)]
    assert {skill.sample_count for skill in drawn} == {20}
    accuracies = np.array([skill.accuracy_ppm for skill in drawn]) / 1e6
    assert accuracies.mean() == pytest.approx(0.25, abs=0.02)
    assert accuracies.std() == pytest.approx(np.sqrt(0.25 * 0.75 / 20), rel=0.15)
    never = noisy(measure_cards(many(), split=None).worker("c/three"), rng, 20)
    assert never.card.skills[0].accuracy_ppm == 0


def test_shuffled_cards_stay_the_same_cards_on_other_workers() -> None:
    rack = measure_cards(many(), split=None)
    workers = [rack.worker(model) for model in MODELS]
    shuffled = shuffled_cards(workers, random.Random(1))
    assert [w.worker_id for w in shuffled] == [w.worker_id for w in workers]
    assert shuffled != tuple(workers)
    assert sorted(str(w.card) for w in shuffled) == sorted(str(w.card) for w in workers)
    assert only_skills(workers[0], ["other"]).card.skills == ()


def test_random_pools_hold_three_to_five_distinct_workers_that_answered() -> None:
    data = many(60)
    tasks = maker(data).draw_all(data, seed=3)
    assert len(tasks) == 60
    assert {len(task.workers) for task in tasks} == {3, 4}
    assert all(len({w.worker_id for w in task.workers}) == len(task.workers) for task in tasks)
    assert len({tuple(w.worker_id for w in task.workers) for task in tasks}) > 10
    assert maker(data, MODELS[:2]).draw_all(data, seed=3) == ()


def test_an_items_pool_depends_on_the_seed_and_the_item_alone() -> None:
    data = many(60)
    all_tasks = {task.task_id: task for task in maker(data).draw_all(data, seed=3)}
    some = data.keep(data.items[10:20])
    assert all(all_tasks[task.task_id] == task for task in maker(data).draw_all(some, seed=3))
    assert list(all_tasks.values()) != list(maker(data).draw_all(data, seed=4))


def test_a_task_carries_no_reference_in_its_question_and_knows_its_workers() -> None:
    data = many(1)
    (task,) = maker(data).whole(data, seed=1)
    assert task.task_id == data.items[0].item_id
    assert [w.worker_id for w in task.workers] == [worker_id(model) for model in MODELS]
    assert [w.provider_model for w in task.workers] == list(MODELS)
    assert all(w.price is not None and w.card.output_tokens_per_second for w in task.workers)


def test_noisy_cards_differ_between_tasks_and_repeat_with_the_seed() -> None:
    data = many(30)
    noisy_maker = TaskMaker(measure_cards(data, split=None), MODELS, noise_sample_count=10)
    one, two = noisy_maker.draw_all(data, 1), noisy_maker.draw_all(data, 1)
    assert one == two
    seen = {w.card.skills[0].accuracy_ppm for task in one for w in task.workers if w.worker_id == "two"}
    assert len(seen) > 2


def test_an_item_is_informative_when_the_choice_matters() -> None:
    (first,) = many(1).items
    assert is_informative(first, MODELS)
    assert not is_informative(first, ["a/one"])
    assert not is_informative(first, ["b/two", "c/three"])
    assert not is_informative(first, ["unknown"])
