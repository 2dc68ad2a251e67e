"""`podium runs` with filters and files, against a real audit service."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podium_cli.__main__ import main
from tests.fakes.audit_service import RunningAudit, running_audit


@pytest.fixture
async def audit(tmp_path: Path, tls_dir: Path) -> AsyncIterator[RunningAudit]:
    async with running_audit(tmp_path, tls_dir) as running:
        for number in range(5):
            await running.run(f"run_{number}", requested_model="podium-max" if number % 2 else "podium")
        yield running


async def runs(audit: RunningAudit, *words: str) -> int:
    options = ["--audit-url", audit.url, "--api-key", audit.tokens["auditor"]]
    return await asyncio.to_thread(main, ["--home", str(audit.home), "runs", *words, *options])


def ids(file: Path) -> list[str]:
    return [json.loads(line)["run_id"] for line in file.read_text().splitlines()]


async def test_filters_narrow_the_list_and_the_total(
    audit: RunningAudit, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await runs(audit, "--model", "podium-max", "--outcome", "answered") == 0
    told = capsys.readouterr().out
    assert "2 of 2 runs" in told
    assert "run_1" in told
    assert "run_2" not in told


async def test_a_file_that_was_cut_off_is_completed_by_the_same_command(
    audit: RunningAudit, tmp_path: Path
) -> None:
    file = tmp_path / "list.jsonl"
    assert await runs(audit, "--worker", "w1", "--out", str(file)) == 0
    whole = file.read_bytes()
    assert ids(file) == ["run_4", "run_3", "run_2", "run_1", "run_0"]
    for cut in (len(whole) - 7, whole.index(b"\n") + 1, 3, 0):
        file.write_bytes(whole[:cut] if cut != 3 else whole[:40])
        assert await runs(audit, "--worker", "w1", "--out", str(file)) == 0
        assert file.read_bytes() == whole
    table = tmp_path / "list.csv"
    assert await runs(audit, "--out", str(table)) == 0
    text = table.read_bytes()
    table.write_bytes(text[: text.index(b"run_2") + 3])
    assert await runs(audit, "--out", str(table)) == 0
    assert table.read_bytes() == text


async def test_a_file_of_something_else_stays_as_it_is(
    audit: RunningAudit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("mine.csv", "mine.jsonl", "mine.parquet"):
        file = tmp_path / name
        file.write_text("my own words\n")
        assert await runs(audit, "--out", str(file)) == 1
        assert file.read_text() == "my own words\n"
    assert await runs(audit, "--out", str(tmp_path / "list.xlsx")) == 1
    assert ".parquet" in capsys.readouterr().err


async def test_a_wrong_filter_is_told_in_the_services_words(
    audit: RunningAudit, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await runs(audit, "--outcome", "good") == 1
    assert "outcome must be one of" in capsys.readouterr().err
