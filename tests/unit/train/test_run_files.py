"""What a run leaves on disk: its curve, and which checkpoint can be trusted after a kill."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from podium_core.domain.errors import PodiumError
from podium_train.learning.curve_file import CurveFile
from podium_train.learning.grpo_recipe import SMALL_CPU
from podium_train.learning.run_folder import claim, last_whole_checkpoint


def checkpoint(run: Path, number: int, state: str | None = None) -> Path:
    folder = run / f"checkpoint-{number}"
    folder.mkdir(parents=True)
    (folder / "trainer_state.json").write_text(
        state if state is not None else json.dumps({"global_step": number})
    )
    return folder


def test_the_newest_whole_checkpoint_counts_by_number(tmp_path: Path) -> None:
    checkpoint(tmp_path, 9)
    newest = checkpoint(tmp_path, 10)
    assert last_whole_checkpoint(tmp_path) == newest


def test_a_checkpoint_cut_off_by_a_kill_is_passed_over(tmp_path: Path) -> None:
    whole = checkpoint(tmp_path, 10)
    checkpoint(tmp_path, 20, state='{"global_step": 2')
    (tmp_path / "checkpoint-30").mkdir()
    (tmp_path / "checkpoint-x").mkdir()
    assert last_whole_checkpoint(tmp_path) == whole


def test_a_folder_without_a_run_has_none(tmp_path: Path) -> None:
    assert last_whole_checkpoint(tmp_path) is None
    assert last_whole_checkpoint(tmp_path / "missing") is None


def test_a_curve_is_read_as_it_was_written(tmp_path: Path) -> None:
    progress = CurveFile(tmp_path / "new" / "progress.jsonl")
    progress.append(1, {"reward": 0.25})
    progress.append(2, {"reward": 0.5})
    assert progress.read() == [{"iteration": 1, "reward": 0.25}, {"iteration": 2, "reward": 0.5}]


def test_resuming_cuts_the_curve_back_and_drops_a_half_written_line(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    progress = CurveFile(path)
    for iteration in (1, 2, 3):
        progress.append(iteration, {"reward": 0.0})
    with path.open("a") as file:
        file.write('{"iteration": 4, "rew')
    assert [line["iteration"] for line in progress.cut_back(2)] == [1, 2]
    progress.append(3, {"reward": 1.0})
    assert [line["iteration"] for line in progress.read()] == [1, 2, 3]
    assert progress.read()[-1]["reward"] == 1.0


def test_a_folder_belongs_to_one_run(tmp_path: Path) -> None:
    run = tmp_path / "new" / "run"
    assert claim(run, SMALL_CPU, resume=False) is None
    with pytest.raises(PodiumError, match="holds a run; resume it"):
        claim(run, SMALL_CPU, resume=False)
    whole = checkpoint(run, 2)
    assert claim(run, SMALL_CPU, resume=True) == whole
    patient = replace(SMALL_CPU, score_timeout_s=999.0, checkpoint_every=1)
    assert claim(run, patient, resume=True) == whole, "what does not shape the curve may change"


def test_a_run_is_never_continued_with_other_settings(tmp_path: Path) -> None:
    claim(tmp_path, SMALL_CPU, resume=False)
    with pytest.raises(PodiumError, match="another learning_rate, seed"):
        claim(tmp_path, replace(SMALL_CPU, learning_rate=1.0, seed=9), resume=True)


def test_checkpoints_of_something_else_are_left_alone(tmp_path: Path) -> None:
    checkpoint(tmp_path, 4)
    with pytest.raises(PodiumError, match="something else"):
        claim(tmp_path, SMALL_CPU, resume=True)


def test_resuming_what_never_began_begins(tmp_path: Path) -> None:
    assert claim(tmp_path / "run", SMALL_CPU, resume=True) is None
