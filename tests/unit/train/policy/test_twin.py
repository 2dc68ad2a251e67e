"""What is trained is what serves: torch and numpy agree on every choice, and learning raises what was rewarded."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: requirements/train.txt")

from podium_core.plan_model.choices import Kind, drawn  # noqa: E402
from podium_core.plan_model.deciding import Deciding, Seen  # noqa: E402
from podium_core.plan_model.model import POINT_KINDS, PlanModel  # noqa: E402
from podium_core.plan_model.networks import chances  # noqa: E402
from podium_train.policy.twin import Twin, batches_of  # noqa: E402
from tests.fakes.plan_models import WIDTH, random_model  # noqa: E402
from tests.fakes.pools import worker  # noqa: E402

QUESTIONS = (
    "Add 2 and 3, then reverse it, and spell it out.",
    "Who wrote Faust?",
    "Count, sort and join them; then add 4.",
)


def choices_of(model: PlanModel, count: int) -> list:  # type: ignore[type-arg]
    made = []
    for seed in range(count):
        pool = [
            worker(f"w{n}", skills={"arithmetic": 100_000 * (n + seed % 5), "text": 300_000})
            for n in range(1 + seed % 5)
        ]
        seen = Seen(model, QUESTIONS[seed % len(QUESTIONS)], pool, 5)
        made += Deciding(seen, drawn(np.random.default_rng(seed))).decide().choices
    return made


def test_the_twin_gives_every_choice_the_probability_that_serving_gives_it() -> None:
    twin = Twin(WIDTH, seed=3)
    with torch.no_grad():
        for value in twin.parameters():
            value.add_(torch.randn(value.shape, generator=torch.Generator().manual_seed(1)) * 0.3)
    model = random_model().with_networks(twin.export())
    made = choices_of(model, 60)
    assert {choice.kind for choice in made} == set(Kind)
    judged = twin.judge(batches_of(made), len(made)).log_probability.exp().detach().numpy()
    for choice, probability in zip(made, judged, strict=True):
        if choice.kind is Kind.WORKER:
            logits = model.workers.logits(choice.features)
        else:
            logits = model.points[choice.kind].logits(choice.features)
            logits = logits if choice.kind is Kind.SHAPE else np.asarray([0.0, logits[0]], np.float32)
        served = chances(np.where(choice.allowed, logits, -np.inf).astype(np.float32))[choice.taken]
        assert probability == pytest.approx(float(served), abs=2e-5)


def test_arrays_go_out_and_come_back() -> None:
    twin, other = Twin(WIDTH, seed=1), Twin(WIDTH, seed=2)
    other.load(twin.export())
    assert all(np.array_equal(twin.export()[name], other.export()[name]) for name in twin.export())
    assert {name.split(".")[0] for name in twin.export()} == {*(kind.value for kind in POINT_KINDS), "worker"}
