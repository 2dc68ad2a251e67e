"""Load on an audit process that may die under it, and a check that nothing it acknowledged is lost."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import grpc

from podium_audit.keys import SIGNING_KEY_FILE, FileSigner
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_core.domain import merkle
from tests.fakes.audit_process import ALL_LEAVES, AuditProcess
from tests.fakes.audit_service import begin_request, end_request, open_request, seal_request

RUNS_AT_ONCE = 24


@dataclass(slots=True)
class Told:
    """What callers were told is durable."""

    events: dict[int, str] = field(default_factory=dict)
    receipts: list[Any] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)


async def load(
    audit: AuditProcess,
    told: Told,
    label: str,
    *,
    until: asyncio.Event | None = None,
    at_once: int = RUNS_AT_ONCE,
) -> None:
    """Make runs until the service refuses or is gone, or until it is told to stop."""
    channels = {service: audit.stub(service) for service in ("gateway", "router")}
    gateway, router = channels["gateway"][1], channels["router"][1]

    async def runs(worker: int) -> None:
        number = 0
        while until is None or not until.is_set():
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

    tasks = [asyncio.create_task(runs(worker)) for worker in range(at_once)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    wanted = grpc.aio.AioRpcError if until is None else (grpc.aio.AioRpcError, type(None))
    assert all(isinstance(result, wanted) for result in results), results
    for channel, _ in channels.values():
        await channel.close()


def check(audit: AuditProcess, told: Told) -> None:
    """Check that the log holds all that was told, and is the tree that was signed."""
    rows, checkpoints = audit.rows_at_once(ALL_LEAVES, "SELECT size, note FROM checkpoints")
    leaves, notes = [row[0] for row in rows], dict(checkpoints)
    records = [json.loads(leaf) for leaf in leaves]
    for index, event_id in told.events.items():
        assert records[index]["event_id"] == event_id
    signer = CheckpointSigner("podium.local/audit", FileSigner(audit.home / "keys" / SIGNING_KEY_FILE))
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


def check_money(audit: AuditProcess) -> None:
    """Every reservation became the cost that was told, or the maximum."""
    rows, (settled,) = audit.rows_at_once(ALL_LEAVES, "SELECT sum(usd_micros) FROM settled")
    records = [json.loads(row[0]) for row in rows]
    ended = sum(r["facts"]["cost_usd_micros"] for r in records if r["type"] == "attempt_ended")
    unknown = sum(len(r["facts"]["unknown_attempts"]) for r in records if r["type"] == "sealed")
    assert settled == (ended + 100 * unknown,)
    begun = sum(1 for r in records if r["type"] == "attempt_begun")
    assert begun == sum(1 for r in records if r["type"] == "attempt_ended") + unknown
