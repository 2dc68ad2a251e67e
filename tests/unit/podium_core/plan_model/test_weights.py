"""A packed model comes back the same, and nothing else comes back at all."""

from collections.abc import Callable

import numpy as np
import pytest

from podium_core.domain.errors import PodiumError
from podium_core.plan_model.choices import likeliest
from podium_core.plan_model.deciding import Deciding, Seen
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.skills import SkillSpace
from podium_core.plan_model.weights import ARRAYS_FILE, SKILLS_FILE, packed, unpacked
from podium_core.plan_model.writing import written
from tests.fakes.plan_models import random_model
from tests.fakes.pools import worker

POOL = [worker("a", skills={"arithmetic": 900_000}), worker("b", skills={"text": 900_000})]
QUESTION = "Add 2 and 3, then reverse the result."


def test_a_packed_model_decides_the_same_plans() -> None:
    for seed in range(5):
        model = random_model(seed)
        again = unpacked(packed(model))
        plans = [written(Deciding(Seen(m, QUESTION, POOL, 5), likeliest).decide()) for m in (model, again)]
        assert plans[0] == plans[1]


def test_skills_of_the_same_words_keep_the_others_in_their_places() -> None:
    space = random_model().space
    twice = SkillSpace(space.encoder, {"arithmetic": 1, "dates": 2}, space.centroids)
    model = PlanModel(space.encoder, twice, random_model().points, random_model().workers)
    again = unpacked(packed(model)).space
    assert np.allclose(again.vectors(["dates"]), twice.vectors(["dates"]), atol=1e-3)
    assert np.allclose(again.vectors(["arithmetic"]), twice.vectors(["arithmetic"]), atol=1e-3)


def test_the_same_model_packs_to_the_same_bytes() -> None:
    assert packed(random_model()) == packed(random_model())


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files | {ARRAYS_FILE: files[ARRAYS_FILE][:-100]},
        lambda files: files | {ARRAYS_FILE: b""},
        lambda files: {ARRAYS_FILE: files[ARRAYS_FILE]},
        lambda files: files | {SKILLS_FILE: b'["one"]'},
        lambda files: files | {SKILLS_FILE: b"{"},
        lambda files: files | {ARRAYS_FILE: packed(random_model(scale=float("inf")))[ARRAYS_FILE]},
    ],
    ids=["cut", "empty", "no skills", "other skills", "no json", "no numbers"],
)
@pytest.mark.filterwarnings("ignore")
def test_what_does_not_fit_is_refused(change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> None:
    with np.errstate(all="ignore"), pytest.raises(PodiumError) as refused:
        unpacked(change(packed(random_model())))
    assert refused.value.reason == "EMBEDDED_WEIGHTS_CORRUPT"
