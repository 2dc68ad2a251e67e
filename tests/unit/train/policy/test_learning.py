"""The learning loop: the curve rises, a killed run resumes along it, and a collapsed run stops itself."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch: requirements/train.txt")

from podium_core.domain.errors import PodiumError
from podium_core.domain.plan import Step
from podium_core.plan_model.choices import Shape
from podium_core.plan_model.encoder import TextEncoder
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.weights import ARRAYS_FILE, SKILLS_FILE, unpacked
from podium_core.plan_model.words import BUCKETS
from podium_train.environments.port import Outcome, Verdict
from podium_train.learning import checkpoint
from podium_train.learning.encoder import skill_space
from podium_train.learning.grpo import Grpo, GrpoOptions, StepFigures
from podium_train.learning.progress import Alarms, Progress
from podium_train.learning.rollouts import Rollout
from podium_train.learning.sources import DemoSource, Question
from podium_train.learning.texts import demo_examples
from podium_train.policy.export import export_model
from podium_train.policy.twin import Twin
from tests.fakes.plan_models import random_model

OPTIONS = GrpoOptions(steps=12, questions=6, rollouts=8, kl=0.0, kl_floor=0.0)


def learner(options: GrpoOptions = OPTIONS) -> Grpo:
    rng = np.random.default_rng(0)
    table = rng.integers(-127, 128, (BUCKETS, 64)).astype(np.int8)
    examples = [example for example in demo_examples() if example.skill]
    names = sorted({example.skill for example in examples})
    space = skill_space(TextEncoder(table, np.full(BUCKETS, 0.01, np.float32)), examples, names)
    twin = Twin(64, seed=1)
    model = PlanModel.of(space, twin.export())
    return Grpo(model, twin, [(DemoSource(count=60, share=1.0), 1.0)], options)


def test_reward_rises_on_tasks_for_one_worker() -> None:
    running = learner(replace(OPTIONS, steps=40, questions=12))
    rewards = [running.advance().reward for _ in range(40)]
    assert np.mean(rewards[-8:]) > np.mean(rewards[:8]) + 0.05


def test_a_resumed_run_goes_on_along_the_same_curve(tmp_path: Path) -> None:
    whole = learner()
    curve = [whole.advance() for _ in range(6)]
    first = learner()
    for _ in range(3):
        first.advance()
    checkpoint.save(tmp_path, {"learner": first.state()})
    second = learner()
    state = checkpoint.load(tmp_path)
    assert state is not None
    second.restore(state["learner"])
    assert [second.advance() for _ in range(3)] == curve[3:]


def test_of_right_plans_the_leaner_one_gains_more_and_wrong_ones_pay_nothing() -> None:
    running = learner()

    def gain(steps: int, sights: int, *, is_right: bool) -> float | None:
        outcome = Outcome(Verdict.SCORED, 1.0 if is_right else 0.5, is_right)
        return running._gain(Rollout((), Shape.PARTS, (0,) * steps, outcome, sights))

    alone, lean, wide = (gain(*shape, is_right=True) for shape in ((1, 0), (3, 2), (3, 3)))
    assert alone is not None
    assert lean is not None
    assert wide is not None
    assert 1.0 == alone > lean > wide
    wrong, lavish = gain(5, 10, is_right=False), gain(5, 10, is_right=True)
    assert wrong == 0.5
    assert lavish is not None
    assert wide > lavish > wrong


class Broken(DemoSource):
    """Demo tasks whose scorer raises on some plans."""

    def __init__(self, share: float) -> None:
        super().__init__(count=60)
        self._share = share

    def draw(self, rng: random.Random) -> Question:
        question = super().draw(rng)
        if rng.random() >= self._share:
            return question

        def fail(steps: Sequence[Step], rollout: int) -> Outcome:
            raise RuntimeError("the disk is on fire")

        return replace(question, score=fail)


def test_a_scorer_that_raises_is_left_out_until_it_is_too_many() -> None:
    def running(share: float) -> Grpo:
        whole = learner()
        return Grpo(whole.model, whole.twin, [(Broken(share), 1.0)], replace(OPTIONS, questions=20))

    figures = running(0.05).advance()
    assert 0 < figures.unscorable < 0.2
    assert figures.validity == 1.0
    failing = running(0.9)
    before = failing.twin.export()
    with pytest.raises(PodiumError) as refused:
        failing.advance()
    assert refused.value.reason == "BATCH_UNSCORABLE"
    assert all(np.array_equal(before[name], after) for name, after in failing.twin.export().items())


def test_a_broken_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / checkpoint.CHECKPOINT_FILE).write_bytes(b"not a checkpoint")
    with pytest.raises(PodiumError) as refused:
        checkpoint.load(tmp_path)
    assert refused.value.reason == "CHECKPOINT_CORRUPT"


def figures(step: int, **changed: object) -> StepFigures:
    usual: dict[str, object] = {
        "reward": 0.7,
        "validity": 1.0,
        "accuracy_given_valid": 0.5,
        "worker_entropy": 1.2,
        "mean_steps": 1.5,
        "zero_variance": 0.3,
        "unscorable": 0.0,
        "kl": 0.1,
        "step_histogram": {1: 50, 2: 50},
    }
    return StepFigures(step, **{**usual, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fall", "said"),
    [
        ({"validity": 0.8}, "valid"),
        ({"accuracy_given_valid": 0.2}, "accuracy"),
        ({"worker_entropy": 0.1}, "workers"),
        ({"step_histogram": {1: 100}}, "steps"),
    ],
)
def test_a_collapse_stops_the_run_and_says_what_fell(fall: dict[str, object], said: str) -> None:
    alarms = Alarms()
    for step in range(20):
        alarms.watch(figures(step))

    def go_on() -> None:
        for step in range(20, 40):
            alarms.watch(figures(step, **fall))

    with pytest.raises(PodiumError, match=said) as stopped:
        go_on()
    assert stopped.value.reason == "TRAINING_COLLAPSED"


def test_progress_keeps_what_was_before_the_checkpoint(tmp_path: Path) -> None:
    progress = Progress(tmp_path)
    for step in range(1, 6):
        progress.add(figures(step))
    assert [row["step"] for row in Progress(tmp_path, resumed_step=3).rows] == [1, 2, 3]


def test_exported_weights_are_named_by_their_digest_and_read_back(tmp_path: Path) -> None:
    folder = export_model(random_model(), tmp_path, {"seed": 1})
    assert export_model(random_model(), tmp_path, {"seed": 1}) == folder
    assert unpacked({name: (folder / name).read_bytes() for name in (ARRAYS_FILE, SKILLS_FILE)})
