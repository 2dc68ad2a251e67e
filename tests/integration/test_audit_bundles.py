"""Bundles: complete, without a stranger's facts, and proven by the verifier that they carry."""

import asyncio
import io
import json
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podium_audit.bundles.archive import Archive
from podium_core.domain.errors import PodiumError
from podium_verifier.bundle import VerifiedBundle, verify_bundle
from podium_verifier.faults import ExitCode, Fault
from podium_verifier.summary import render_bundle
from podium_verifier.trust import Trust
from tests.fakes.audit_service import RunningAudit, running_audit

Files = dict[str, bytes]


async def vkey_of(audit: RunningAudit) -> str:
    return str((await audit.get("/v1/vkey"))[1].decode().strip())


def files_of(data: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(files: Files) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def november() -> str:
    """A time that holds now."""
    now = datetime.now(UTC)
    return f"from={now - timedelta(days=1):%Y-%m-%d}&to={now + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"


async def some_runs(audit: RunningAudit) -> None:
    await audit.run("run_1")
    await audit.run("foreign_1", tenant_id="other", principal_id="key3")
    await audit.run("run_2", principal_id="key2")
    await audit.run("foreign_2", tenant_id="other", principal_id="key3")
    await audit.run("run_3", until="end")
    await audit.get("/v1/runs/run_1", "auditor")


async def test_runs_of_a_case_are_proven_by_the_verifier_in_the_bundle(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await some_runs(audit)
        status, data = await audit.get("/v1/bundle?run=run_1&case=C-17", "key1")
        assert status == 200, data
        vkey = await vkey_of(audit)
        _, page = await audit.get("/v1/runs/run_1", "key1")
        assert page["records"][-2]["record"]["facts"]["action"] == "export"
    (tmp_path / "b.zip").write_bytes(data)
    files = files_of(data)
    (tmp_path / "verifier.pyz").write_bytes(files["verifier.pyz"])
    assert b"verifier.pyz" in files["README.txt"]
    assert b"Tree and checkpoint" in files["log-format.md"]
    assert json.loads(files["record.schema.json"])
    assert files["keys.txt"].decode().strip() == vkey
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(tmp_path / "verifier.pyz"), str(tmp_path / "b.zip"), "--key", vkey,
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said
    assert "bundle of 1 run of the tenant acme" in said
    assert "C-17" in said
    result = verify_bundle(data, Trust(vkey))
    assert isinstance(result, VerifiedBundle), result
    assert result.runs[0].header.with_content, "a client bundles its own runs with their words"


async def test_all_runs_of_a_time_come_without_a_gap_and_without_strangers(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await some_runs(audit)
        status, data = await audit.get(f"/v1/bundle?{november()}", "auditor")
        assert status == 200, data
        vkey = await vkey_of(audit)
        _, again = await audit.get(f"/v1/bundle?{november()}&since=3", "auditor")
        kept = "".join((await audit.get("/checkpoint"))[1].decode())
    result = verify_bundle(data, Trust(vkey))
    assert isinstance(result, VerifiedBundle), result
    assert [run.header.run_id for run in result.runs] == ["run_1", "run_2"]
    assert not any(run.header.with_content for run in result.runs), "an auditor reads no words"
    assert result.manifest["open_runs"] == ["run_3"]
    assert result.record_count == result.manifest["last_seq"] - result.manifest["first_seq"] + 1
    assert "run_3: was still open" in render_bundle(result)
    whole = b"".join(
        content for name, content in files_of(data).items() if name.endswith((".jsonl", ".json"))
    )
    assert b"foreign" not in whole
    assert b'\\"other\\"' not in whole
    assert isinstance(verify_bundle(again, Trust(vkey)), VerifiedBundle)
    fault = verify_bundle(again, Trust(vkey, kept=(kept,)))
    assert isinstance(fault, Fault)
    assert fault.code is ExitCode.USAGE


def edited(files: Files, name: str, edit: Callable[[Any], object]) -> Files:
    value = json.loads(files[name])
    edit(value)
    return {
        **files,
        name: json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(),
    }


async def test_whatever_is_changed_in_a_bundle_is_found(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await some_runs(audit)
        _, data = await audit.get(f"/v1/bundle?{november()}", "auditor")
        _, other = await audit.get("/v1/bundle?run=run_1", "auditor")
        vkey = await vkey_of(audit)
    files = files_of(data)

    def code(bent: Files | bytes, key: str = vkey) -> ExitCode:
        result = verify_bundle(bent if isinstance(bent, bytes) else zipped(bent), Trust(key))
        return result.code if isinstance(result, Fault) else result.exit_code

    assert code(files) is ExitCode.OK
    for name, content in files.items():
        if name not in ("manifest.json", "manifest.proof.json"):
            flipped = bytes([content[0] ^ 1]) + content[1:]
            assert code({**files, name: flipped}) is ExitCode.NOT_IN_LOG, name
        assert code({each: data for each, data in files.items() if each != name}) is ExitCode.TAIL, name
    assert code({**files, "more.txt": b""}) is ExitCode.MALFORMED
    assert code(edited(files, "manifest.json", lambda m: m.update(case_id="C-1"))) is ExitCode.NOT_IN_LOG
    assert code(edited(files, "manifest.json", lambda m: m["runs"].pop())) is ExitCode.TAIL
    assert code(edited(files, "manifest.json", lambda m: m.update(last_seq=99))) is ExitCode.TAIL
    assert code(edited(files, "manifest.json", lambda m: m.update(first_seq=99))) is ExitCode.ORDER
    assert code(edited(files, "manifest.json", lambda m: m.update(tenant_id="x"))) is ExitCode.ORDER
    assert code(edited(files, "manifest.json", lambda m: m.pop("files"))) is ExitCode.MALFORMED
    proof = files_of(other)["manifest.proof.json"]
    assert code({**files, "manifest.proof.json": proof}) is ExitCode.NOT_IN_LOG
    assert code(edited(files, "manifest.proof.json", lambda p: p["proof"].pop())) is ExitCode.NOT_IN_LOG
    assert code(edited(files, "manifest.proof.json", lambda p: p.update(note="x"))) is ExitCode.CHECKPOINT
    stranger = "podium.local/audit+f81bb8e0+AZJOoKcHPE6wJ5WGpmtIPSDWPvmeHxRmWlS0tpXFzuQm"
    assert code(files, stranger) in (ExitCode.CHECKPOINT, ExitCode.USAGE)
    for cut in (len(data) // 2, len(data) - 30, 10):
        assert code(data[:cut]) is ExitCode.TAIL
    assert verify_bundle(b"PK nonsense", Trust()) is not None


REFUSALS = [
    ("", "auditor", 400, "name runs"),
    ("run=run_1&from=2026-01-01&to=2026-02-01", "auditor", 400, "name runs"),
    ("from=2026-01-01", "auditor", 400, "name runs"),
    ("from=yesterday&to=2026-02-01", "auditor", 400, "UTC day"),
    ("from=2026-13-01&to=2026-02-01", "auditor", 400, "UTC day"),
    ("run=run_1&run=run_1", "auditor", 400, "twice"),
    ("run=run_1&case=%00", "auditor", 400, "case"),
    ("run=run_1&since=999", "auditor", 400, "since"),
    ("run=run_1&x=1", "auditor", 400, "unknown"),
    ("run=run_9", "auditor", 404, "no such run"),
    ("run=run_1", "key2", 404, "no such run"),
    ("run=run_1", "key3", 404, "no such run"),
    ("from=2020-01-01&to=2020-02-01", "auditor", 404, "no run was opened"),
    ("from=2020-01-01&to=2120-02-01", "key1", 403, "auditor"),
]


async def test_a_bundle_is_refused_with_what_to_mend(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        for query, key, status, says in REFUSALS:
            got, body = await audit.get(f"/v1/bundle?{query}", key)
            assert (got, says in body["error"]["message"]) == (status, True), body


def test_a_bundle_that_would_be_too_large_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "b.zip").open("w+b") as file:
        archive = Archive(file, _room=10)
        assert b"".join(archive.add("a", (b"12345",))) == b"12345"
        with pytest.raises(PodiumError, match="fewer runs"):
            list(archive.add("b", (b"123456",)))


async def test_erased_words_are_said_to_be_erased_by_export_and_bundle(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        await audit.run("run_2")
        order = {"run_ids": ["run_1"], "basis": "subject_request"}
        status, answer = await audit.post("/v1/erasures", "officer", order)
        assert status == 200, answer
        _, page = await audit.get("/v1/runs/run_1", "key1")
        leaf = page["erased_under_leaf"]
        _, export = await audit.get("/v1/runs/run_1/export", "key1")
        _, bundle = await audit.get("/v1/bundle?run=run_1&run=run_2", "key1")
        vkey = await vkey_of(audit)
        left = {file.name for file in (tmp_path / "data").iterdir()}
    assert not any("bundle" in name or name.startswith("tmp") for name in left)
    for data in (export, bundle):
        file = tmp_path / "file"
        file.write_bytes(data)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "podium_verifier", str(file), "--key", vkey, stdout=asyncio.subprocess.PIPE
        )
        said = (await process.communicate())[0].decode()
        assert process.returncode == ExitCode.ERASED
        assert f"erased under leaf {leaf}" in said
