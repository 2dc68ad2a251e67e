"""Kill -9 while erasures are under way: what was acknowledged is gone, what was decided is finished."""

import asyncio
import json
import signal
from collections.abc import Iterable
from pathlib import Path
from sqlite3 import connect
from typing import Any

import aiohttp

from podium.audit.v1 import audit_service_pb2 as pb
from tests.fakes.audit_process import AuditProcess, audit_process
from tests.fakes.audit_service import begin_request, end_request, open_request, seal_request
from tests.fakes.waiting import PATIENCE_S

CANARY = b"canary-e1b0: nobody should know this"
RUNS = 60
AT_ONCE = 4


async def make_runs(audit: AuditProcess) -> None:
    part = pb.Content(part_id="question", name="question", media_type="text/plain", data=CANARY)
    gateway_channel, gateway = audit.stub("gateway")
    router_channel, router = audit.stub("router")

    async def make(number: int) -> None:
        run_id = f"run_{number}"
        await gateway.OpenRun(open_request(run_id, contents=[part]), timeout=60)
        await router.BeginAttempt(begin_request(f"{run_id}.1", run_id), timeout=60)
        await router.EndAttempt(end_request(f"{run_id}.1", run_id), timeout=60)
        await gateway.Seal(seal_request(run_id), timeout=60)

    await asyncio.gather(*(make(number) for number in range(RUNS)))
    await gateway_channel.close()
    await router_channel.close()


async def erase_until_killed(audit: AuditProcess, run_ids: Iterable[str], told: dict[str, int]) -> None:
    key = json.loads((audit.home / "tokens.json").read_text())["officer"]
    waiting = list(run_ids)

    async def work(session: aiohttp.ClientSession) -> None:
        while waiting:
            order = {"run_ids": [waiting.pop()], "basis": "subject_request"}
            try:
                async with session.post(f"{audit.url}/v1/erasures", json=order) as answer:
                    body = await answer.json()
            except (aiohttp.ClientError, OSError):
                return
            if answer.status == 200:
                told.update((each["run_id"], each["leaf_index"]) for each in body["erased"])
            if len(told) >= AT_ONCE and audit.process is not None and audit.process.poll() is None:
                audit.kill(signal.SIGKILL)

    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        await asyncio.gather(*(work(session) for _ in range(8)))


def of_type(records: list[dict[str, Any]], kind: str) -> dict[str, int]:
    return {record["run_id"]: index for index, record in enumerate(records) if record["type"] == kind}


async def test_what_was_decided_is_finished_after_a_kill(tmp_path: Path, tls_dir: Path) -> None:
    told: dict[str, int] = {}
    # An answer that came too late would not count as told, and the kill would come after the last erasure.
    async with audit_process(tmp_path, tls_dir, commit_wait_s=PATIENCE_S) as audit:
        await make_runs(audit)
        await erase_until_killed(audit, [f"run_{number}" for number in range(RUNS)], told)
        begun = of_type(audit.records(), "erasure_begun")
        assert AT_ONCE <= len(told) <= len(begun) < RUNS
        audit.start()
        await audit.ready()
        async with asyncio.timeout(PATIENCE_S):
            while (erased := of_type(audit.records(), "erased")).keys() != begun.keys():
                await asyncio.sleep(0.05)
        assert {run_id: erased[run_id] for run_id in told} == told, "a record that was told of is there"
        gone = {key_no for run_id, key_no in audit.rows("SELECT run_id, key_no FROM runs") if run_id in begun}
        with connect(tmp_path / "data" / "run-keys.db") as database:
            left = {row[0] for row in database.execute("SELECT key_no FROM run_keys")}
        assert not gone & left
        (kept,) = audit.rows(
            "SELECT count(*) FROM contents JOIN leaves ON leaf_index = content_no / 256"
            " JOIN erasures USING (run_no)"
        )
        assert kept == (0,)
