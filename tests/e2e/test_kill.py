"""Any service may die at any moment under load: nothing acknowledged is lost, nothing is left open."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.cluster import Cluster, running
from tests.fakes.waiting import PATIENCE_S

RUNS = 200
QUESTION = "Multiply 17 by 23, write the result as a Roman numeral, and reverse the letters."
LEASE = {"PODIUM_GATEWAY_LEASE_S": "3"}


@dataclass(slots=True)
class Told:
    """What clients were told: run ids of any answer, and the receipts they hold."""

    run_ids: set[str] = field(default_factory=set)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)


async def ask(session: aiohttp.ClientSession, podium: Cluster, told: Told) -> None:
    body = {"model": "podium", "messages": [{"role": "user", "content": QUESTION}]}
    try:
        async with session.post(f"{podium.gateway_url}/v1/chat/completions", json=body) as answer:
            told.statuses.append(answer.status)
            if run_id := answer.headers.get("x-podium-run-id"):
                told.run_ids.add(run_id)
            if answer.status == 200:
                told.receipts.append((await answer.json())["podium"]["receipt"])
    except (aiohttp.ClientError, TimeoutError):
        told.statuses.append(0)


async def delay_workers(session: aiohttp.ClientSession, podium: Cluster) -> None:
    """Slow the specialists down, so that the kill finds attempts under way."""
    for model in ("demo-arithmetic", "demo-numerals", "demo-text"):
        fault = {"model": model, "kind": "delay", "seconds": 0.3, "count": 10_000}
        async with session.post(f"{podium.demo_url}/faults", json=fault) as answer:
            assert answer.status < 300, await answer.text()


def leaves_in(podium: Cluster) -> list[dict[str, Any]]:
    """Read every leaf straight from the database, past the service."""
    (path,) = podium.database.glob("log*.db")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT data FROM leaves ORDER BY leaf_index").fetchall()
    return [json.loads(row[0]) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["audit", "router", "conductor", "gateway"])
async def test_a_kill_under_load_loses_nothing_and_leaves_nothing_open(victim: str, tmp_path: Path) -> None:
    told = Told()
    with running(Cluster(tmp_path, {"gateway": LEASE})) as podium:
        await podium.wait_ready()
        timeout = aiohttp.ClientTimeout(total=240)
        connector = aiohttp.TCPConnector(limit=RUNS)
        async with aiohttp.ClientSession(
            headers=podium.headers, timeout=timeout, connector=connector
        ) as session:
            await delay_workers(session, podium)
            asked = [asyncio.create_task(ask(session, podium, told)) for _ in range(RUNS)]
            await asyncio.sleep(1.5)
            podium.kill(victim)
            await asyncio.sleep(0.5)
            podium.start(victim)
            await asyncio.gather(*asked)
            await podium.wait_ready()
        await every_run_ended(podium)
        check(podium, told)


async def every_run_ended(podium: Cluster) -> None:
    """Wait until no run is open any more; leases lapse within seconds."""
    async with asyncio.timeout(2 * PATIENCE_S):
        while open_runs(leaves_in(podium)):
            await asyncio.sleep(0.5)


def open_runs(leaves: list[dict[str, Any]]) -> set[str]:
    opened = {leaf["run_id"] for leaf in leaves if leaf["type"] == "opened"}
    return opened - {leaf["run_id"] for leaf in leaves if leaf["type"] == "sealed"}


def check(podium: Cluster, told: Told) -> None:
    leaves = leaves_in(podium)
    by_run: dict[str, list[dict[str, Any]]] = {}
    for leaf in leaves:
        by_run.setdefault(leaf["run_id"], []).append(leaf)
    # Every acknowledged record is there.
    for receipt in told.receipts:
        indices = receipt["leaf_indices"]
        assert [leaves[index]["run_id"] for index in indices] == [receipt["run_id"]] * len(indices)
        assert leaves[indices[-1]]["type"] == "sealed"
    # Every run a client heard of ended, sealed or abandoned, with its money settled.
    outcomes = {
        run: leaf["facts"]["outcome"]
        for run, all_ in by_run.items()
        for leaf in all_
        if leaf["type"] == "sealed"
    }
    assert told.run_ids <= outcomes.keys()
    begun = {leaf["facts"]["attempt_id"]: leaf for leaf in leaves if leaf["type"] == "attempt_begun"}
    ended = {leaf["facts"]["attempt_id"]: leaf for leaf in leaves if leaf["type"] == "attempt_ended"}
    unknown = {a for leaf in leaves if leaf["type"] == "sealed" for a in leaf["facts"]["unknown_attempts"]}
    assert begun.keys() == ended.keys() | unknown
    assert not ended.keys() & unknown
    # Every request in the provider's own log joins exactly one attempt committed before it arrived.
    requests = podium.provider_requests()
    ids = [request["attempt_id"] for request in requests]
    assert len(ids) == len(set(ids))
    for request in requests:
        assert begun[request["attempt_id"]]["time_us"] * 1_000 <= request["time_ns"]
    # An attempt without a request is known not to have gone out, or settled as unknown.
    for attempt_id in begun.keys() - set(ids):
        assert attempt_id in unknown or not ended[attempt_id]["facts"]["dispatched"]
    assert requests
    assert told.statuses


@pytest.mark.slow
async def test_with_audit_stopped_no_byte_reaches_the_provider(tmp_path: Path) -> None:
    with running(Cluster(tmp_path)) as podium:
        await podium.wait_ready()
        podium.kill("audit")
        before = len(podium.provider_requests())
        told = Told()
        async with aiohttp.ClientSession(headers=podium.headers) as session:
            await asyncio.gather(*(ask(session, podium, told) for _ in range(20)))
        assert set(told.statuses) == {503}
        assert len(podium.provider_requests()) == before
        podium.start("audit")
        await podium.wait_ready()
        async with aiohttp.ClientSession(headers=podium.headers) as session:
            await ask(session, podium, told)
        assert told.statuses[-1] == 200
