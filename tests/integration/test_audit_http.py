"""Reading the log over HTTP: whose runs, in which form, and that every read is a record."""

import asyncio
import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from podium.audit.v1 import audit_service_pb2 as pb
from podium_core.domain.record import canonical
from podium_verifier.verify import Verified, verify_export
from tests.fakes.audit_service import RunningAudit, begin_request, end_request, running_audit, seal_request
from tests.fakes.waiting import PATIENCE_S


async def two_runs(audit: RunningAudit) -> None:
    await audit.run("run_1")
    await audit.run("run_2", principal_id="key2")
    await audit.run("run_3", tenant_id="other", principal_id="key3")


def lines_of(export: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export.splitlines()]


async def test_keys_see_their_own_runs_and_auditors_all_of_their_tenant(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await two_runs(audit)
        for key, visible in (
            ("key1", ["run_1"]),
            ("key2", ["run_2"]),
            ("auditor", ["run_2", "run_1"]),
            ("key3", ["run_3"]),
        ):
            status, page = await audit.get("/v1/runs", key)
            assert (status, [run["run_id"] for run in page["runs"]]) == (200, visible)
            assert page["total"] == len(visible)
            for run_id in ("run_1", "run_2", "run_3", "run_9"):
                expected = 200 if run_id in visible else 404
                assert (await audit.get(f"/v1/runs/{run_id}", key))[0] == expected
                assert (await audit.get(f"/v1/runs/{run_id}/export", key))[0] == expected


async def test_without_a_valid_key_there_is_nothing(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        for path in ("/v1/runs", "/v1/runs/run_1", "/v1/runs/run_1/export", "/v1/checkpoint", "/v1/vkey"):
            for key in ("", "podium_key1_" + "A" * 43, audit.tokens["key1"] + "x"):
                status, body = await audit.get(path, key)
                assert (status, body["error"]["code"]) == (401, "UNAUTHENTICATED")
        for path in ("/healthz", "/readyz"):
            assert (await audit.get(path, ""))[0] == 200


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/v1/runs?limit=0", 400, "1 to 200"),
        ("/v1/runs?limit=ten", 400, "1 to 200"),
        ("/v1/runs?limit=99999999999999999999", 400, "1 to 200"),
        ("/v1/runs?limit=0000000001999999", 400, "1 to 200"),
        (f"/v1/runs?limit=000000001{'0' * 5_000}", 400, "1 to 200"),
        ("/v1/runs?before=run_9", 400, "before"),
        ("/v1/runs?befor=run_1", 400, "befor"),
        ("/v1/runs/run_1?x=1", 400, "unknown query parameter"),
        ("/v1/runs/run_1/export?content=maybe", 400, "true or false"),
        ("/v1/runs/%00%ff..%2f", 404, "no such run"),
        ("/v1/nothing", 404, "Not Found"),
        ("/", 404, "Not Found"),
    ],
)
async def test_a_bad_question_is_told_what_to_mend(
    tmp_path: Path, tls_dir: Path, path: str, status: int, says: str
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        got, body = await audit.get(path)
        assert got == status
        assert says in body["error"]["message"]


async def test_the_list_pages_and_shows_totals(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        for number in range(5):
            await audit.run(f"run_{number}", until="open" if number == 4 else "seal")
        _, first = await audit.get("/v1/runs?limit=2")
        assert [run["run_id"] for run in first["runs"]] == ["run_4", "run_3"]
        assert (first["total"], first["next_before"]) == (5, "run_3")
        assert first["runs"][0]["outcome"] is None
        assert {k: first["runs"][1][k] for k in ("outcome", "cost_usd_micros", "attempt_count")} == {
            "outcome": "answered",
            "cost_usd_micros": 40,
            "attempt_count": 1,
        }
        _, last = await audit.get("/v1/runs?limit=3&before=run_3")
        assert [run["run_id"] for run in last["runs"]] == ["run_2", "run_1", "run_0"]
        assert last["next_before"] is None


async def test_a_run_is_shown_with_content_and_receipt(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        _, page = await audit.get("/v1/runs/run_1", "key1")
        assert [each["record"]["type"] for each in page["records"]] == [
            "opened",
            "plan",
            "attempt_begun",
            "attempt_ended",
            "sealed",
            "read",
        ]
        assert page["records"][-1]["record"]["facts"] == {
            "action": "show",
            "principal_id": "key1",
            "with_content": True,
        }
        texts = {part["part_id"]: part for part in page["contents"]}
        assert texts["question"]["text"] == "What is 2+2?"
        assert texts["run_1.1/output"]["text"] == "Four."
        assert base64.b64decode(texts["run_1.1/inline"]["data"]) == b'{"q":""}'
        assert page["receipt"]["leaf_indices"] == [0, 1, 2, 3, 4]
        assert page["receipt"]["checkpoint"] == (await audit.get("/v1/checkpoint"))[1].decode()


async def test_an_export_has_exactly_the_promised_form(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await two_runs(audit)
        status, data = await audit.get("/v1/runs/run_1/export", "key1")
        vkey = (await audit.get("/v1/vkey"))[1].decode().strip()
        assert status == 200
    lines = lines_of(data)
    assert data == b"".join(canonical(line) + b"\n" for line in lines)
    assert [line["line"] for line in lines] == [
        "header",
        "checkpoint",
        *["leaf"] * 6,
        *["content"] * 3,
        "body",
        "end",
    ]
    assert lines[0] == {
        "line": "header",
        "format": "podium-export/1",
        "origin": "podium.local/audit",
        "run_id": "run_1",
        "tenant_id": "acme",
        "vkey": vkey,
        "with_content": True,
    }
    size = int(lines[1]["note"].split("\n")[1])
    leaves = [line for line in lines if line["line"] == "leaf"]
    assert [leaf["index"] for leaf in leaves] == [0, 1, 2, 3, 4, size - 1]
    assert all(set(leaf) == {"line", "index", "leaf", "proof"} for leaf in leaves)
    assert all(len(base64.b64decode(item)) == 32 for leaf in leaves for item in leaf["proof"])
    parts = [(line["index"], line["part_id"]) for line in lines if line["line"] == "content"]
    assert parts == [(0, "question"), (2, "run_1.1/inline"), (3, "run_1.1/output")]
    body = next(line for line in lines if line["line"] == "body")
    assert set(body) == {"line", "index", "part_id", "salt"}
    assert (body["index"], body["part_id"]) == (2, "run_1.1/body")
    before_end = data[: data.rindex(b'{"line":"end"')]
    assert lines[-1] == {"line": "end", "lines": len(lines), "sha256": hashlib.sha256(before_end).hexdigest()}


@pytest.mark.parametrize("content", ["true", "false"])
async def test_the_independent_verifier_accepts_an_export(
    tmp_path: Path, tls_dir: Path, content: str
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        for number in range(7):
            await audit.run(f"run_{number}")
        await audit.run("run_late", until="begin")
        await audit.call("gateway", "Seal", seal_request("run_late"))
        await audit.call("router", "EndAttempt", end_request("run_late.1", "run_late"))
        vkey = (await audit.get("/v1/vkey"))[1].decode().strip()
        for run_id in ("run_3", "run_late"):
            _, data = await audit.get(f"/v1/runs/{run_id}/export?content={content}", "key1")
            assert isinstance(verify_export(data, vkey), Verified)
            lines = lines_of(data)
            assert ("content" in {line["line"] for line in lines}) == (content == "true")
            leaves = [json.loads(line["leaf"]) for line in lines if line["line"] == "leaf"]
            assert leaves[-1]["facts"] | {"with_content": content == "true"} == leaves[-1]["facts"]
            assert (leaves[-1]["type"], leaves[-1]["facts"]["action"]) == ("read", "export")


async def test_content_in_many_chunks_exports_and_verifies(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1", until="open")
        big = b"0123456789abcdef" * 600_000
        header = pb.PutContentHeader(
            event_id="big",
            run_id="run_1",
            part_id="big",
            name="request",
            media_type="a/b",
            size_bytes=len(big),
        )
        chunks = [pb.PutContentRequest(header=header)]
        chunks += [pb.PutContentRequest(chunk=big[at : at + 65_536]) for at in range(0, len(big), 65_536)]
        await audit.call("gateway", "PutContent", iter(chunks))
        body = [pb.BodyPart(part_id="big"), pb.BodyPart(inline=b"!"), pb.BodyPart(part_id="question")]
        await audit.call("router", "BeginAttempt", begin_request("run_1.1", "run_1", body=body))
        await audit.call("router", "EndAttempt", end_request("run_1.1", "run_1"))
        await audit.call("gateway", "Seal", seal_request("run_1"))
        _, page = await audit.get("/v1/runs/run_1", "key1")
        shown = {part["part_id"]: part for part in page["contents"]}
        assert shown["big"]["omitted"]
        assert shown["question"]["text"] == "What is 2+2?"
        vkey = (await audit.get("/v1/vkey"))[1].decode().strip()
        _, data = await audit.get("/v1/runs/run_1/export", "key1")
        assert len(data) > len(big)
        assert isinstance(verify_export(data, vkey), Verified)


async def test_erased_content_is_shown_as_erased_and_proofs_still_hold(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
    async with running_audit(tmp_path, tls_dir) as audit:
        audit.audit.files.run_keys.erase([1])
        _, page = await audit.get("/v1/runs/run_1")
        assert all(part["erased"] and "text" not in part for part in page["contents"])
        _, data = await audit.get("/v1/runs/run_1/export")
        assert lines_of(data)[0]["with_content"] is False
        assert isinstance(verify_export(data), Verified)


async def test_readers_that_do_not_read_take_no_place_from_other_tenants(
    tmp_path: Path, tls_dir: Path
) -> None:
    large = [pb.Content(part_id="question", name="question", media_type="text/plain", data=b"z" * 7_000_000)]
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1", contents=large)
        await audit.run("run_3", tenant_id="other", principal_id="key3")
        page = {"Authorization": f"Bearer {audit.tokens['key1']}", "Host": "x"}
        head = "".join(f"{name}: {value}\r\n" for name, value in page.items())
        host, port = audit.url.removeprefix("http://").split(":")
        readers = [await asyncio.open_connection(host, int(port), limit=1_024) for _ in range(16)]
        for _, writer in readers:
            writer.write(f"GET /v1/runs/run_1 HTTP/1.1\r\n{head}\r\n".encode())
        for reader, writer in readers:
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        status, body = await audit.get("/v1/runs", "auditor")
        assert (status, body["error"]["code"]) == (429, "RATE_LIMITED")
        assert (await audit.get("/v1/runs/run_3", "key3"))[0] == 200
        for _, writer in readers:
            writer.transport.abort()
        async with asyncio.timeout(PATIENCE_S):
            while (await audit.get("/v1/runs", "auditor"))[0] != 200:
                await asyncio.sleep(0.02)


async def test_a_read_that_cannot_be_recorded_is_not_answered(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        await audit.audit.commit.stop()
        for path in ("/v1/runs/run_1", "/v1/runs/run_1/export"):
            status, body = await audit.get(path)
            assert (status, body["error"]["code"]) == (503, "AUDIT_UNAVAILABLE")
        assert (await audit.get("/readyz"))[0] == 503


async def test_a_changed_tenants_file_is_taken_up(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        file = tmp_path / "tenants.yaml"
        tenants = json.loads(file.read_text())
        tenants["tenants"][0]["keys"] = tenants["tenants"][0]["keys"][1:]
        file.write_text(json.dumps(tenants))
        audit.audit.tenants.fresh()
        assert (await audit.get("/v1/runs", "key1"))[0] == 401
        assert (await audit.get("/v1/runs", "key2"))[0] == 200
