"""Cards are read as noisy measurements: near skills count, more samples count more, names do not matter."""

import numpy as np

from podium_core.domain.pool import Card, Skill, Worker
from podium_core.plan_model.cards import VIEWS, PoolCards
from tests.fakes.plan_models import random_model
from tests.fakes.pools import worker

MODEL = random_model()


def measured(worker_id: str, accuracy_ppm: int, count: int) -> Worker:
    other = Skill("text", 500_000, 400, "2026-11-30")
    card = Card((Skill("arithmetic", accuracy_ppm, count, "2026-11-30"), other))
    return Worker(worker_id, "fake", worker_id, card, None)


def test_the_better_card_at_the_nearest_skill_is_expected_to_do_better() -> None:
    pool = [worker("good", skills={"arithmetic": 900_000, "text": 100_000}), worker("bad", skills={"arithmetic": 100_000, "text": 900_000})]  # fmt: skip
    cards = PoolCards(pool, MODEL.space)
    arithmetic, text = MODEL.space.vectors(["arithmetic", "text"])
    assert (cards.read(arithmetic).expected[0] > cards.read(arithmetic).expected[1]).all()
    assert (cards.read(text).expected[0] < cards.read(text).expected[1]).all()


def test_few_samples_are_believed_less_than_many() -> None:
    pool = [measured("few", 1_000_000, 2), measured("many", 1_000_000, 400), measured("weak", 200_000, 400)]
    cards = PoolCards(pool, MODEL.space)
    vector = MODEL.space.vectors(["arithmetic"])[0]
    expected = cards.read(vector).expected
    assert expected[1].mean() > expected[0].mean()
    assert cards.read(vector).doubt[0] > cards.read(vector).doubt[1]


def test_cards_without_skills_and_with_different_skills_are_read_too() -> None:
    pool = [
        worker("none"),
        worker("one", skills={"text": 800_000}),
        worker("other", skills={"never heard of": 200_000}),
    ]
    reading = PoolCards(pool, MODEL.space).read(MODEL.encoder.encode("Reverse it."))
    assert reading.expected.shape == (3, VIEWS)
    assert np.isfinite(reading.expected).all()
    empty = PoolCards([worker("none")], MODEL.space).read(MODEL.encoder.encode("Reverse it."))
    assert np.isfinite(empty.expected).all()
