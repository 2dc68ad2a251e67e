"""Grades in the log: after the seal, by the run's own tenant, counted once per run, kept over restarts."""

from pathlib import Path
from typing import Any

import pytest

from podium.audit.v1 import grade_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_verifier.verify import Verified, verify_export
from tests.fakes.audit_service import RunningAudit, running_audit


def _grade(run_id: str = "run_1", score_ppm: int = 800_000, **changes: Any) -> pb.GradeRequest:
    values: dict[str, Any] = {
        "event_id": f"grade.{run_id}.{score_ppm}",
        "tenant_id": "acme",
        "run_id": run_id,
        "principal_id": "key1",
        "score_ppm": score_ppm,
    }
    return pb.GradeRequest(**{**values, **changes})


async def _tallies(audit: RunningAudit) -> list[tuple[str, str, int, int, int, int]]:
    answer = await audit.call("gateway", "ListGradeTallies", pb.ListGradeTalliesRequest())
    return [
        (t.tenant_id, t.tier, t.step_count, t.grade_count, t.sum_ppm, t.sum_squares_ppm)
        for t in answer.tallies
    ]


async def test_the_newest_grade_of_a_run_counts_and_the_log_keeps_all(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        await audit.run("run_2")
        await audit.call("gateway", "Grade", _grade(comment="nearly; the unit is wrong"))
        await audit.call("gateway", "Grade", _grade("run_2", 1_000_000))
        assert await _tallies(audit) == [("acme", "podium", 1, 2, 1_800_000, 1_640_000)]
        await audit.call("gateway", "Grade", _grade(score_ppm=0))
        assert await _tallies(audit) == [("acme", "podium", 1, 1 + 1, 1_000_000, 1_000_000)]
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.call("gateway", "Grade", _grade(score_ppm=500_000))
        assert await _tallies(audit) == [("acme", "podium", 1, 2, 1_500_000, 1_250_000)]
        _, page = await audit.get("/v1/runs/run_1", "key1")
        _, export = await audit.get("/v1/runs/run_1/export", "key1")
    notes = [r["record"] for r in page["records"] if r["record"]["type"] == "note"]
    assert [note["facts"]["facts"]["score_ppm"] for note in notes] == ["800000", "0", "500000"]
    assert [note["run_seq"] for note in notes] == [None] * 3, "the sealed run itself is as it was"
    (comment,) = [part for part in page["contents"] if part["name"] == "comment"]
    assert comment["text"] == "nearly; the unit is wrong"
    assert isinstance(verify_export(export), Verified)


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"tenant_id": "other"}, Code.NOT_FOUND, "RUN_UNKNOWN"),
        ({"tenant_id": "other", "of_any_key": True}, Code.NOT_FOUND, "RUN_UNKNOWN"),
        ({"principal_id": "key2"}, Code.NOT_FOUND, "RUN_UNKNOWN"),
        ({"run_id": "run_9"}, Code.NOT_FOUND, "RUN_UNKNOWN"),
        ({"run_id": "run_open"}, Code.CONFLICT, "RUN_OPEN"),
        ({"score_ppm": 1_000_001}, Code.INVALID_REQUEST, "INVALID_REQUEST"),
        ({"comment": "x" * 20_000}, Code.TOO_LARGE, "TOO_LARGE"),
    ],
)
async def test_what_cannot_be_graded_is_refused_and_not_counted(
    tmp_path: Path, tls_dir: Path, changes: dict[str, Any], code: Code, reason: str
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        await audit.run("run_open", until="open")
        with pytest.raises(PodiumError) as caught:
            await audit.call("gateway", "Grade", _grade(**changes))
        assert (caught.value.code, caught.value.reason) == (code, reason)
        assert await _tallies(audit) == []


async def test_a_grader_grades_what_another_key_has_asked(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        await audit.call("gateway", "Grade", _grade(principal_id="panel", of_any_key=True))
        assert await _tallies(audit) == [("acme", "podium", 1, 1, 800_000, 640_000)]
