"""The embedded Conductor is trained from nothing in a few minutes, and its curve rises."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="training needs torch: requirements/train.txt")

from podium_core.plan_model.weights import ARRAYS_FILE, SKILLS_FILE, unpacked
from podium_train.learning.run import SMOKE, learn


def test_a_small_run_rises_and_leaves_weights_that_load(tmp_path: Path) -> None:
    learned = learn(None, tmp_path, SMOKE)
    rows = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    sampled = [row["reward_by_kind"]["composite"] for row in rows]
    assert sum(sampled[-10:]) / 10 > sum(sampled[:10]) / 10 + 0.04
    assert learned.stages["reinforced"]["composite"] > learned.stages["format"]["composite"] + 0.3
    unpacked({name: (learned.folder / name).read_bytes() for name in (ARRAYS_FILE, SKILLS_FILE)})
