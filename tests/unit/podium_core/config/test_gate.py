"""`gate.yaml`: read exactly, and every mistake named by its line."""

from pathlib import Path

import pytest

from podium_core.config.gate import load_gate
from podium_core.domain.errors import PodiumError
from podium_core.domain.gate import GateRow

ROW = "{tier: podium, steps: 2, difference_low: 0.012, n: 400, measured_on: 2026-11-30}"


def _written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "gate.yaml"
    path.write_text(text)
    return path


def test_rows_are_read_and_the_digest_follows_them(tmp_path: Path) -> None:
    table = load_gate(_written(tmp_path, f"rows:\n  - {ROW}\n"))
    assert table.rows == (GateRow("podium", 2, 12_000, 400, "2026-11-30"),)
    assert len(table.digest) == 64
    assert table.digest != load_gate(_written(tmp_path, "rows:\n")).digest


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ROW.replace("steps: 2", "steps: 1"), "steps"),
        (ROW.replace("0.012", "nan"), "difference_low"),
        (ROW.replace("tier: podium", "tier: podium-fast"), "tier"),
        (ROW.replace("n: 400", "n: 400, surprise: 1"), "there is no such field"),
        (f"{ROW}\n  - {ROW}", "two rows for podium with 2 steps"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(PodiumError) as caught:
        load_gate(_written(tmp_path, f"rows:\n  - {row}\n"))
    assert "gate.yaml line" in caught.value.message
    assert said in caught.value.message
