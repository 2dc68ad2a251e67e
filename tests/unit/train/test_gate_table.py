"""The gate table that evaluation writes is the one that serving reads."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="intervals are computed with numpy")

from podium_core.config.gate import load_gate
from podium_core.domain.errors import PodiumError
from podium_core.domain.plan import Plan, PlanSource, Step
from podium_train.evaluation.gate_table import gate_file, gate_rows
from podium_train.evaluation.gating import write_gate
from podium_train.evaluation.report import SuiteReport
from podium_train.evaluation.saving import save
from podium_train.evaluation.systems import RIVAL
from tests.unit.train.measured import line, suite, system

TODAY = date(2026, 11, 30)


def test_serving_reads_the_rows_and_keeps_plans_that_won(tmp_path: Path) -> None:
    plans = [line(k, True, "one", "two") for k in range(20)] + [
        line(k, False, "one", "two", "one") for k in range(20, 40)
    ]
    alone = [line(k, k >= 20) for k in range(40)]
    rows = gate_rows(system("c", plans), system("best", alone), tier="podium", measured_on=TODAY, seed=1)
    path = tmp_path / "gate.yaml"
    path.write_text(gate_file(rows))
    table = load_gate(path)
    assert table.rows == rows
    assert [(row.step_count, row.sample_count) for row in rows] == [(2, 20), (3, 20)]
    two, three = (Plan(tuple(Step("one", "") for _ in range(count)), PlanSource.MODEL) for count in (2, 3))
    kept, dropped = table.decide(two, "podium"), table.decide(three, "podium")
    assert kept is not None
    assert kept.keeps
    assert dropped is not None
    assert not dropped.keeps


def test_a_conductor_of_single_steps_gives_an_empty_table(tmp_path: Path) -> None:
    lines = [line(k, True) for k in range(5)]
    rows = gate_rows(system("c", lines), system("best", lines), tier="podium", measured_on=TODAY, seed=1)
    path = tmp_path / "gate.yaml"
    path.write_text(gate_file(rows))
    assert load_gate(path).rows == rows == ()


def test_every_training_seed_needs_its_rival_at_the_same_money() -> None:
    lines = [line(0, True, "one", "two")]
    with pytest.raises(ValueError, match="same money"):
        gate_rows(system("c", lines, lines), system("best", lines), tier="podium", measured_on=TODAY, seed=1)


def test_the_gate_is_measured_on_the_last_conductor_against_its_equal_in_money(tmp_path: Path) -> None:
    plans = [line(k, True, "one", "two") for k in range(20)]
    wrong = [line(k, False, "one", "two") for k in range(20)]
    runs = suite(
        system("supervised", wrong),
        system("RL", plans),
        system("RL, 2 rounds", wrong),
        system("best single, equal money", [line(k, False) for k in range(20)], marks=(RIVAL,)),
    )
    report = SuiteReport(runs, ["supervised", "RL", "RL, 2 rounds"])
    path = tmp_path / "gate.yaml"
    first = SuiteReport(suite(system("RL", plans)))
    write_gate(path, [first, report], seed=1, today=datetime(2026, 11, 30, tzinfo=UTC))
    (row,) = load_gate(path).rows
    assert (row.step_count, row.difference_low_ppm, row.measured_on) == (2, 1_000_000, "2026-11-30")


def test_a_full_disk_leaves_the_former_table(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    save(path, "before")
    path.with_name(".gate.yaml.part").mkdir()
    with pytest.raises(PodiumError, match=r"gate\.yaml could not be written") as caught:
        save(path, "after")
    assert caught.value.reason == "TRAIN_NOT_SAVED"
    assert path.read_text() == "before"
