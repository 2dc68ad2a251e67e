"""The log on PostgreSQL: sealed runs and single appends through gRPC, and reads of a large log.

Runs by itself (`python -m benchmarks.postgres_log`) and in `make bench`, on a server of its own whose commits
wait for the disk.
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, LiteralString

import psycopg
from rich.console import Console

from benchmarks.load import cpu_seconds
from benchmarks.report import Report, Table
from benchmarks.sealing import one_run
from podium.audit.v1 import audit_service_pb2 as audit_pb
from podium_audit.rows.run_search import RunSearch
from podium_audit.stores.postgres.log_store import Database
from podium_cli.local_ca import create_local_ca
from podium_core.domain.clock import SystemClock
from podium_core.domain.ids import RandomIds
from podium_core.runtime.audit_stream import AuditStream
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.identity import SERVICES
from tests.fakes.audit_process import AuditProcess, audit_process
from tests.fakes.audit_service import open_request
from tests.fakes.postgres_server import PostgresServer, find_binaries
from tests.fakes.tls import tls_of

_AT_ONCE: Final = 64
_APPENDS: Final = 300
_READS: Final = 200
_LEAVES_PER_RUN: Final = 6
_TABLES: Final[tuple[LiteralString, ...]] = ("runs", "leaves", "events", "contents", "seals", "run_facets")
_SHELF: Final = 1_202_501
_GENERATE: Final[tuple[LiteralString, ...]] = (
    """INSERT INTO runs SELECT 1000000 + n, 'run_g' || n, 'big', 'key' || n %% 50, 'chat', 'podium', n, NULL,
        1735689600000000 + n, NULL, %(shelf)s FROM generate_series(1, %(runs)s) AS n""",
    """INSERT INTO seals SELECT 1000000 + n, 1735689600000000 + n, 'answered', 40, 1, 'big', %(shelf)s
        FROM generate_series(1, %(runs)s) AS n""",
    """INSERT INTO leaves SELECT %(shelf)s, 100000000 + n, 1000000 + 1 + n / 6, 'big',
        convert_to(repeat(md5(n::text), 20), 'UTF8') FROM generate_series(0, %(runs)s * 6 - 1) AS n""",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Rates per second, and times in milliseconds; `cpu_ms` is of one sealed run, by process."""

    batch_runs: float
    insert_per_s: float
    sealed_per_s: float
    cpu_ms: Mapping[str, float]
    bare_commit_p99_ms: float
    append_p99_ms: float
    records: int
    lookup_p95_ms: float
    list_p95_ms: float

    def table(self) -> Table:
        """Return what the report shows, beside what is wanted."""
        share = self.sealed_per_s / self.insert_per_s
        return Table(
            "The log on PostgreSQL",
            ("what", "measured", "wanted"),
            (
                (f"same rows by multi-row INSERT, {self.batch_runs:.0f} runs a commit, runs/s",
                 f"{self.insert_per_s:.0f}", ""),
                (f"sealed through gRPC, {_AT_ONCE} at once, runs/s", f"{self.sealed_per_s:.0f}", ""),
                ("share of it", f"{share:.2f}", "0.33"),
                ("CPU ms of a sealed run", ", ".join(f"{n} {ms:.2f}" for n, ms in self.cpu_ms.items()), ""),
                ("bare commit, p99 ms", f"{self.bare_commit_p99_ms:.1f}", ""),
                ("append alone, p99 ms", f"{self.append_p99_ms:.1f}", f"{self.bare_commit_p99_ms + 10:.1f}"),
                (f"one run of {self.records:,} records, p95 ms", f"{self.lookup_p95_ms:.1f}", "20"),
                (f"50 newest and their number, of {self.records:,} records, p95 ms",
                 f"{self.list_p95_ms:.1f}", "100"),
            ),
        )  # fmt: skip


def _stream(audit: AuditProcess, caller: str) -> AuditStream:
    return AuditStream(open_channel(f"127.0.0.1:{audit.ports[0]}", "audit", tls_of(audit.tls_dir, caller)))


async def measure_postgres_log(seconds: float, records: int) -> Measured | None:
    """Measure on a server of its own; None where there is no PostgreSQL."""
    binaries = find_binaries()
    if binaries is None:
        return None
    server = PostgresServer(binaries, durable=True)
    with TemporaryDirectory(prefix="podium-bench-") as home:
        try:
            server.create()
            return await _measure(server, Path(home), seconds, records)
        finally:
            server.remove()


async def _measure(server: PostgresServer, home: Path, seconds: float, records: int) -> Measured:
    create_local_ca(home / "tls", SERVICES)
    url = server.new_database()
    named = {"database_url": url, "key_database_url": server.new_database(), "commit_wait_s": 30.0}
    async with audit_process(home, home / "tls", **named) as audit:
        before = _cpu_s(server, audit)
        sealed_per_s, sealed = await _seal(audit, seconds)
        cpu_ms = {
            name: (used - before[name]) / sealed * 1_000 for name, used in _cpu_s(server, audit).items()
        }
        leaves, commits = audit.rows("SELECT count(*), (SELECT count(*) FROM checkpoints) FROM leaves")[0]
        batch_leaves = leaves / commits
        runs_per_leaf = audit.rows("SELECT count(*) FROM runs")[0][0] / leaves
        append_p99_ms = await _append(audit)
    insert_leaves_per_s = _insert(url, int(batch_leaves), seconds)
    bare = _bare_commits(url)
    lookup, listing = _reads(url, records // _LEAVES_PER_RUN)
    return Measured(
        batch_leaves * runs_per_leaf,
        insert_leaves_per_s * runs_per_leaf,
        sealed_per_s,
        cpu_ms,
        bare,
        append_p99_ms,
        records,
        lookup,
        listing,
    )


def _cpu_s(server: PostgresServer, audit: AuditProcess) -> dict[str, float]:
    """Return the CPU time that each has used so far; sessions of the log stay open meanwhile."""
    return {
        "audit": cpu_seconds(audit.pid),
        "PostgreSQL": sum(map(cpu_seconds, server.pids())),
        "callers": time.process_time(),
    }


async def _seal(audit: AuditProcess, seconds: float) -> tuple[float, int]:
    """Return how many runs were sealed, per second and in all."""
    gateway, router = _stream(audit, "gateway"), _stream(audit, "router")
    ids = RandomIds(SystemClock())
    sealed = 0
    started = time.perf_counter()

    async def caller() -> None:
        nonlocal sealed
        while time.perf_counter() - started < seconds:
            await one_run(gateway, router, ids)
            sealed += 1

    await asyncio.gather(*(caller() for _ in range(_AT_ONCE)))
    elapsed = time.perf_counter() - started
    await gateway.close()
    await router.close()
    return sealed / elapsed, sealed


async def _append(audit: AuditProcess) -> float:
    gateway = _stream(audit, "gateway")
    await gateway.OpenRun(open_request("run_append"), timeout=30)
    times_ms = []
    for number in range(_APPENDS):
        note = audit_pb.Note(kind="bench")
        request = audit_pb.AppendRequest(event_id=f"append.{number}", run_id="run_append", note=note)
        started = time.perf_counter()
        await gateway.Append(request, timeout=30)
        times_ms.append((time.perf_counter() - started) * 1_000)
    await gateway.close()
    return _percentile(times_ms, 0.99)


def _insert(url: str, batch: int, seconds: float) -> float:
    """Return leaves per second when the rows of the same runs go into bare tables, a batch a commit."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA bare")
        rows_of: dict[str, list[tuple[Any, ...]]] = {}
        for table in _TABLES:
            connection.execute(f"CREATE TABLE bare.{table} (LIKE {table} INCLUDING INDEXES)")
            rows_of[table] = connection.execute(f"SELECT * FROM {table} LIMIT 20000").fetchall()
        total, done, turn = len(rows_of["leaves"]), 0, 0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            if (turn + 1) * batch > total:
                turn = 0
                for table in _TABLES:
                    connection.execute(f"TRUNCATE bare.{table}")
            with connection.transaction():
                for table, rows in rows_of.items():
                    first, past = (n * batch * len(rows) // total for n in (turn, turn + 1))
                    _insert_rows(connection, table, rows[first:past])
            done += batch
            turn += 1
        return done / (time.perf_counter() - started)


def _insert_rows(connection: psycopg.Connection[Any], table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        places = ", ".join([f"({', '.join(['%s'] * len(rows[0]))})"] * len(rows))
        values = [value for row in rows for value in row]
        connection.execute(f"INSERT INTO bare.{table} VALUES {places}", values)


def _bare_commits(url: str) -> float:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare.commits (n int)")
        return _percentile(
            [
                _timed_ms(lambda: connection.execute("INSERT INTO bare.commits VALUES (1)"))
                for _ in range(_APPENDS)
            ],
            0.99,
        )


def _reads(url: str, runs: int) -> tuple[float, float]:
    """Return the p95 of finding a run with its leaves, and of a page with its total, among so many runs."""
    database = Database(url, lock_s=5)
    from podium_audit.stores.postgres.shelves import PostgresShelves  # noqa: PLC0415 - only here

    shelves = PostgresShelves(database.owner())
    shelves.make(_SHELF)
    shelves.close()
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in _GENERATE:
            connection.execute(statement, {"runs": runs, "shelf": _SHELF})
        connection.execute("VACUUM ANALYZE")
    reader = database.reader()
    reader.show_only("big")

    def look_up(number: int) -> None:
        found = reader.run(f"run_g{number}")
        if found is None or len(reader.leaves_of(found[0].run_no)) != _LEAVES_PER_RUN:
            raise RuntimeError("a generated run is missing")

    def list_runs() -> None:
        search = RunSearch("big")
        if len(reader.find_runs(search, before_no=None, limit=51)) != 51 or reader.count_runs(search) != runs:
            raise RuntimeError("generated runs are missing")

    lookups = [_timed_ms(lambda n=n: look_up(1 + n * 7919 % (runs - 1))) for n in range(_READS)]  # type: ignore[misc]
    lists = [_timed_ms(list_runs) for _ in range(_READS // 4)]
    reader.close()
    return _percentile(lookups, 0.95), _percentile(lists, 0.95)


def _timed_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1_000


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres_log", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each load runs (default: 4)")
    parser.add_argument("--records", type=int, default=1_000_000, help="leaves of the log that is read")
    given = parser.parse_args()
    report = Report(Console(width=170))
    measured = asyncio.run(measure_postgres_log(given.seconds, given.records))
    if measured is None:
        report.console.print("no PostgreSQL: install postgresql (15 or newer)")
    else:
        report.add(measured.table())
