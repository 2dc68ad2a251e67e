"""Disk full, database locked, files swapped: nothing is permitted, and it mends itself or says what to do."""

import asyncio
import json
import resource
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import rpc_errors
from podium_verifier.verify import Verified, verify_export
from tests.fakes.audit_process import AuditProcess, audit_process
from tests.fakes.audit_service import begin_request, end_request, open_request, running_audit, seal_request


class Caller:
    """Calls one process as gateway and router."""

    def __init__(self, audit: AuditProcess) -> None:
        self._channels = {service: audit.stub(service) for service in ("gateway", "router")}

    async def call(self, service: str, method: str, request: Any) -> Any:
        with rpc_errors("audit"):
            return await getattr(self._channels[service][1], method)(request, timeout=60)

    async def refused(self, service: str, method: str, request: Any) -> PodiumError:
        with pytest.raises(PodiumError) as caught:
            await self.call(service, method, request)
        return caught.value

    async def close(self) -> None:
        for channel, _ in self._channels.values():
            await channel.close()


def limit_file_size(pid: int, size: int) -> None:
    """Let no file of the process grow beyond `size`: its disk is full."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def test_a_full_disk_permits_nothing_and_mends_without_a_restart(tmp_path: Path, tls_dir: Path) -> None:
    async with audit_process(tmp_path, tls_dir, lease_default_s=60) as audit:
        caller = Caller(audit)
        await caller.call("gateway", "OpenRun", open_request("run_1"))
        before = audit.leaves()
        limit_file_size(audit.pid, 4_096)
        for number in range(3):
            request = begin_request(f"att_{number}", "run_1")
            error = await caller.refused("router", "BeginAttempt", request)
            assert error.code is Code.AUDIT_UNAVAILABLE
        assert (
            await caller.refused("gateway", "OpenRun", open_request("run_2"))
        ).code is Code.AUDIT_UNAVAILABLE
        await audit.ready(503)
        assert audit.leaves() == before
        limit_file_size(audit.pid, resource.RLIM_INFINITY)
        await audit.ready(200)
        await caller.call("router", "BeginAttempt", begin_request("att_9", "run_1"))
        await caller.call("router", "EndAttempt", end_request("att_9", "run_1"))
        sealed = await caller.call("gateway", "Seal", seal_request("run_1"))
        assert sealed.cost_usd_micros == 40
        types = [record["type"] for record in audit.records()]
        assert types == ["opened", "plan", "attempt_begun", "attempt_ended", "sealed"]
        assert isinstance(verify_export(await export(audit, "run_1")), Verified)
        await caller.close()


async def test_a_locked_database_permits_nothing_until_it_is_free(tmp_path: Path, tls_dir: Path) -> None:
    async with audit_process(tmp_path, tls_dir, commit_wait_s=0.3, lease_default_s=60) as audit:
        caller = Caller(audit)
        await caller.call("gateway", "OpenRun", open_request("run_1"))
        intruder = sqlite3.connect(audit.database, isolation_level=None)
        intruder.execute("BEGIN IMMEDIATE")
        error = await caller.refused("router", "BeginAttempt", begin_request("att_1", "run_1"))
        assert error.code is Code.AUDIT_UNAVAILABLE
        assert len(audit.leaves()) == 2
        intruder.execute("ROLLBACK")
        intruder.close()
        await audit.ready()
        permit = await caller.call("router", "BeginAttempt", begin_request("att_1", "run_1"))
        assert permit.leaf_index == 2
        await caller.close()


async def export(audit: AuditProcess, run_id: str) -> bytes:
    token = json.loads((audit.home / "tokens.json").read_text())["auditor"]
    url, headers = f"{audit.url}/v1/runs/{run_id}/export", {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        assert answer.status == 200
        return await answer.read()


async def start_fails(audit: AuditProcess) -> str:
    """Start a process that must refuse; return what it said."""
    before = len(audit.log_text())
    audit.start()
    assert audit.process is not None
    try:
        code = await asyncio.to_thread(audit.process.wait, 20)
    except subprocess.TimeoutExpired:
        audit.kill()
        raise
    assert code == 1
    line = json.loads(audit.log_text()[before:].strip().splitlines()[-1])
    assert line["level"] == "ERROR"
    return str(line["message"])


async def test_a_process_stops_cleanly_and_a_second_one_is_refused(tmp_path: Path, tls_dir: Path) -> None:
    async with audit_process(tmp_path, tls_dir) as audit:
        caller = Caller(audit)
        await caller.call("gateway", "OpenRun", open_request("run_1"))
        twin = AuditProcess(tmp_path, tls_dir)
        assert "another process" in await start_fails(twin)
        await caller.close()
        assert audit.kill(signal.SIGTERM) == 0
    assert (tmp_path / "keys" / "checkpoint.note").read_text().split("\n")[1] == "2"


async def make_log(home: Path, tls_dir: Path, runs: int, first: int = 0) -> None:
    async with running_audit(home, tls_dir) as audit:
        for number in range(first, first + runs):
            await audit.run(f"run_{number}")


async def refusal_to_start(home: Path, tls_dir: Path) -> str:
    with pytest.raises(PodiumError) as caught:
        async with running_audit(home, tls_dir):
            pass
    return caught.value.message


async def test_an_older_copy_of_the_database_is_refused(tmp_path: Path, tls_dir: Path) -> None:
    await make_log(tmp_path, tls_dir, 1)
    shutil.copytree(tmp_path / "data", tmp_path / "older")
    await make_log(tmp_path, tls_dir, 1, first=1)
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "older").rename(tmp_path / "data")
    assert "holds 5 leaves, but 10 were signed" in await refusal_to_start(tmp_path, tls_dir)


async def test_a_lost_database_is_refused_and_not_begun_anew(tmp_path: Path, tls_dir: Path) -> None:
    await make_log(tmp_path, tls_dir, 1)
    shutil.rmtree(tmp_path / "data")
    assert "holds 0 leaves, but 5 were signed" in await refusal_to_start(tmp_path, tls_dir)


async def test_a_log_without_its_keys_is_refused(tmp_path: Path, tls_dir: Path) -> None:
    await make_log(tmp_path, tls_dir, 1)
    shutil.rmtree(tmp_path / "keys")
    assert "restore the keys" in await refusal_to_start(tmp_path, tls_dir)


async def test_a_database_with_another_history_is_refused(tmp_path: Path, tls_dir: Path) -> None:
    await make_log(tmp_path, tls_dir, 2)
    database = sqlite3.connect(tmp_path / "data" / "log.db")
    database.execute("DROP TRIGGER leaves_no_update")
    database.execute(
        "UPDATE leaves SET data = cast(replace(data, 'key1', 'key2') AS BLOB) WHERE leaf_index = 0"
    )
    database.commit()
    database.close()
    assert "not those that were signed" in await refusal_to_start(tmp_path, tls_dir)
    (tmp_path / "keys" / "checkpoint.note").unlink()
    assert "does not fit its last checkpoint" in await refusal_to_start(tmp_path, tls_dir)


async def test_keys_of_another_log_are_refused(tmp_path: Path, tls_dir: Path) -> None:
    await make_log(tmp_path, tls_dir, 1)
    (tmp_path / "keys" / "signing.key").write_text("ab" * 32)
    assert "not one of this log" in await refusal_to_start(tmp_path, tls_dir)
    (tmp_path / "keys" / "checkpoint.note").unlink()
    assert "signed by another key" in await refusal_to_start(tmp_path, tls_dir)
