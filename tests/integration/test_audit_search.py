"""Searching and exporting runs over HTTP: every filter, every format, nothing of others, and each look on record."""

import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from podium.plan.v1 import plan_pb2
from podium_audit.query import tables
from tests.fakes.audit_service import (
    RunningAudit,
    begin_request,
    end_request,
    open_request,
    running_audit,
    seal_request,
)

HOSTILE = "=cmd|' /C calc'!A0'; DROP TABLE runs; --"


@pytest.fixture
async def audit(tmp_path: Path, tls_dir: Path) -> AsyncIterator[RunningAudit]:
    async with running_audit(tmp_path, tls_dir) as running:
        await running.run("run_1")
        await running.run("run_2", requested_model=HOSTILE)
        denied = plan_pb2.Verdict(worker_id="w2", allowed=False, rule_id="tenant.regions.only")
        allowed = plan_pb2.Verdict(worker_id="w1", allowed=True, rule_id="default.allow")
        await running.call(
            "gateway", "OpenRun", open_request("run_3", principal_id="key2", verdicts=[allowed, denied])
        )
        begun = begin_request("run_3.1", "run_3", provider="bedrock", region="eu")
        await running.call("router", "BeginAttempt", begun)
        await running.call("router", "EndAttempt", end_request("run_3.1", "run_3"))
        failed = seal_request("run_3", outcome=plan_pb2.RUN_OUTCOME_FAILED, error_reason="PROVIDER_FAILED")
        await running.call("gateway", "Seal", failed)
        await running.run("run_4", until="open")
        await running.run("run_5", tenant_id="other", principal_id="key3")
        yield running


async def found(audit: RunningAudit, query: str, key: str = "auditor") -> list[str]:
    status, page = await audit.get(f"/v1/runs?{query}", key)
    assert status == 200, page
    assert page["total"] == len(page["runs"])
    return [run["run_id"] for run in page["runs"]]


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("", ["run_4", "run_3", "run_2", "run_1"]),
        ("worker=w1", ["run_3", "run_2", "run_1"]),
        ("provider=bedrock&region=eu", ["run_3"]),
        ("rule=tenant.regions.only", ["run_3"]),
        ("outcome=failed", ["run_3"]),
        ("outcome=open", ["run_4"]),
        ("outcome=answered&worker=w1&model=podium", ["run_1"]),
        (f"model={quote(HOSTILE)}", ["run_2"]),
        ("principal=key2", ["run_3"]),
        ("kind=embed", []),
        ("min_usd=0.00004&max_usd=0.00004", ["run_3", "run_2", "run_1"]),
        ("min_usd=0.000041", []),
        ("from=2020-01-01&to=2100-01-01T00:00:00%2B02:00", ["run_4", "run_3", "run_2", "run_1"]),
        ("to=2020-01-01", []),
        (f"worker={quote(HOSTILE)}&rule=%25&provider=%27", []),
    ],
)
async def test_each_filter_finds_what_it_says(audit: RunningAudit, query: str, runs: list[str]) -> None:
    assert await found(audit, query) == runs


async def test_a_key_finds_its_own_runs_and_a_tenant_its_own(audit: RunningAudit) -> None:
    assert await found(audit, "worker=w1", "key2") == ["run_3"]
    assert await found(audit, "worker=w1", "key3") == ["run_5"]
    status, refused = await audit.get("/v1/runs?principal=key1", "key2")
    assert (status, "principal" in json.dumps(refused)) == (400, True)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("outcome=good", "outcome"),
        ("kind=x", "kind"),
        ("from=yesterday", "from"),
        ("to=2026-02-30", "to"),
        ("min_usd=-1", "min_usd"),
        ("max_usd=1e999", "max_usd"),
        ("min_usd=0.0000001", "min_usd"),
        ("max_usd=NaN", "max_usd"),
        ("worker=", "worker"),
        (f"rule={'x' * 300}", "rule"),
        ("order=asc", "order"),
        ("before=run_5", "before"),
    ],
)
async def test_a_filter_that_cannot_be_is_named(audit: RunningAudit, query: str, name: str) -> None:
    for page in ("/v1/runs", "/v1/runs.jsonl"):
        status, refused = await audit.get(f"{page}?{query}")
        assert status == 400
        assert name in refused["error"]["message"]


async def test_pages_follow_each_other_within_a_search(audit: RunningAudit) -> None:
    status, page = await audit.get("/v1/runs?worker=w1&limit=2")
    assert (status, page["total"], page["next_before"]) == (200, 3, "run_2")
    status, page = await audit.get(f"/v1/runs?worker=w1&limit=2&before={page['next_before']}")
    assert ([run["run_id"] for run in page["runs"]], page["next_before"]) == (["run_1"], None)


async def test_three_formats_hold_the_same_rows(audit: RunningAudit) -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    _, listed = await audit.get("/v1/runs?worker=w1")
    _, lines = await audit.get("/v1/runs.jsonl?worker=w1")
    assert [json.loads(line) for line in lines.splitlines()] == listed["runs"]
    _, text = await audit.get("/v1/runs.csv?worker=w1")
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    assert [row["run_id"] for row in rows] == ["run_3", "run_2", "run_1"]
    assert rows[1]["requested_model"] == f"'{HOSTILE}", "no spreadsheet takes it for a formula"
    _, data = await audit.get("/v1/runs.parquet?worker=w1")
    assert pyarrow.read_table(io.BytesIO(data)).to_pylist() == listed["runs"]


async def test_an_export_goes_on_where_a_file_ended(
    audit: RunningAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium_audit.query.http._EXPORTED_AT_ONCE", 1)
    _, whole = await audit.get("/v1/runs.csv")
    first, _, rest = whole.partition(b"run_3")
    _, more = await audit.get("/v1/runs.csv?before=run_4&header=false")
    assert first + more == whole
    assert rest


async def test_nothing_found_is_an_empty_file(audit: RunningAudit) -> None:
    assert await audit.get("/v1/runs.jsonl?worker=nobody") == (200, b"")
    assert (await audit.get("/v1/runs.csv?worker=nobody"))[1] == ",".join(tables.COLUMNS).encode() + b"\r\n"
    status, data = await audit.get("/v1/runs.parquet?worker=nobody")
    assert (status, data[:4]) == (200, b"PAR1")


async def test_without_its_library_parquet_says_what_to_install(
    audit: RunningAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    status, refused = await audit.get("/v1/runs.parquet")
    assert status == 400
    assert "podium[parquet]" in refused["error"]["message"]


async def test_every_search_and_export_is_on_record_without_its_values(audit: RunningAudit) -> None:
    await audit.get(f"/v1/runs?worker={quote(HOSTILE)}&outcome=failed")
    await audit.get("/v1/runs.csv?model=podium")
    _, reads = await audit.get("/v1/reads")
    actions = [read["action"] for read in reads["reads"]]
    assert actions[:2] == ["export_list", "search"] or actions[1:3] == ["export_list", "search"]
    assert HOSTILE not in json.dumps(reads)


def _rows(count: int) -> list[tables.Page]:
    row: dict[str, Any] = dict.fromkeys(tables.COLUMNS, None)
    return [[row | {"run_id": f"run_{number}", "cost_usd_micros": number}] for number in range(count)]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_long_file_comes_piece_by_piece(kind: str) -> None:
    write = tables.writer(kind, with_header=True)
    taken = 0
    pages = iter(_rows(50))
    pieces = write(pages)
    first = next(pieces)
    assert len(list(pages)) == 49, "the first piece took one page"
    taken += len(first)
    assert taken
