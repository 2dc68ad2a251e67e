"""The embedded Conductor is trained from nothing in a few minutes, and its curve rises."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="training needs torch: requirements/train.txt")

from podium_core.domain.errors import PodiumError
from podium_core.plan_model.weights import ARRAYS_FILE, SKILLS_FILE, unpacked
from podium_train.learning.encoder import EncoderOptions
from podium_train.learning.grpo import GrpoOptions
from podium_train.learning.run import SMOKE, learn
from podium_train.learning.warm_start import WarmOptions

TINY = replace(
    SMOKE,
    encoder=EncoderOptions(steps=3, width=16),
    warm=WarmOptions(questions=40, batch=32, epochs=1),
    grpo=GrpoOptions(steps=2, questions=6, rollouts=4),
    dev_per_template=1,
)


def test_a_small_run_rises_and_leaves_weights_that_load(tmp_path: Path) -> None:
    learned = learn(None, tmp_path, SMOKE)
    rows = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    sampled = [row["reward_by_kind"]["composite"] for row in rows]
    assert sum(sampled[-10:]) / 10 > sum(sampled[:10]) / 10 + 0.04
    assert learned.stages["reinforced"]["composite"] > learned.stages["format"]["composite"] + 0.3
    unpacked({name: (learned.folder / name).read_bytes() for name in (ARRAYS_FILE, SKILLS_FILE)})


def test_the_same_options_give_the_same_weights(tmp_path: Path) -> None:
    first, second = learn(None, tmp_path / "a", TINY), learn(None, tmp_path / "b", TINY)
    assert first.folder.name == second.folder.name


def test_a_run_takes_over_what_another_has_learnt(tmp_path: Path) -> None:
    learn(None, tmp_path / "whole", TINY)
    options = replace(TINY, supervised_of=tmp_path / "whole", grpo=replace(TINY.grpo, max_steps=1))
    learn(None, tmp_path / "one-step", options)
    digests = [
        {path.name for path in (tmp_path / run / "supervised").iterdir()} for run in ("whole", "one-step")
    ]
    assert digests[0] == digests[1]
    rows = (tmp_path / "one-step" / "progress.jsonl").read_text().splitlines()
    assert {tuple(json.loads(row)["step_histogram"]) for row in rows} == {("1",)}


def test_a_run_that_has_not_come_so_far_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match="holds no text encoder"):
        learn(None, tmp_path / "new", replace(TINY, encoder_of=tmp_path))
