"""Everyday verbs against a running installation: stopped work gets no permit, changed files count at once."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from podium_cli.__main__ import main
from podium_core.config.tenants import new_key
from tests.e2e.cluster import Cluster, running
from tests.fakes.upstream import Upstream, answer
from tests.fakes.waiting import PATIENCE_S, SOON_S, STALL_S, until

WORKER = """
  - id: {name}
    provider: openai-compatible
    model: {name}
    base_url: "{base_url}"
    price: {{input_usd_per_mtok: "1.00", output_usd_per_mtok: "2.00"}}
    limits: {{timeout_s: 240, max_output_tokens: 64}}
"""
ASKED = {"messages": [{"role": "user", "content": "6 times 7?"}]}


async def _ask(podium: Cluster, model: str, key: str = "") -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {key}"} if key else podium.headers
    async with (
        aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=240)) as session,
        session.post(f"{podium.gateway_url}/v1/chat/completions", json={"model": model, **ASKED}) as response,
    ):
        return response.status, await response.json()


async def _until(podium: Cluster, model: str, status: int, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
    async with asyncio.timeout(timeout_s):
        while (found := await _ask(podium, model))[0] != status:
            await asyncio.sleep(0.1)
    return found[1]


def _command(podium: Cluster, *words: str) -> int:
    """Run `podium` over the cluster's files, as an operator of this home."""
    address = f"127.0.0.1:{podium.ports['audit']}"
    (podium.home / "endpoints.json").write_text(json.dumps({"grpc": {"audit": address}}))
    return main(["--home", str(podium.home), *words])


pytestmark = pytest.mark.slow


@pytest.fixture
def podium(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "home", {"gateway": {"PODIUM_GATEWAY_LEASE_S": "3"}})


async def test_stops_hold_from_the_next_permit_on_and_reach_runs_under_way(
    podium: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Upstream(answer("42").but(delay_s=STALL_S)) as upstream:
        podium.more_workers = WORKER.format(name="slow", base_url=upstream.base_url)
        with running(podium):
            await podium.wait_ready()
            waiting = asyncio.create_task(_ask(podium, "worker/slow"))
            await upstream.seen()
            assert await asyncio.to_thread(_command, podium, "stop", "--worker", "slow") == 0
            status, refused = await _ask(podium, "worker/slow")
            assert status >= 400
            assert len(upstream.requests) == 1, "no permit, no byte"
            assert (await _ask(podium, "worker/demo-arithmetic"))[0] == 200
            assert await asyncio.to_thread(_command, podium, "stop", "--all") == 0
            # Within a renewal of its lease of 3 s, not when the worker answers.
            status, _ = await asyncio.wait_for(waiting, SOON_S)
            assert status >= 400
            assert (await _ask(podium, "worker/demo-arithmetic"))[0] >= 400
            assert await asyncio.to_thread(_command, podium, "stop") == 0
            assert "slow, every tenant" in capsys.readouterr().out
            assert await asyncio.to_thread(_command, podium, "stop", "--all", "--resume") == 0
            assert (await _ask(podium, "worker/demo-arithmetic"))[0] == 200
            assert await asyncio.to_thread(_command, podium, "stop", "--all", "--resume") == 1
    assert "stopped" in json.dumps(refused).lower()


async def test_changed_files_count_at_once_and_broken_ones_do_not(podium: Cluster) -> None:
    async with Upstream(answer("42").but(delay_s=4)) as upstream:
        with running(podium):
            await podium.wait_ready()
            pool, tenants = podium.home / "pool.yaml", podium.home / "tenants.yaml"
            good = pool.read_text()
            pool.write_text(good + WORKER.format(name="later", base_url=upstream.base_url) + "    oops: 1\n")
            line = good.count("\n") + 8
            await until(lambda: f"pool.yaml line {line}: workers[" in podium.log_of("router"))
            assert (await _ask(podium, "worker/later"))[0] == 404
            assert (await _ask(podium, "worker/demo-arithmetic"))[0] == 200
            pool.write_text(good + WORKER.format(name="later", base_url=upstream.base_url))
            slow = asyncio.create_task(_until(podium, "worker/later", 200))
            await upstream.seen()
            # The worker and the key that began the run both go; the run itself goes on to its end.
            pool.write_text(good)
            token, digest = new_key("next")
            old = json.loads(tenants.read_text())
            old["tenants"][0]["keys"][0] |= {"id": "next", "sha256": digest}
            tenants.write_text(json.dumps(old))
            assert (await _ask(podium, "worker/demo-arithmetic"))[0] == 401
            assert (await _ask(podium, "worker/demo-arithmetic", token))[0] == 200
            assert (await asyncio.wait_for(slow, PATIENCE_S))["choices"][0]["message"]["content"] == "42"
            podium.api_key = token
            await _until(podium, "worker/later", 404)
