"""Expiry by the clock: words go when their time is over, whole runs at a time, and never under a hold."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from podium.audit.v1 import conversation_service_pb2 as conversation_pb
from podium_audit.records.commands import DropEvidence, Event
from podium_verifier.verify import Verified, verify_export
from tests.fakes.audit_service import RunningAudit, running_audit, settings_for
from tests.fakes.ids import FakeClock
from tests.fakes.leaves import leaves_in

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer

DAY_S = 86_400


def with_retention(home: Path, tls_dir: Path, **days: int) -> None:
    settings_for(home, tls_dir)
    file = home / "tenants.yaml"
    tenants = json.loads(file.read_text())
    tenants["tenants"][0]["retention"] = days
    file.write_text(json.dumps(tenants))


async def expire(audit: RunningAudit) -> int:
    audit.audit.tenants.fresh()
    return await audit.audit.expiry.expire(audit.audit.tenants.current.by_id["acme"])


async def test_words_expire_and_the_run_stays_proven(tmp_path: Path, tls_dir: Path) -> None:
    clock = FakeClock()
    with_retention(tmp_path, tls_dir, content_days=30, evidence_days=400)
    async with running_audit(tmp_path, tls_dir, clock=clock) as audit:
        assert await expire(audit) == 0
        await audit.run("run_1")
        await audit.run("run_2", tenant_id="other", principal_id="key3")
        clock.advance(30 * DAY_S)
        await audit.run("run_3")
        assert await expire(audit) == 0
        clock.advance(1)
        assert await expire(audit) == 1
        assert await expire(audit) == 0
        (erased,) = leaves_in(tmp_path, "erased")
        assert (erased["run_id"], erased["facts"]["basis"]) == ("run_1", "retention")
        assert (erased["facts"]["principal_id"], erased["service"]) == ("audit", "audit")
        assert (await audit.get("/v1/runs/run_3", "key1"))[1]["contents"][0]["text"] == "What is 2+2?"
        (policy,) = leaves_in(tmp_path, "retention_set")
        assert (policy["tenant_id"], policy["facts"]["content_days"]) == ("acme", 30)


async def test_a_hold_keeps_what_would_expire_and_leaves_no_refusals_behind(
    tmp_path: Path, tls_dir: Path
) -> None:
    clock = FakeClock()
    with_retention(tmp_path, tls_dir, evidence_days=184)
    async with running_audit(tmp_path, tls_dir, clock=clock) as audit:
        await expire(audit)
        await audit.run("run_1")
        await audit.run("run_2")
        await audit.post("/v1/holds", "officer", {"case_id": "c", "run_ids": ["run_1"]})
        clock.advance(185 * DAY_S)
        assert await expire(audit) == 1
        assert await expire(audit) == 0
        assert [leaf["run_id"] for leaf in leaves_in(tmp_path, "erased", "erasure_refused")] == ["run_2"]


async def test_a_shorter_retention_waits_for_two_officers(tmp_path: Path, tls_dir: Path) -> None:
    clock = FakeClock()
    async with running_audit(tmp_path, tls_dir, clock=clock) as audit:
        await audit.run("run_1")
        with_retention(tmp_path, tls_dir, content_days=1)
        clock.advance(2 * DAY_S)
        assert await expire(audit) == 0
        _, shown = await audit.get("/v1/retention", "officer")
        assert (shown["standing"]["content_days"], shown["wanted"]["content_days"]) == (None, 1)
        ask = {"action": "change_retention", "target": shown["approval_target"], "case_id": "C-1"}
        _, asked = await audit.post("/v1/approvals", "officer", ask)
        assert await expire(audit) == 0
        assert (await audit.post(f"/v1/approvals/{asked['approval_id']}/approve", "officer2", {}))[0] == 200
        assert await expire(audit) == 1
        assert (await audit.get("/v1/retention"))[1]["approval_target"] is None


async def test_stored_answers_live_no_longer_than_their_tenants_retention(
    tmp_path: Path, tls_dir: Path
) -> None:
    with_retention(tmp_path, tls_dir, conversation_days=2)
    kind = conversation_pb.ITEM_KIND_RESPONSE
    async with running_audit(tmp_path, tls_dir) as audit:
        for item_id, ttl_ms in (("for_ever", 0), ("long", 3 * DAY_S * 1_000), ("short", 1_000_000)):
            put = conversation_pb.PutItemRequest(
                tenant_id="acme", kind=kind, item_id=item_id, data=b"x", ttl_ms=ttl_ms
            )
            await audit.call("gateway", "PutItem", put)
        expiries = []
        for item_id in ("for_ever", "long", "short"):
            get = conversation_pb.GetItemRequest(tenant_id="acme", kind=kind, item_id=item_id)
            expiries.append((await audit.call("gateway", "GetItem", get)).item.expires_at_ms)
        for_ever, long, short = expiries
        assert 0 < short < for_ever
        assert abs(long - for_ever) < DAY_S * 1_000


async def test_a_month_is_dropped_once_nobody_wants_it_and_says_so(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    named: dict[str, Any] = {
        "database_url": postgres.new_database(),
        "key_database_url": postgres.new_database(),
    }
    clock = FakeClock()
    with_retention(tmp_path, tls_dir, content_days=1, evidence_days=184)
    async with running_audit(tmp_path, tls_dir, clock=clock, **named) as audit:
        await expire(audit)
        await audit.run("run_1")
        await audit.run("run_2", subject_id="ada")
        clock.advance(150 * DAY_S)
        assert await expire(audit) == 2
        assert await audit.audit.expiry.drop_months() == []
        clock.advance(35 * DAY_S)
        _, held = await audit.post("/v1/holds", "officer", {"case_id": "c", "run_ids": ["run_1"]})
        for number in range(60):
            await audit.run(f"later_{number}")
        assert await audit.audit.expiry.drop_months() == [], "a hold wins over retention"
        await end_hold(audit, held["hold_id"])
        # As if a crash had come between the record and the drop.
        cut = DropEvidence(Event("e", b"d", "audit"), "acme", 1_202_609, "2026-09", 184, is_done=False)
        await audit.audit.commit.submit(cut)
        assert await audit.audit.expiry.drop_months() == [1_202_609]
        assert await audit.audit.expiry.drop_months() == []
        assert (await audit.get("/v1/runs/run_1", "key1"))[0] == 404
        assert (await audit.get("/v1/runs"))[1]["total"] == 60
        _, data = await audit.get("/v1/runs/later_7/export", "key1")
        assert isinstance(verify_export(data), Verified)
    with psycopg.connect(named["database_url"]) as database:
        rows = database.execute("SELECT data FROM leaves ORDER BY leaf_index").fetchall()
        assert database.execute("SELECT count(*) FROM subjects").fetchone() == (0,)
    told = [record for row in rows if (record := json.loads(row[0]))["type"].startswith("evidence_drop")]
    assert [record["type"] for record in told] == ["evidence_dropping", "evidence_dropped"]
    assert {record["tenant_id"] for record in told} == {"acme"}
    assert told[0]["facts"] == {"month": "2026-09", "evidence_days": 184}


async def end_hold(audit: RunningAudit, hold_id: str) -> None:
    ask = {"action": "release_hold", "target": hold_id, "case_id": "c"}
    _, asked = await audit.post("/v1/approvals", "officer", ask)
    approval_id = asked["approval_id"]
    await audit.post(f"/v1/approvals/{approval_id}/approve", "officer2", {})
    assert (await audit.post(f"/v1/holds/{hold_id}/release", "officer", {"approval_id": approval_id}))[
        0
    ] == 200
