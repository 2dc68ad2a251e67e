"""Sealed runs per second through gRPC, beside inserting the same rows in batches of the same size."""

import asyncio
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from podium.audit.v1 import audit_service_pb2 as audit_pb
from podium.plan.v1 import plan_pb2 as plan_pb
from podium_core.domain.clock import SystemClock
from podium_core.domain.ids import RandomIds
from podium_core.runtime.audit_stream import AuditStream
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.identity import TlsFiles
from tests.e2e.cluster import Cluster

_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class Sealing:
    """Runs per second both ways; `batch_runs` is how many runs one commit carried on average."""

    at_once: int
    sealed_per_s: float
    insert_per_s: float
    batch_runs: float


def _stream(podium: Cluster, caller: str) -> AuditStream:
    tls = podium.home / "tls"
    files = TlsFiles(tls / caller / "cert.pem", tls / caller / "key.pem", tls / "ca.pem")
    return AuditStream(open_channel(f"127.0.0.1:{podium.ports['audit']}", "audit", files))


async def measure_sealing(podium: Cluster, seconds: float) -> Sealing:
    """Open, begin, end and seal runs of one step as fast as `_AT_ONCE` callers can."""
    gateway, router = _stream(podium, "gateway"), _stream(podium, "router")
    ids = RandomIds(SystemClock())
    database = next(podium.database.glob("log*.db"))
    before = _counts(database)
    started = time.perf_counter()
    sealed = 0

    async def caller() -> None:
        nonlocal sealed
        while time.perf_counter() - started < seconds:
            await one_run(gateway, router, ids)
            sealed += 1

    await asyncio.gather(*(caller() for _ in range(_AT_ONCE)))
    elapsed = time.perf_counter() - started
    await gateway.close()
    await router.close()
    leaves, commits = (after - b for after, b in zip(_counts(database), before, strict=True))
    batch_leaves = leaves / commits
    return Sealing(
        _AT_ONCE,
        sealed / elapsed,
        _insert_per_s(database, int(before[0]), int(batch_leaves), seconds) * sealed / leaves,
        batch_leaves * sealed / leaves,
    )


async def one_run(gateway: AuditStream, router: AuditStream, ids: RandomIds) -> None:
    """Open a run of one step, make its attempt and seal it."""
    run_id, attempt_id = ids.new("run"), ids.new("att")
    plan = plan_pb.Plan(steps=[plan_pb.Step(worker_id="bench")], source=plan_pb.PLAN_SOURCE_NAMED)
    await gateway.OpenRun(
        audit_pb.OpenRunRequest(
            event_id=ids.new("evt"), run_id=run_id, kind=plan_pb.RUN_KIND_CHAT, tenant_id="demo",
            principal_id="bench", requested_model="worker/bench", lease_ms=15_000,
            verdicts=[plan_pb.Verdict(worker_id="bench", allowed=True, rule_id="default.allow")],
            caps=plan_pb.Caps(max_steps=5, max_attempts_per_step=3), plan=audit_pb.PlanRecord(plan=plan),
            contents=[_text("question", "question", b"Why?")],
        ),
        timeout=30,
    )  # fmt: skip
    await router.BeginAttempt(
        audit_pb.BeginAttemptRequest(
            attempt_id=attempt_id, run_id=run_id, kind=plan_pb.ATTEMPT_KIND_STEP, worker_id="bench",
            provider="bench", provider_model="bench", endpoint_host="127.0.0.1",
            body=[
                audit_pb.BodyPart(inline=b'{"q":"'),
                audit_pb.BodyPart(part_id="question"),
                audit_pb.BodyPart(inline=b'"}'),
            ],
        ),
        timeout=30,
    )  # fmt: skip
    usage = plan_pb.Usage(input_tokens=20, output_tokens=50, source=plan_pb.USAGE_SOURCE_PROVIDER)
    await router.EndAttempt(
        audit_pb.EndAttemptRequest(
            event_id=ids.new("evt"), attempt_id=attempt_id, run_id=run_id, usage=usage,
            outcome=plan_pb.ATTEMPT_OUTCOME_COMPLETED, finish_reason="stop", dispatched=True,
            contents=[_text(f"{attempt_id}/output", "output", b"word " * 50)],
        ),
        timeout=30,
    )  # fmt: skip
    await gateway.Seal(
        audit_pb.SealRequest(event_id=ids.new("evt"), run_id=run_id, outcome=plan_pb.RUN_OUTCOME_ANSWERED),
        timeout=30,
    )


def _text(part_id: str, name: str, data: bytes) -> audit_pb.Content:
    return audit_pb.Content(part_id=part_id, name=name, media_type="text/plain", data=data)


def _counts(database: Path) -> tuple[float, float]:
    """Return how many leaves and commits the log has."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        (leaves,) = connection.execute("SELECT count(*) FROM leaves").fetchone()
        (commits,) = connection.execute("SELECT count(*) FROM checkpoints").fetchone()
    return leaves, commits


def _insert_per_s(database: Path, first: int, batch: int, seconds: float) -> float:
    """Return leaves per second when the rows of the same runs go into bare tables, a batch a commit."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as source:
        leaves = source.execute("SELECT leaf_index, run_no, data FROM leaves WHERE leaf_index >= ?", (first,))
        events = source.execute("SELECT * FROM events WHERE first_index >= ?", (first,))
        contents = source.execute("SELECT * FROM contents WHERE content_no >= ?", (first * 256,))
        last_run = source.execute("SELECT max(run_no) FROM leaves WHERE leaf_index < ?", (first,)).fetchone()[
            0
        ]
        runs = source.execute("SELECT * FROM runs WHERE run_no > ?", (last_run or 0,))
        seals = source.execute("SELECT * FROM seals WHERE run_no > ?", (last_run or 0,))
        tables = {
            name: (rows.fetchall(), len(rows.description))
            for name, rows in (
                ("leaves", leaves),
                ("events", events),
                ("contents", contents),
                ("runs", runs),
                ("seals", seals),
            )
        }
    total = len(tables["leaves"][0])
    bare = database.with_name("bare-bench.db")
    with closing(sqlite3.connect(bare, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        for name, (_, width) in tables.items():
            connection.execute(f"CREATE TABLE {name} (k INTEGER PRIMARY KEY, {_columns(width)})")
        started, done = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            connection.execute("BEGIN IMMEDIATE")
            for name, (rows, width) in tables.items():
                share = max(1, batch * len(rows) // total)
                part = [rows[(done * len(rows) // total + i) % len(rows)] for i in range(share)]
                marks = ",".join([f"({','.join('?' * width)})"] * share)
                names = ",".join(f"c{i}" for i in range(width))
                values = [value for row in part for value in row]
                connection.execute(f"INSERT INTO {name} ({names}) VALUES {marks}", values)
            connection.execute("COMMIT")
            done += batch
        return done / (time.perf_counter() - started)


def _columns(width: int) -> str:
    return ", ".join(f"c{i}" for i in range(width))
