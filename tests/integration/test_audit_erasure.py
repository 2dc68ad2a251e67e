"""Erasure over HTTP as people meet it: by role, on record, finished after a crash, and nothing left to find."""

import json
import shutil
from pathlib import Path
from sqlite3 import connect
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import conversation_service_pb2 as conversation_pb
from podium_audit.records.commands import BeginErasure, Event
from podium_verifier.summary import render
from podium_verifier.verify import Verified, verify_export
from tests.fakes.audit_service import RunningAudit, running_audit
from tests.fakes.leaves import leaves_in

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer

CANARY = b"canary-5f2e: the patient's name is Ada"
BASIS = {"basis": "subject_request"}


async def secret_run(audit: RunningAudit, run_id: str = "run_1") -> None:
    part = pb.Content(part_id="question", name="question", media_type="text/plain", data=CANARY)
    await audit.run(run_id, contents=[part])


async def erase(audit: RunningAudit, *run_ids: str, key: str = "officer") -> tuple[int, dict[str, object]]:
    return await audit.post("/v1/erasures", key, {"run_ids": list(run_ids or ("run_1",)), **BASIS})


def bytes_in(folder: Path, pattern: str) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.glob(pattern)))


async def test_an_erased_run_says_under_which_leaf_and_still_proves_the_rest(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await secret_run(audit)
        status, answer = await erase(audit)
        assert (status, answer["refused"], answer["final_after_days"]) == (200, [], 7)
        (erased,) = leaves_in(tmp_path, "erased")
        leaf_index = answer["erased"][0]["leaf_index"]  # type: ignore[index]
        assert answer["erased"] == [{"run_id": "run_1", "leaf_index": leaf_index}]
        assert (erased["facts"]["principal_id"], erased["facts"]["key_is_gone"]) == ("officer", True)
        _, page = await audit.get("/v1/runs/run_1", "key1")
        assert page["erased_under_leaf"] == leaf_index
        assert all(part["erased"] and "text" not in part for part in page["contents"])
        _, data = await audit.get("/v1/runs/run_1/export", "key1")
        verified = verify_export(data)
        assert isinstance(verified, Verified)
        assert f"erased     under leaf {leaf_index}, subject_request, by officer" in render(verified)
        assert await erase(audit) == (status, answer)
        assert len(leaves_in(tmp_path, "erased")) == 1


async def test_no_key_no_words_and_no_wrapped_key_are_left_nor_in_an_older_backup(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await secret_run(audit)
        data_key = audit.audit.files.run_keys.get(1)
        with connect(tmp_path / "data" / "run-keys.db") as database:
            (wrapped,) = database.execute("SELECT wrapped FROM run_keys WHERE key_no = 1").fetchone()
        sealed = audit.audit.files.store.content(0)
        backup = tmp_path / "backup"
        backup.mkdir()
        with connect(tmp_path / "data" / "log.db") as live, connect(backup / "log.db") as copy:
            live.backup(copy)
        for file in (tmp_path / "data").glob("log.db-*"):
            shutil.copy(file, backup / f"wal-{file.name}")
        assert (await erase(audit))[0] == 200
        assert data_key is not None
        assert sealed is not None
        older = bytes_in(backup, "*")
        assert sealed in older  # what was sealed is there, and nothing that opens it
        for secret in (data_key, data_key.hex().encode(), wrapped, CANARY):
            assert secret not in older
            assert secret not in bytes_in(tmp_path / "data", "**/*.db*")
        assert audit.audit.files.store.content(0) is None
        with connect(tmp_path / "data" / "log.db") as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def test_stored_answers_of_an_erased_run_go_with_it(tmp_path: Path, tls_dir: Path) -> None:
    kind = conversation_pb.ITEM_KIND_RESPONSE
    async with running_audit(tmp_path, tls_dir) as audit:
        await secret_run(audit)
        await audit.call(
            "gateway",
            "PutItem",
            conversation_pb.PutItemRequest(
                tenant_id="acme", kind=kind, item_id="resp_1", run_id="run_1", data=CANARY
            ),
        )
        assert (await erase(audit))[0] == 200
        with connect(tmp_path / "data" / "conversations.db") as database:
            assert database.execute("SELECT count(*) FROM items").fetchone() == (0,)


@pytest.mark.parametrize("is_key_gone", [False, True])
async def test_what_a_crash_cut_in_two_is_finished_at_the_next_start(
    tmp_path: Path, tls_dir: Path, is_key_gone: bool
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await secret_run(audit)
        decided = BeginErasure(Event("e", b"d", "audit"), "run_1", "acme", "officer", "subject_request")
        (begun,) = (await audit.audit.commit.submit(decided)).leaf_indices
        if is_key_gone:
            audit.audit.files.run_keys.erase([1])
        assert leaves_in(tmp_path, "erased") == []
        assert (await audit.get("/v1/runs/run_1", "key1"))[1]["erased_under_leaf"] is None
    async with running_audit(tmp_path, tls_dir) as audit:
        assert await audit.audit.eraser.finish_pending() == 1
        assert await audit.audit.eraser.finish_pending() == 0
        (erased,) = leaves_in(tmp_path, "erased")
        assert erased["facts"]["begun_index"] == begun
        assert audit.audit.files.run_keys.get(1) is None
        assert CANARY not in bytes_in(tmp_path / "data", "**/*.db*")


@pytest.mark.parametrize("key", ["key1", "auditor", "operator", "investigator", "custodian"])
async def test_only_a_privacy_officer_of_the_tenant_erases_and_holds(
    tmp_path: Path, tls_dir: Path, key: str
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await secret_run(audit)
        for path, body in (
            ("/v1/erasures", {"run_ids": ["run_1"], **BASIS}),
            ("/v1/holds", {"case_id": "c", "everything": True}),
            ("/v1/holds/hold_1/release", {"approval_id": "a"}),
        ):
            status, answer = await audit.post(path, key, body)
            assert (status, answer["error"]["code"]) == (403, "POLICY_DENIED")
        assert (await erase(audit, key="officer3"))[0] == 404
        assert leaves_in(tmp_path, "erased", "hold_placed") == []


async def test_a_hold_wins_until_two_officers_end_it(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await secret_run(audit)
        _, held = await audit.post("/v1/holds", "officer", {"case_id": "case-7", "run_ids": ["run_1"]})
        status, answer = await erase(audit)
        assert (status, answer["refused"][0]["reason"]) == (409, "LEGAL_HOLD")  # type: ignore[index]
        assert (await audit.get("/v1/holds"))[1]["holds"][0]["case_id"] == "case-7"
        hold_id = held["hold_id"]
        ask = {"action": "release_hold", "target": hold_id, "case_id": "case-7"}
        assert (await audit.post("/v1/approvals", "investigator", ask))[0] == 403
        _, asked = await audit.post("/v1/approvals", "officer", ask)
        approve = f"/v1/approvals/{asked['approval_id']}/approve"
        release = {"approval_id": asked["approval_id"]}
        assert (await audit.post(f"/v1/holds/{hold_id}/release", "officer", release))[0] == 403
        assert (await audit.post(approve, "custodian", {}))[0] == 403
        assert (await audit.post(approve, "officer", {}))[0] == 403
        assert (await audit.post(approve, "officer2", {}))[0] == 200
        assert (await audit.post(f"/v1/holds/{hold_id}/release", "officer", release))[0] == 200
        assert (await audit.get("/v1/holds"))[1] == {"holds": [], "total": 0}
        assert (await erase(audit))[0] == 200
    kinds = [leaf["type"] for leaf in leaves_in(tmp_path) if leaf["type"] not in ("read", "content")]
    assert kinds[-7:] == [
        "hold_placed",
        "erasure_refused",
        "approval_requested",
        "approval_given",
        "hold_released",
        "erasure_begun",
        "erased",
    ]


@pytest.mark.parametrize("key", ["auditor", "operator", "investigator", "officer"])
async def test_who_watches_sees_records_and_no_content(tmp_path: Path, tls_dir: Path, key: str) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await secret_run(audit)
        status, page = await audit.get("/v1/runs/run_1", key)
        assert status == 200
        assert all(part["withheld"] for part in page["contents"])
        assert CANARY.decode() not in json.dumps(page)
        status, data = await audit.get("/v1/runs/run_1/export", key)
        verified = verify_export(data)
        assert isinstance(verified, Verified)
        assert not verified.header.with_content
        assert (await audit.get("/v1/runs/run_1/export?content=true", key))[0] == 403
        assert not any(leaf["facts"]["with_content"] for leaf in leaves_in(tmp_path, "read"))


async def test_an_investigator_reads_content_for_a_case_that_another_key_approved(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await secret_run(audit)
        await secret_run(audit, "run_2")
        ask = {"action": "read_content", "target": "run_1", "case_id": "case-7"}
        _, asked = await audit.post("/v1/approvals", "investigator", ask)
        approval_id = asked["approval_id"]
        assert (await audit.get(f"/v1/runs/run_1?approval={approval_id}", "investigator"))[0] == 403
        assert (await audit.post(f"/v1/approvals/{approval_id}/approve", "custodian", {}))[0] == 200
        _, page = await audit.get(f"/v1/runs/run_1?approval={approval_id}", "investigator")
        assert page["contents"][0]["text"] == CANARY.decode()
        for path, key in (("run_2", "investigator"), ("run_1", "operator")):
            assert (await audit.get(f"/v1/runs/{path}?approval={approval_id}", key))[0] == 403
        assert (await audit.get(f"/v1/runs/run_1?approval={approval_id}", "key3"))[0] == 404
        reads = [leaf["facts"] for leaf in leaves_in(tmp_path, "read")]
        assert [read["action"] for read in reads[:4]] == [
            "content_refused",
            "show",
            "content_refused",
            "content_refused",
        ]
        read = reads[1]
        assert (read["with_content"], read["case_id"], read["approval_id"]) == (True, "case-7", approval_id)


async def test_a_tenant_lists_who_read_what_and_strangers_attempts_too(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await secret_run(audit)
        await audit.get("/v1/runs", "key1")
        await audit.get("/v1/runs/run_1", "key1")
        await audit.get("/v1/runs/run_1/export?content=false", "auditor")
        assert (await audit.get("/v1/runs/run_1", "key3"))[0] == 404
        assert (await audit.get("/v1/reads", "operator"))[0] == 403
        _, page = await audit.get("/v1/reads?limit=3", "officer")
        told = [
            (read["principal_id"], read["action"], read["run_id"], read["with_content"])
            for read in page["reads"]
        ]
        assert told == [
            ("officer", "list_reads", "", False),
            ("auditor", "export", "run_1", False),
            ("key1", "show", "run_1", True),
        ]
        assert page["total"] == 4
        _, rest = await audit.get(f"/v1/reads?before={page['next_before']}", "auditor")
        assert [(read["principal_id"], read["action"]) for read in rest["reads"]] == [("key1", "list")]
        _, theirs = await audit.get("/v1/reads", "officer3")
        assert [read["action"] for read in theirs["reads"]] == ["list_reads", "show_refused"]
        refused = leaves_in(tmp_path, "read")[3]
        assert (refused["tenant_id"], refused["facts"]["asked_for"]) == ("other", "run_1")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/erasures", {"run_ids": [], "basis": "subject_request"}, "run_ids"),
        ("/v1/erasures", {"run_ids": ["run_1"]}, "basis"),
        ("/v1/erasures", {"run_ids": ["run_1"], "basis": "why not"}, "basis"),
        ("/v1/erasures", {"run_ids": ["'; DROP TABLE runs; --"], **BASIS}, "no such run"),
        ("/v1/erasures", {"run_ids": ["run_1"], **BASIS, "force": True}, "force"),
        ("/v1/erasures", ["run_1"], "body"),
        ("/v1/holds", {"case_id": "c"}, "run_ids"),
        ("/v1/holds", {"case_id": "a b", "everything": True}, "case_id"),
        ("/v1/approvals", {"action": "erase", "target": "run_1", "case_id": "c"}, "action"),
    ],
)
async def test_bad_input_is_named(tmp_path: Path, tls_dir: Path, path: str, body: object, param: str) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        status, answer = await audit.post(path, "officer", body)
        assert status in (400, 404)
        assert param in answer["error"]["message"]


USER = "canary-9d1c@example.com"


async def test_a_person_is_a_pseudonym_until_everything_of_theirs_is_erased(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1", subject_id=USER)
        await audit.run("run_2", subject_id=USER)
        await audit.run("run_3", subject_id="somebody-else")
        await audit.run("run_4", subject_id=USER, tenant_id="other", principal_id="key3")
        opened = leaves_in(tmp_path, "opened")
        names = [leaf["facts"]["subject"] for leaf in opened]
        assert names[0] == names[1]
        assert len({*names}) == 3, "another tenant's user is another person"
        assert USER.encode() not in bytes_in(tmp_path / "data", "**/*.db*")
        _, data = await audit.get("/v1/runs/run_1/export", "key1")
        assert isinstance(verify_export(data), Verified)

        assert (await audit.get("/v1/runs/run_1", "key1"))[1]["erased_under_leaf"] is None
        erase_user = {"subject_id": USER, "basis": "subject_request"}
        _, answer = await audit.post("/v1/erasures", "officer", erase_user)
        assert ([run["run_id"] for run in answer["erased"]], answer["forgotten"]) == (
            ["run_1", "run_2"],
            True,
        )
        assert (await audit.post("/v1/erasures", "officer", erase_user))[0] == 404
        await audit.run("run_5", subject_id=USER)
        assert leaves_in(tmp_path, "opened")[-1]["facts"]["subject"] not in names
        assert [leaf["run_id"] for leaf in leaves_in(tmp_path, "erased")] == ["run_1", "run_2"]


async def test_a_person_whose_runs_are_held_or_go_on_is_not_forgotten(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1", subject_id=USER)
        await audit.run("run_2", subject_id=USER)
        await audit.post("/v1/holds", "officer", {"case_id": "c", "run_ids": ["run_1"]})
        erase_user = {"subject_id": USER, "basis": "subject_request"}
        status, answer = await audit.post("/v1/erasures", "officer", erase_user)
        assert (status, [run["run_id"] for run in answer["erased"]]) == (200, ["run_2"])
        status, answer = await audit.post("/v1/erasures", "officer", erase_user)
        assert (status, [run["run_id"] for run in answer["refused"]]) == (409, ["run_1"])
        await audit.run("run_3", until="open", subject_id=USER)
        status, answer = await audit.post("/v1/erasures", "officer", erase_user)
        assert (status, "run_3 goes on" in answer["error"]["message"]) == (409, True)
        assert len({leaf["facts"]["subject"] for leaf in leaves_in(tmp_path, "opened")}) == 1


async def test_a_tenant_that_leaves_is_erased_whole_and_no_other(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        for number in range(66):
            await audit.run(f"run_{number}")
        await audit.run("theirs", tenant_id="other", principal_id="key3")
        order = {"everything": True, "basis": "contract_ended"}
        _, answer = await audit.post("/v1/erasures", "officer", order)
        assert (len(answer["erased"]), answer["remaining"]) == (64, 2)
        _, answer = await audit.post("/v1/erasures", "officer", order)
        assert (len(answer["erased"]), answer["remaining"]) == (2, 0)
        assert (await audit.get("/v1/runs/theirs", "key3"))[1]["contents"][0]["text"] == "What is 2+2?"


async def test_on_postgresql_replicas_finish_each_others_erasures(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    named: dict[str, Any] = {
        "database_url": postgres.new_database(),
        "key_database_url": postgres.new_database(),
    }
    async with (
        running_audit(tmp_path, tls_dir, **named) as first,
        running_audit(tmp_path, tls_dir, **named) as second,
    ):
        await first.run("run_1", subject_id=USER)
        await second.run("run_2", subject_id=USER)
        decided = BeginErasure(Event("e", b"d", "audit"), "run_1", "acme", "officer", "subject_request")
        await first.audit.commit.submit(decided)
        assert await second.audit.eraser.finish_pending() == 1
        assert await first.audit.eraser.finish_pending() == 0
        order = {"subject_id": USER, "basis": "subject_request"}
        status, answer = await first.post("/v1/erasures", "officer", order)
        assert (status, [run["run_id"] for run in answer["erased"]]) == (200, ["run_2"])
        for audit in (first, second):
            for run_id in ("run_1", "run_2"):
                _, page = await audit.get(f"/v1/runs/{run_id}", "key1")
                assert page["erased_under_leaf"] is not None
                assert all(part["erased"] for part in page["contents"])
        assert (await first.post("/v1/holds", "officer", {"case_id": "c", "everything": True}))[0] == 200
        assert (await second.get("/v1/holds"))[1]["total"] == 1
        assert (await second.get("/v1/reads"))[1]["total"] >= 4
    with psycopg.connect(named["database_url"]) as database:
        assert database.execute("SELECT count(*) FROM contents").fetchone() == (0,)
    with psycopg.connect(named["key_database_url"]) as database:
        query = "SELECT count(*) FROM run_keys WHERE key_no IN (SELECT unnest(%s::bigint[]))"
        assert database.execute(query, ([1],)).fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM subjects").fetchone() == (0,)
