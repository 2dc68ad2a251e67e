"""Whole installations under attack: hang-ups, frozen services, lying workers, lost files, bad configuration."""

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.cluster import Cluster, running
from tests.e2e.test_kill import every_run_ended, leaves_in, open_runs
from tests.fakes.upstream import Upstream, answer
from tests.fakes.waiting import PATIENCE_S, until

pytestmark = pytest.mark.slow

WORKER = """
  - id: scripted
    provider: openai-compatible
    model: scripted
    base_url: "{base_url}"
    price: {{input_usd_per_mtok: "1.00", output_usd_per_mtok: "2.00"}}
    limits: {{max_concurrency: 512, timeout_s: 60, max_output_tokens: 4096}}
"""


@asynccontextmanager
async def attacked(home: Path, upstream: Upstream, **changes: Any) -> AsyncIterator[Cluster]:
    """Run an installation whose worker `scripted` does what the test wants."""
    cluster = Cluster(home, **changes)
    with running(cluster) as podium:
        pool = home / "pool.yaml"
        pool.write_text(pool.read_text() + WORKER.format(base_url=upstream.base_url))
        await podium.wait_ready()
        async with asyncio.timeout(PATIENCE_S):
            while (await ask(podium))[0] == 404:
                await asyncio.sleep(0.2)
        try:
            yield podium
        finally:
            for process in podium.processes.values():
                process.send_signal(signal.SIGCONT)


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "worker/scripted", "messages": [{"role": "user", "content": "6 times 7?"}], **fields}


async def ask(podium: Cluster, url: str = "", **fields: Any) -> tuple[int, str]:
    """Return the status and the error code, if any, of one request; `url` is another gateway's."""
    async with (
        aiohttp.ClientSession(headers=podium.headers, timeout=aiohttp.ClientTimeout(total=240)) as session,
        session.post(f"{url or podium.gateway_url}/v1/chat/completions", json=body(**fields)) as response,
    ):
        text = await response.text()
        return response.status, "" if response.status == 200 else json.loads(text)["error"]["code"]


def open_attempts(leaves: list[dict[str, Any]]) -> set[str]:
    begun = {leaf["facts"]["attempt_id"] for leaf in leaves if leaf["type"] == "attempt_begun"}
    ended = {leaf["facts"]["attempt_id"] for leaf in leaves if leaf["type"] == "attempt_ended"}
    unknown = {a for leaf in leaves if leaf["type"] == "sealed" for a in leaf["facts"]["unknown_attempts"]}
    return begun - ended - unknown


async def hang_up(podium: Cluster, chance: random.Random) -> None:
    """Ask and leave at some moment, before, within or after the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", podium.ports["gateway"])
    data = json.dumps(body(stream=chance.random() < 0.7)).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n"
    head += f"Authorization: {podium.headers['Authorization']}\r\n\r\n"
    writer.write(head.encode() + data[: None if chance.random() < 0.9 else 20])
    await asyncio.sleep(chance.choice([0, 0.002, 0.01, 0.03, 0.3, 1.0]))
    writer.transport.abort()
    del reader


async def test_hang_ups_at_any_moment_reach_the_provider_and_leave_nothing_open(tmp_path: Path) -> None:
    chance = random.Random(7)
    async with (
        Upstream(answer(*["word "] * 200).but(gap_s=0.05)) as upstream,
        attacked(tmp_path, upstream) as podium,
    ):
        upstream.requests.clear()
        for _ in range(5):
            await asyncio.gather(*(hang_up(podium, chance) for _ in range(30)))
            await until(lambda: all(seen.ended_s is not None for seen in upstream.requests))
        await every_run_ended(podium)
        leaves = leaves_in(podium)
        assert open_attempts(leaves) == set()
        outcomes = Counter(leaf["facts"]["outcome"] for leaf in leaves if leaf["type"] == "sealed")
        assert outcomes["cancelled"] > 50
        begun = [leaf["facts"]["attempt_id"] for leaf in leaves if leaf["type"] == "attempt_begun"]
        assert {seen.attempt_id for seen in upstream.requests} <= set(begun)


@pytest.mark.parametrize("victim", ["audit", "router", "conductor"])
async def test_a_frozen_service_is_waited_out_or_refused_and_then_all_is_well(
    victim: str, tmp_path: Path
) -> None:
    async with Upstream(answer("42")) as upstream, attacked(tmp_path, upstream) as podium:
        before = len(upstream.requests)
        podium.processes[victim].send_signal(signal.SIGSTOP)
        asked = [asyncio.create_task(ask(podium)) for _ in range(5)]
        await asyncio.sleep(7.0)
        if victim == "conductor":
            assert {task.result() for task in asked} == {(200, "")}, "a named worker needs no plan"
        else:
            assert len(upstream.requests) == before, "without its permit nothing is sent"
        podium.processes[victim].send_signal(signal.SIGCONT)
        told = await asyncio.gather(*asked)
        assert {status for status, _ in told} == ({503} if victim == "audit" else {200})
        assert (await ask(podium))[0] == 200
        await every_run_ended(podium)
        assert open_attempts(leaves_in(podium)) == set()


async def replica_of(podium: Cluster) -> str:
    """Start a second gateway, and wait until it can answer."""
    url = podium.start_replica()
    async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession(headers=podium.headers) as session:
        while True:
            try:
                async with session.get(f"{url}/v1/models") as listed:
                    if "worker/scripted" in await listed.text():
                        return url
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)


async def test_a_tiny_budget_holds_over_two_gateways_and_against_a_worker_that_lies(tmp_path: Path) -> None:
    budget = 20_000
    lie = {"prompt_tokens": 10**9, "completion_tokens": 10**9}
    async with (
        Upstream(answer("42", usage=lie).but(delay_s=0.2)) as upstream,
        attacked(tmp_path, upstream, budget_usd_per_month="0.02") as podium,
    ):
        urls = [podium.gateway_url, await replica_of(podium)] * 50
        told = Counter(await asyncio.gather(*(ask(podium, url, max_tokens=500) for url in urls)))
        assert set(told) == {(200, ""), (429, "tenant_budget_exhausted")}
        held: dict[str, int] = {}
        spent = most = 0
        for leaf in leaves_in(podium):
            facts = leaf["facts"]
            if leaf["type"] == "attempt_begun":
                held[facts["attempt_id"]] = facts["max_cost_usd_micros"]
            elif leaf["type"] == "attempt_ended":
                spent += facts["cost_usd_micros"]
                assert facts["cost_usd_micros"] <= held.pop(facts["attempt_id"])
            most = max(most, spent + sum(held.values()))
        assert 0 < most <= budget


async def test_a_log_whose_file_is_deleted_acknowledges_nothing_and_is_not_begun_anew(tmp_path: Path) -> None:
    async with Upstream(answer("42")) as upstream, attacked(tmp_path, upstream) as podium:
        await asyncio.sleep(1.0)  # until the newest checkpoint stands beside the signing key
        before = len(upstream.requests)
        (podium.database / "log.db").unlink()
        assert {await ask(podium) for _ in range(2)} == {(503, "audit_unavailable")}
        assert len(upstream.requests) == before
        assert not (podium.database / "log.db").exists()
        podium.kill("audit", signal.SIGTERM)
        podium.start("audit")
        assert podium.processes["audit"].wait(PATIENCE_S) == 1
        # Which check notices first depends on what the first process left beside the file.
        assert "restore the newest" in podium.log_of("audit").splitlines()[-1]


async def test_a_bad_file_changes_nothing_and_a_revoked_key_ends(tmp_path: Path) -> None:
    async with Upstream(answer("42")) as upstream, attacked(tmp_path, upstream) as podium:
        tenants, pool = tmp_path / "tenants.yaml", tmp_path / "pool.yaml"
        for file in (tenants, pool):
            good = file.read_text()
            endless = f'"{"9" * 10**6}"'
            huge = good.replace('"1.00"', endless).replace('"1000.00"', endless)
            for bad in ("x: [}", "", "\0", "[" * 5_000, huge):
                file.write_text(bad)
                await asyncio.sleep(2.5)
                assert (await ask(podium))[0] == 200
            file.write_text(good)
        changed = json.loads(tenants.read_text())
        changed["tenants"][0]["keys"][0]["id"] = "another"
        tenants.write_text(json.dumps(changed))
        async with asyncio.timeout(PATIENCE_S):
            while await ask(podium) != (401, "invalid_api_key"):
                await asyncio.sleep(0.2)
        assert open_runs(leaves_in(podium)) == set()
