"""A worker of the pool as Conductor, over real services: opened, asked, planned, recorded, performed, proven."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from podium_verifier.verify import Verified, verify_export
from tests.e2e.cluster import Cluster, running
from tests.fakes.prompted_planner import PromptedPlanner
from tests.fakes.waiting import PATIENCE_S, SOON_S, until

ASKED = "Multiply 17 by 23 and write the result as a Roman numeral."
WORKER = """
  - id: planner
    provider: openai-compatible
    model: planner
    base_url: "{base_url}"
    region: local
    price: {{input_usd_per_mtok: "1.00", output_usd_per_mtok: "2.00"}}
    limits: {{max_concurrency: 8, timeout_s: 30, context_tokens: 128000, max_output_tokens: 4096}}
"""
ENGINE = {"PODIUM_CONDUCTOR_ENGINE": "worker", "PODIUM_CONDUCTOR_PLANNING_WORKER": "planner"}


@pytest.fixture
async def planner() -> AsyncIterator[PromptedPlanner]:
    async with PromptedPlanner() as planner:
        yield planner


async def answered(podium: Cluster, model: str = "podium", **wishes: object) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": ASKED}], "podium": wishes}
    async with (
        aiohttp.ClientSession(headers=podium.headers) as session,
        session.post(f"{podium.gateway_url}/v1/chat/completions", json=body) as response,
    ):
        told: dict[str, Any] = await response.json()
        assert response.status == 200, told
        return told


async def leaves_of(podium: Cluster, run_id: str) -> list[dict[str, Any]]:
    """Return the run's records once the verifier has proven them."""
    url = f"{podium.audit_url}/v1/runs/{run_id}/export"
    async with aiohttp.ClientSession(headers=podium.headers) as session, session.get(url) as answer:
        export = await answer.read()
    assert isinstance(verify_export(export), Verified)
    lines = [json.loads(line) for line in export.decode().splitlines()]
    return [json.loads(line["leaf"]) for line in lines if line["line"] == "leaf"]


async def test_a_worker_of_the_pool_conducts(tmp_path: Path, planner: PromptedPlanner) -> None:
    """One installation, four questions: plain, with a slip, in rounds, and as a dry run."""
    more = WORKER.format(base_url=planner.base_url)
    with running(Cluster(tmp_path, extra={"conductor": ENGINE}, more_workers=more)) as podium:
        await podium.wait_ready()
        await _plain(podium, planner)
        await _told_what_was_wrong(podium, planner)
        await _in_rounds(podium, planner)
        await _dry(podium)
        await _never_a_plan(podium, planner)
        await _by_command(podium)
        await _client_gone(podium, planner)


async def _plain(podium: Cluster, planner: PromptedPlanner) -> None:
    told = await answered(podium)
    assert "CCCXCI" in told["choices"][0]["message"]["content"]
    shown = told["podium"]
    assert shown["plan"]["source"] == "worker"
    assert [step["worker"] for step in shown["plan"]["steps"]] == ["demo-arithmetic", "demo-numerals"]
    assert [attempt["worker"] for attempt in shown["planning"]] == ["planner"]
    # 1,000 in at $1 and 50 out at $2 per million: the plan's price is in the run's.
    assert shown["planning"][0]["cost_usd_micros"] == 1_100
    assert shown["cost_usd_micros"] >= 1_100
    assert told["usage"]["prompt_tokens_details"]["orchestration_input_tokens"] >= 1_000
    leaves = await leaves_of(podium, shown["run_id"])
    types = [leaf["type"] for leaf in leaves if leaf["type"] not in ("content", "read")]
    assert types[:4] == ["opened", "attempt_begun", "attempt_ended", "plan"]
    assert [leaf["facts"].get("kind") for leaf in leaves if leaf["type"] == "attempt_begun"] == [
        "plan",
        "step",
        "step",
    ]
    assert not leaves[0]["facts"]["has_plan"]
    assert ASKED in planner.prompts[0][1]["content"]


async def _told_what_was_wrong(podium: Cluster, planner: PromptedPlanner) -> None:
    planner.mistakes = 1
    told = await answered(podium)
    assert told["podium"]["plan"]["source"] == "worker"
    assert len(told["podium"]["planning"]) == 2
    assert "no complete triple" in planner.prompts[-1][-1]["content"]


async def _in_rounds(podium: Cluster, planner: PromptedPlanner) -> None:
    planner.revises = True
    told = await answered(podium, "podium-max")
    shown = told["podium"]
    assert [result["accepted"] for result in shown["rounds"]] == [False, False, True]
    assert [result["changed"] for result in shown["rounds"]] == [False, True, False]
    assert shown["flip_count"] == 1
    assert shown["caps"]["rounds"] == 3
    leaves = await leaves_of(podium, shown["run_id"])
    assert [leaf["facts"]["round"] for leaf in leaves if leaf["type"] == "plan"] == [0, 1, 2]
    [note] = [leaf["facts"] for leaf in leaves if leaf["type"] == "note"]
    assert note["kind"] == "rounds"
    assert note["facts"]["flip_count"] == "1"
    accepting = await answered(podium, "podium-max")
    assert [result["accepted"] for result in accepting["podium"]["rounds"]] == [False, True]
    assert "CCCXCI" in accepting["choices"][0]["message"]["content"]


async def _dry(podium: Cluster) -> None:
    told = await answered(podium, dry_run=True)
    assert told["podium"]["plan"]["source"] == "worker"
    leaves = await leaves_of(podium, told["podium"]["run_id"])
    sealed = leaves[-1] if leaves[-1]["type"] == "sealed" else leaves[-2]
    assert sealed["facts"]["outcome"] == "refused"
    assert sealed["facts"]["error_reason"] == "DRY_RUN"
    assert sealed["facts"]["attempt_count"] == 1


async def _never_a_plan(podium: Cluster, planner: PromptedPlanner) -> None:
    planner.mistakes = 3
    told = await answered(podium, workers={"except": ["demo-text"]})
    assert told["podium"]["plan"]["source"] == "fallback"
    assert told["podium"]["plan"]["fallback_reason"] == "plan_no_triple"
    assert len(told["podium"]["planning"]) == 3
    fast = await answered(podium, "podium-fast")
    assert fast["podium"]["plan"]["source"] == "fast"
    assert fast["podium"]["plan"]["fallback_reason"] == "engine_without_probabilities"
    assert len(fast["podium"]["steps"]) == 1


async def _by_command(podium: Cluster) -> None:
    """`podium plan` has the plan made on a run of its own, which is recorded and sealed."""
    addresses = {name: f"127.0.0.1:{podium.ports[name]}" for name in ("conductor", "router", "audit")}
    (podium.home / "endpoints.json").write_text(json.dumps({"grpc": addresses}))
    command = [sys.executable, "-m", "podium_cli", "plan", "--home", str(podium.home), "--seed", "5", ASKED]
    made = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=60, check=False
    )
    assert made.returncode == 0, made.stderr
    for words in (ASKED, "You lead a team", "model_id = [", "demo-numerals", "recorded as", "$0.0011"):
        assert words in made.stdout, made.stdout
    run_id = made.stdout.split("recorded as")[1].split()[0]
    leaves = await leaves_of(podium, run_id)
    assert leaves[0]["facts"]["kind"] == "probe"
    types = [leaf["type"] for leaf in leaves if leaf["type"] not in ("content", "read")]
    assert types == ["opened", "attempt_begun", "attempt_ended", "plan", "sealed"]


async def _client_gone(podium: Cluster, planner: PromptedPlanner) -> None:
    """Whoever leaves while a worker still plans stops that worker, and the run is sealed `cancelled`."""
    planner.hangs = True
    count = len(planner.prompts)
    asking = asyncio.create_task(answered(podium))
    await until(lambda: len(planner.prompts) > count)
    asking.cancel()
    async with asyncio.timeout(SOON_S):
        await planner.hung_up.wait()
    planner.hangs = False
    async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession(headers=podium.headers) as session:
        while True:
            async with session.get(f"{podium.audit_url}/v1/runs?limit=1") as response:
                [run] = (await response.json())["runs"]
            if run["outcome"]:
                break
            await asyncio.sleep(0.05)
    leaves = await leaves_of(podium, run["run_id"])
    sealed = next(leaf["facts"] for leaf in leaves if leaf["type"] == "sealed")
    assert (sealed["outcome"], sealed["attempt_count"]) == ("cancelled", 1)
    assert not [leaf for leaf in leaves if leaf["type"] == "plan"]
