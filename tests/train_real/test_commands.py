"""The verbs `rows` and `grpo`, and the launcher's file."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from podium_train.__main__ import main
from tests.unit.train.gym_folder import write_gym

pytestmark = pytest.mark.skipif(
    find_spec("trl") is None, reason="`make train-test` has an environment with torch and TRL"
)
RECIPES = Path(__file__).parents[2] / "training" / "recipes"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.real_model.checkpoints import tiny_qwen2

    return str(tiny_qwen2(tmp_path_factory.mktemp("tiny")))


def test_rows_writes_what_verl_reads(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datasets import Dataset

    data = write_gym(tmp_path / "data")
    told = [
        "rows",
        "--model",
        model,
        "--data",
        str(data),
        "--to",
        str(tmp_path / "rows"),
        "--recipe",
        "paper-7b",
    ]
    assert main(told) == 0
    assert "800 rows" in capsys.readouterr().out
    rows = Dataset.from_parquet(str(tmp_path / "rows" / "train.parquet"))
    assert set(rows.column_names) == {"data_source", "prompt", "reward_model", "extra_info"}
    assert rows[0]["prompt"][1]["content"].count("Model id 0:") >= 1
    assert {row["split"] for row in rows["extra_info"]} == {"train"}
    assert (tmp_path / "rows" / "dev.parquet").is_file()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"--recipe": "paper-8b"}, "known are paper-7b, "),
        ({"--model": "some-org/some-model"}, "hub names are never looked up"),
        ({"--data": "/nowhere"}, "podium-train import"),
    ],
)
def test_grpo_says_what_to_change(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str], complaint: str
) -> None:
    options = {
        "--recipe": "small-cpu", "--model": model, "--data": str(write_gym(tmp_path / "data")),
        "--to": str(tmp_path / "run"),
    }  # fmt: skip
    assert main(["grpo", *(part for pair in (options | changed).items() for part in pair)]) == 1
    assert complaint in capsys.readouterr().err


def test_the_launcher_knows_every_line_of_its_file() -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(RECIPES / "accelerate" / "two-gpus.yaml"))
    assert config.num_processes == 2
    assert config.deepspeed_config["zero3_save_16bit_model"] is True


def test_a_prompted_model_stands_beside_the_baselines(model: str, tmp_path: Path) -> None:
    asked = [
        "evaluate",
        "--demo",
        "12",
        "--to",
        str(tmp_path),
        "--suites",
        "demo-composite",
        "--resamples",
        "100",
    ]
    assert main([*asked, "--prompted", f"tiny={model}", "--most-items", "2"]) == 0
    (suite,) = json.loads((tmp_path / "demo.json").read_text())["suites"]
    row = next(system for system in suite["systems"] if system["name"] == "tiny")
    assert suite["item_count"] == 2
    assert suite["conductors"] == []
    assert row["marks"] == ["prompted, not trained"]
    assert row["conductor_tokens"] > 0


def test_a_folder_without_a_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["evaluate", "--demo", "12", "--to", str(tmp_path), "--prompted", f"none={tmp_path}"]
    assert main(told) == 1
    assert "holds no model that transformers can read" in capsys.readouterr().err
