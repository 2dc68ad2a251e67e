"""`content: commitments`: the log proves what was said, and no file holds a word of it, not even sealed."""

import json
import secrets
import sqlite3
from pathlib import Path

import pytest

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import conversation_service_pb2 as conversation_pb
from podium_core.domain.errors import Code, PodiumError
from podium_verifier.verify import Verified, verify_export
from tests.fakes.audit_service import RunningAudit, running_audit, settings_for

CANARY = f"the patient's name is {secrets.token_hex(8)}".encode()
LONG = secrets.token_bytes(300_000).hex().encode()


def _set_mode(home: Path, tls_dir: Path, mode: str) -> None:
    settings_for(home, tls_dir)
    file = home / "tenants.yaml"
    tenants = json.loads(file.read_text())
    tenants["tenants"][0]["content"] = mode
    file.write_text(json.dumps(tenants))


async def _run(audit: RunningAudit, run_id: str) -> None:
    question = [pb.Content(part_id="question", name="question", media_type="text/plain", data=CANARY + LONG)]
    await audit.run(run_id, contents=question)


def _stored(home: Path) -> tuple[int, int]:
    """Return how many content parts the database has, and the size of all its files."""
    with sqlite3.connect(f"file:{home / 'data' / 'log.db'}?mode=ro", uri=True) as database:
        ((count,),) = database.execute("SELECT count(*) FROM contents")
    return count, sum(path.stat().st_size for path in (home / "data").iterdir())


@pytest.mark.parametrize(("mode", "parts"), [("sealed", 3), ("commitments", 0)])
async def test_no_file_holds_a_word(tmp_path: Path, tls_dir: Path, mode: str, parts: int) -> None:
    _set_mode(tmp_path, tls_dir, mode)
    async with running_audit(tmp_path, tls_dir) as audit:
        await _run(audit, "run_1")
        count, size = _stored(tmp_path)
        assert count == parts
        assert (size < len(LONG)) == (mode == "commitments"), "the question alone is longer than all files"
        _, page = await audit.get("/v1/runs/run_1", "key1")
        _, export = await audit.get("/v1/runs/run_1/export", "key1")
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [data for data in files if CANARY in data or b"Four." in data]
    shown = [part.get("not_kept", False) for part in page["contents"]]
    assert shown == [mode == "commitments"] * 3
    commitments = [entry["commitment"] for r in page["records"] for entry in r["record"]["contents"]]
    assert len(set(commitments)) == 3
    assert isinstance(verify_export(export), Verified)


async def test_a_run_goes_on_without_its_words_and_a_restart_says_so(tmp_path: Path, tls_dir: Path) -> None:
    _set_mode(tmp_path, tls_dir, "commitments")
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1", until="open")
    async with running_audit(tmp_path, tls_dir) as audit:
        with pytest.raises(PodiumError) as caught:
            await audit.run("run_1", until="begin")
    assert (caught.value.code, caught.value.reason) == (Code.CONFLICT, "CONTENT_NOT_KEPT")


async def test_nothing_of_a_conversation_is_stored_either(tmp_path: Path, tls_dir: Path) -> None:
    _set_mode(tmp_path, tls_dir, "commitments")
    item = conversation_pb.PutItemRequest(
        tenant_id="acme",
        kind=conversation_pb.ITEM_KIND_RESPONSE,
        item_id="resp_1",
        data=CANARY,
        ttl_ms=60_000,
    )
    async with running_audit(tmp_path, tls_dir) as audit:
        with pytest.raises(PodiumError) as caught:
            await audit.call("gateway", "PutItem", item)
        assert caught.value.reason == "CONTENT_NOT_KEPT"
        item.tenant_id = "other"
        await audit.call("gateway", "PutItem", item)
