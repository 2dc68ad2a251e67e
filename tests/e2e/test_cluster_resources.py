"""A whole Podium whose pool and tenants are objects of a cluster: asked, changed under way, stopped."""

import asyncio
from importlib import resources
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.e2e.cluster import Cluster
from tests.fakes.cluster_api import NAMESPACE, ClusterApi, cluster_api
from tests.fakes.waiting import PATIENCE_S, until

QUESTION = {"model": "podium-fast", "messages": [{"role": "user", "content": "What is 17 * 23?"}]}


def from_objects(api: ClusterApi, directory: Path) -> dict[str, dict[str, str]]:
    """Return the settings that change where pool and tenants come from."""
    found: dict[str, dict[str, str]] = {}
    for service, what, file in (
        ("router", "POOL", "POOL"),
        ("gateway", "TENANTS", "TENANTS"),
        ("audit", "TENANTS", "TENANTS"),
    ):
        prefix = f"PODIUM_{service.upper()}"
        found[service] = {
            f"{prefix}_{what}_SOURCE": "kubernetes",
            f"{prefix}_{file}_FILE": "",
            f"{prefix}_CLUSTER_NAMESPACE": NAMESPACE,
            f"{prefix}_CLUSTER_KUBECONFIG_FILE": str(api.kubeconfig(directory, service)),
            f"{prefix}_CLUSTER_STATUS_S": "0.2",
        }
    found["router"]["PODIUM_ROUTER_PROVIDER_KEYS_DIR"] = str(directory / "keys")
    return found


def apply_demo(api: ClusterApi, podium: Cluster) -> None:
    """Apply the demo pool and its tenant as objects."""
    text = resources.files("podium_demo").joinpath("pool.demo.yaml").read_text()
    for worker in yaml.safe_load(text.replace("{base_url}", f"{podium.demo_url}/v1"))["workers"]:
        for skill in worker["card"]["skills"]:
            skill["measured_on"] = str(skill["measured_on"])
        api.apply("Worker", worker.pop("id"), worker)
    tenant = yaml.safe_load((podium.home / "tenants.yaml").read_text())["tenants"][0]
    api.apply("Tenant", tenant.pop("id"), tenant)


async def ask(podium: Cluster) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession(headers=podium.headers) as session,
        session.post(f"{podium.gateway_url}/v1/chat/completions", json=QUESTION) as answer,
    ):
        return answer.status, await answer.json()


@pytest.mark.slow
async def test_a_pool_of_objects_answers_changes_and_stops(tmp_path: Path) -> None:
    async with cluster_api() as api:
        podium = Cluster(tmp_path / "home", extra=from_objects(api, tmp_path))
        podium.prepare()
        apply_demo(api, podium)
        try:
            podium.start()
            await podium.wait_ready()
            status, told = await ask(podium)
            assert status == 200, told
            assert "391" in told["choices"][0]["message"]["content"]
            await until(lambda: api.condition("Worker", "demo-arithmetic", "Ready") == ("True", "Healthy"))
            assert api.status("Worker", "demo-arithmetic")["lastCalibration"] == "2026-11-30"

            api.apply("Policy", "nobody", {"regions": {"except": ["local"]}})
            await until(lambda: api.condition("Policy", "nobody", "Accepted") == ("True", "Valid"))
            async with asyncio.timeout(PATIENCE_S):
                while (await ask(podium))[0] == 200:
                    await asyncio.sleep(0.1)
            status, told = await ask(podium)
            assert (status, told["error"]["code"]) == (403, "no_eligible_worker")

            api.delete("Policy", "nobody")
            api.is_away = True
            api.cut()
            api.is_away = False
            async with asyncio.timeout(PATIENCE_S):
                while (await ask(podium))[0] != 200:
                    await asyncio.sleep(0.1)
        finally:
            await asyncio.to_thread(podium.stop)
        codes = {name: process.returncode for name, process in podium.processes.items() if name != "demo"}
        assert codes == dict.fromkeys(codes, 0)
