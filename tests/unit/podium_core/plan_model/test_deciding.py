"""Whatever the weights and the question, a decided plan is valid, within its caps, and has odds for each step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_core.domain.plan_format import parse_plan
from podium_core.plan_model.choices import Shape, drawn, likeliest
from podium_core.plan_model.deciding import Deciding, Seen
from podium_core.plan_model.writing import written
from tests.fakes.plan_models import random_model
from tests.fakes.pools import worker

MODELS = [random_model(seed) for seed in range(4)]
POOL = [worker(f"w{n}", skills={"arithmetic": 900_000 - 200_000 * n, "text": 300_000 * n}) for n in range(4)]


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.text(max_size=300),
        st.lists(
            st.sampled_from(["add 2 and 3", "reverse it", ", then ", ". ", "`x`", '"a, b"', "<think>", "\n"])
        ).map(" ".join),
    ),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 2**31),
)
def test_every_drawn_plan_passes_the_parser(question: str, max_steps: int, workers: int, seed: int) -> None:
    seen = Seen(MODELS[seed % len(MODELS)], question, POOL[:workers], max_steps)
    decided = Deciding(seen, drawn(np.random.default_rng(seed))).decide()
    steps = parse_plan(written(decided), [w.worker_id for w in POOL[:workers]], max_steps=max_steps)
    assert [step.access for step in steps] == decided.access
    assert [step.subtask for step in steps] == [subtask.strip() for subtask in decided.subtasks]
    for odds in decided.odds:
        assert odds.sum() == pytest.approx(1.0, abs=1e-4)
        assert len(odds) == workers


def test_a_vote_asks_different_workers_and_shows_all_to_the_last() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        decided = Deciding(Seen(MODELS[0], "Who wrote this?", POOL, 5), drawn(rng)).decide()
        if decided.shape is Shape.VOTE_OF_THREE:
            break
    assert decided.shape is Shape.VOTE_OF_THREE
    assert len(set(decided.rows[:3])) == 3
    assert decided.access[-1].steps == (0, 1, 2)


def test_a_single_step_passes_the_question_through() -> None:
    decided = Deciding(Seen(MODELS[1], "Add 2 and 3, then reverse it.", POOL, 1), likeliest).decide()
    assert decided.subtasks == [""]


def test_the_order_of_the_workers_does_not_matter() -> None:
    for model in MODELS:
        chosen = set()
        for pool in (POOL, POOL[::-1], POOL[2:] + POOL[:2]):
            decided = Deciding(Seen(model, "What is 2 plus 3?", pool, 1), likeliest).decide()
            chosen.add(pool[decided.rows[0]].worker_id)
        assert len(chosen) == 1


def test_the_same_seed_draws_the_same_plan() -> None:
    seen = Seen(MODELS[2], "Add 2 and 3, then reverse it, then spell it out.", POOL, 5)
    texts = {written(Deciding(seen, drawn(np.random.default_rng(5))).decide()) for _ in range(3)}
    assert len(texts) == 1
