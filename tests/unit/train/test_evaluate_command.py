"""`podium-train evaluate` and `results`: any folder in the format, one document, one page."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="intervals are computed with numpy")

from podium_core.plan_model.weights import packed
from podium_train.__main__ import main
from podium_train.evaluation.bars import findings
from podium_train.evaluation.conclusions import concluded
from podium_train.evaluation.page import page
from podium_train.evaluation.report import Provenance, document, written
from podium_train.evaluation.systems import ABLATION
from tests.fakes.plan_models import random_model
from tests.unit.train.measured import line, suite, system
from tests.unit.train.recorded import write_json, write_lines

PLAIN = "workers,best-single,random,family-table,self-consistency,majority,moa,self-refine,oracle"
MODELS = ["x/strong", "x/sums", "x/words", "deepseek/deepseek-r1"]


def data(root: Path) -> Path:
    """Write a folder of made-up recordings: ten families, four models that differ by family."""
    rng = random.Random(4)
    gym = root / "reasoning_gym_outcomes"
    write_json(gym / "meta.json", {"models": MODELS})
    for level, chance in (("easy", 0.8), ("hard", 0.4)):
        rows: list[dict[str, object]] = []
        questions: list[dict[str, object]] = []
        for family in (f"{kind}_{k}" for k in range(5) for kind in ("sums", "words")):
            for number in range(14):
                name = f"{level}/{family}/{number}"
                right = [
                    rng.random() < chance,
                    family.startswith("sums"),
                    family.startswith("words"),
                    rng.random() < 0.5,
                ]
                answers = {
                    str(k): [[1.0 if ok else 0.0, "yes" if ok else f"no {k}", 80]]
                    for k, ok in enumerate(right)
                }
                rows.append({"id": name, "c": "made up", "w": answers})
                questions.append({"id": name, "q": f"{level} {family} question {number}", "a": "yes"})
        write_lines(gym / f"outcomes_{level}.jsonl", rows)
        write_lines(gym / f"questions_{level}.jsonl", questions)
    return root


def evaluate(tmp_path: Path, *more: str) -> int:
    given = ["--data", str(data(tmp_path / "data")), "--to", str(tmp_path / "out"), "--resamples", "200"]
    return main(["evaluate", *given, *more])


def test_any_folder_in_the_format_becomes_one_document_and_one_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(tmp_path, "--systems", PLAIN) == 0
    content: dict[str, Any] = json.loads((tmp_path / "out" / "replay.json").read_text())
    names = [found["name"] for found in content["suites"]]
    assert {"rg-clean", "rg-known", "rg-unseen-workers", "rg-all-easy", "rg-size-2"} <= set(names)
    assert not any(name.startswith(("mmlu", "zeroeval")) for name in names)
    assert "--systems" in content["command"]
    assert str(tmp_path) not in json.dumps(content)
    whole = next(found for found in content["suites"] if found["name"] == "rg-all-easy")
    by_name = {found["name"]: found for found in whole["systems"]}
    assert by_name["oracle"]["accuracy"] >= max(found["accuracy"] for found in by_name.values())
    assert by_name["MoA"]["calls"] == 5
    assert by_name["self-refine x 5"]["simulated_share"] == 1
    assert by_name["true-family table"]["accuracy"] > by_name["best single"]["accuracy"]
    assert not (tmp_path / "out" / "gate.yaml").exists()
    assert main(["results", "--measurements", str(tmp_path / "out"), "--page", str(tmp_path / "r.md")]) == 0
    text = (tmp_path / "r.md").read_text()
    exact, _, simulated = text.partition("**Simulated**")
    assert "| MoA |" in exact
    assert "| self-refine x 5 |" not in exact
    assert "| self-refine x 5 |" in simulated
    assert f"$ {content['command']}" in text


def test_the_same_command_gives_the_same_figures(tmp_path: Path) -> None:
    chosen = ("--systems", "best-single,random", "--suites", "rg-clean")
    assert evaluate(tmp_path, *chosen) == 0
    first = (tmp_path / "out" / "replay.json").read_text()
    assert evaluate(tmp_path, *chosen) == 0
    assert json.loads(first)["suites"] == json.loads((tmp_path / "out" / "replay.json").read_text())["suites"]


def test_demo_tasks_need_no_data_and_no_specialist_does_composites_alone(tmp_path: Path) -> None:
    assert main(["evaluate", "--demo", "60", "--to", str(tmp_path / "out"), "--resamples", "200"]) == 0
    content = json.loads((tmp_path / "out" / "demo.json").read_text())
    composite = {found["name"]: found["accuracy"] for found in content["suites"][0]["systems"]}
    assert composite["best single"] <= 0.4
    assert composite["rules planner"] >= 0.9
    assert content["command"] == "podium-train evaluate --demo 60 --to out --resamples 200"


def test_a_conductor_on_demo_tasks_gets_a_gate_table_of_its_own(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    for name, content in packed(random_model(3)).items():
        (weights / name).write_bytes(content)
    told = ["evaluate", "--demo", "40", "--to", str(tmp_path / "out"), "--resamples", "100"]
    assert main([*told, "--conductor", f"made up={weights}"]) == 0
    assert "tier: podium" in (tmp_path / "out" / "gate-demo.yaml").read_text()
    assert not (tmp_path / "out" / "gate.yaml").exists()


def test_plots_are_drawn_where_matplotlib_is(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib (requirements/train.txt)")
    assert evaluate(tmp_path, "--systems", "best-single,oracle", "--suites", "rg-clean,rg-size") == 0
    drawn = sorted(path.name for path in (tmp_path / "out").glob("*.png"))
    assert drawn == ["replay-rg-clean-pareto.png", "replay-rg-size.png"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--systems", "best-single,magic"), "--systems does not know magic"),
        (("--suites", "mmlu"), "--suites names no suite that this data folder has items for"),
        (("--ablations", "RL", "--systems", "random"), "--ablations names RL"),
    ],
)
def test_what_cannot_be_measured_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], told: str
) -> None:
    assert evaluate(tmp_path, *more) == 1
    assert told in capsys.readouterr().err


def test_a_missing_or_broken_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--data", str(tmp_path), "--to", str(tmp_path / "out")]) == 1
    assert "the data folder holds none of" in capsys.readouterr().err
    gym = data(tmp_path / "data") / "reasoning_gym_outcomes"
    (gym / "outcomes_easy.jsonl").write_text('{"id": "easy/sums_0/0"}\n')
    assert main(["evaluate", "--data", str(tmp_path / "data"), "--to", str(tmp_path / "out")]) == 1
    assert "outcomes_easy.jsonl:1" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_without_weights_is_no_conductor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate(tmp_path, "--systems", "random", "--conductor", f"RL={tmp_path}") == 1
    assert "holds no weights of an embedded Conductor" in capsys.readouterr().err
    call = ["evaluate", "--data", str(tmp_path / "data"), "--demo", "5", "--to", str(tmp_path)]
    assert main(call) == 1
    assert "one of both" in capsys.readouterr().err


def test_results_refuses_what_is_no_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["results", "--measurements", str(tmp_path), "--page", str(tmp_path / "r.md")]
    assert main(call) == 1
    (tmp_path / "other.json").write_text("{}")
    assert main(call) == 1
    assert "other.json is no measurement" in capsys.readouterr().err
    assert not (tmp_path / "r.md").exists()


def measurement(*, wins: bool) -> dict[str, Any]:
    """Return a document of three seeds of a Conductor that wins, or does not."""
    items = range(60)
    runs = suite(
        system("best single", [line(k, False) for k in items]),
        system("TF-IDF + logistic", [line(k, False) for k in items]),
        system("supervised", *[[line(k, False) for k in items]] * 3),
        system("RL", *[[line(k, wins, own=5) for k in items]] * 3),
        system("RL, shuffled cards", *[[line(k, False) for k in items]] * 3, marks=(ABLATION,)),
        name="rg-unseen-workers",
    )
    report = concluded(runs, ["supervised", "RL"], seed=1, resamples=200, is_whole=False)
    return document(
        Provenance("replay", "podium-train evaluate", "2026-11-30", {"data": "ab" * 32}), [report]
    )


@pytest.mark.parametrize("wins", [True, False])
def test_bars_are_judged_by_the_last_conductor_and_its_intervals(tmp_path: Path, wins: bool) -> None:
    content = measurement(wins=wins)
    found = {f.bar: f for f in findings({one["name"]: one for one in content["suites"]})}
    unseen = [f for bar, f in found.items() if bar.startswith("unseen workers")]
    assert [f.holds for f in unseen] == [wins, wins]
    assert found["with shuffled cards the gain on unseen workers vanishes"].holds
    assert next(f for bar, f in found.items() if bar.startswith("families and workers")).holds is None
    (tmp_path / "replay.json").write_text(written(content))
    text = page(tmp_path)
    assert ("**does not hold**" in text) is not wins
    assert "| RL less supervised |" in text
    stages = text.partition("## Stages of training")[2].partition("\n## ")[0]
    assert "| RL | 100.0 |" in stages
    assert "| supervised: " in stages
    assert "| RL, shuffled cards (ablation) |" in text
