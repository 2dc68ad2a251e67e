"""Kill -9 under load: what was acknowledged is there, and what was open is closed."""

import asyncio
import json
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from podium_audit.checkpoint import CheckpointSigner
from podium_audit.keys import SIGNING_KEY_FILE, FileSigner
from podium_core.domain import merkle
from tests.fakes.audit_process import AuditProcess, audit_process
from tests.fakes.audit_service import begin_request, end_request, open_request, seal_request
from tests.fakes.waiting import PATIENCE_S

RUNS_AT_ONCE = 24


@dataclass(slots=True)
class Told:
    """What callers were told is durable."""

    events: dict[int, str] = field(default_factory=dict)
    receipts: list[Any] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)


async def load(audit: AuditProcess, told: Told, label: str) -> None:
    """Make runs until the service is gone."""
    channels = {service: audit.stub(service) for service in ("gateway", "router")}
    gateway, router = channels["gateway"][1], channels["router"][1]

    async def runs(worker: int) -> None:
        number = 0
        while True:
            number += 1
            run_id = f"{label}-{worker}-{number}"
            attempt_id = f"{run_id}.1"
            opened = await gateway.OpenRun(open_request(run_id, lease_ms=2_000), timeout=60)
            told.runs.add(run_id)
            told.events.update(dict.fromkeys(opened.leaf_indices, f"{run_id}.open"))
            begun = await router.BeginAttempt(begin_request(attempt_id, run_id), timeout=60)
            told.events[begun.leaf_index] = attempt_id
            ended = await router.EndAttempt(end_request(attempt_id, run_id), timeout=60)
            told.events[ended.leaf_index] = f"{attempt_id}.end"
            sealed = await gateway.Seal(seal_request(run_id), timeout=60)
            told.receipts.append(sealed.receipt)

    tasks = [asyncio.create_task(runs(worker)) for worker in range(RUNS_AT_ONCE)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, grpc.aio.AioRpcError) for result in results)
    for channel, _ in channels.values():
        await channel.close()


def check(audit: AuditProcess, told: Told) -> None:
    leaves = audit.leaves()
    records = [json.loads(leaf) for leaf in leaves]
    for index, event_id in told.events.items():
        assert records[index]["event_id"] == event_id
    signer = CheckpointSigner("podium.local/audit", FileSigner(audit.home / "keys" / SIGNING_KEY_FILE))
    notes = dict(audit.rows("SELECT size, note FROM checkpoints"))
    tree = merkle.Frontier()
    for leaf in leaves:
        tree.append(merkle.leaf_hash(leaf))
        if tree.size in notes:
            stated = signer.read(notes[tree.size])
            assert (stated.size, stated.root) == (tree.size, tree.root)
    assert max(notes) == len(leaves)
    for receipt in told.receipts:
        assert receipt.checkpoint == notes[signer.read(receipt.checkpoint).size]
        assert records[receipt.leaf_indices[-1]]["type"] == "sealed"
        assert {records[index]["run_id"] for index in receipt.leaf_indices} == {receipt.run_id}
    assert [r["tenant_seq"] for r in records if r["tenant_id"] == "acme"] == list(range(len(records)))


async def test_a_kill_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path, tls_dir: Path) -> None:
    told = Told()
    async with audit_process(tmp_path, tls_dir, lease_default_s=1.0, reap_interval_s=0.1) as audit:
        for round_ in range(3):
            loading = asyncio.create_task(load(audit, told, f"r{round_}"))
            await asyncio.sleep(0.7)
            audit.kill(signal.SIGKILL)
            await loading
            audit.start()
            await audit.ready()
            check(audit, told)
        async with asyncio.timeout(PATIENCE_S):
            while audit.rows("SELECT count(*) FROM open_runs") != [(0,)]:
                await asyncio.sleep(0.1)
        assert audit.kill(signal.SIGTERM) == 0
        check(audit, told)
        outcomes = {r["run_id"]: r["facts"]["outcome"] for r in audit.records() if r["type"] == "sealed"}
        assert told.runs <= outcomes.keys()
        assert "abandoned" in outcomes.values()
        check_money(audit)
    assert len(told.receipts) > 30


def check_money(audit: AuditProcess) -> None:
    """Every reservation became the cost that was told, or the maximum."""
    records = audit.records()
    ended = sum(r["facts"]["cost_usd_micros"] for r in records if r["type"] == "attempt_ended")
    unknown = sum(len(r["facts"]["unknown_attempts"]) for r in records if r["type"] == "sealed")
    (settled,) = audit.rows("SELECT sum(usd_micros) FROM settled")
    assert settled == (ended + 100 * unknown,)
    begun = sum(1 for r in records if r["type"] == "attempt_begun")
    assert begun == sum(1 for r in records if r["type"] == "attempt_ended") + unknown
