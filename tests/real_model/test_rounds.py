"""`podium-max` through a whole installation whose Conductor is the real small model, on the demo pool.

The client's `seed` decides what a model that is no good at this draws: under some of the seeds below it accepts
the first answer, under others it writes another workflow. Which ones is printed, and is each run's record.
"""

import asyncio
import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import aiohttp
import pytest

from podium_verifier.verify import Verified, verify_export
from tests.e2e.cluster import Cluster, running
from tests.real_model.checkpoints import checkpoint_cache, smollm

pytestmark = pytest.mark.skipif(
    find_spec("vllm") is None, reason="`make vllm-test` has an environment with vLLM"
)
SEEDS = range(1, 9)
ASKED = "Multiply 17 by 23."
PATIENT_S = "300"


@pytest.fixture(scope="module")
def podium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    conductor = {
        "ENGINE": "vllm", "MODEL_PATH": str(smollm(checkpoint_cache())), "CONTEXT_TOKENS": "4096", "CPU_CACHE_GIB": "1",
        "EAGER": "true", "COMPLETION_TOKENS": "128", "REASONING_TOKENS": "0", "TEMPERATURE": "1.5",
        "CHOICE_CHANCES": "false", "MAX_PLAN_S": PATIENT_S,
    }  # fmt: skip
    # A model on the same cores makes everything else slow, which is not what this is about: nobody hurries.
    extra = {
        "conductor": {f"PODIUM_CONDUCTOR_{key}": value for key, value in conductor.items()},
        "gateway": {
            "PODIUM_GATEWAY_PLAN_TIMEOUT_S": PATIENT_S,
            "PODIUM_GATEWAY_PODIUM_MAX_ROUNDS": "2",
            "PODIUM_GATEWAY_AUDIT_WAIT_S": "60",
        },
        "router": {"PODIUM_ROUTER_PERMIT_TIMEOUT_S": "60"},
        "audit": {"PODIUM_AUDIT_COMMIT_WAIT_S": "30"},
    }
    with running(Cluster(tmp_path_factory.mktemp("rounds"), extra=extra)) as made:
        yield made


async def answered(podium: Cluster, session: aiohttp.ClientSession, seed: int) -> dict[str, Any]:
    body = {"model": "podium-max", "messages": [{"role": "user", "content": ASKED}], "seed": seed}
    async with session.post(f"{podium.gateway_url}/v1/chat/completions", json=body) as response:
        told: dict[str, Any] = await response.json()
        assert response.status == 200, told
        return told


async def leaves_of(podium: Cluster, session: aiohttp.ClientSession, run_id: str) -> list[dict[str, Any]]:
    """Return the run's records once the verifier has proven them."""
    async with session.get(f"{podium.audit_url}/v1/runs/{run_id}/export") as answer:
        export = await answer.read()
    assert isinstance(verify_export(export), Verified)
    lines = [json.loads(line) for line in export.decode().splitlines()]
    return [json.loads(line["leaf"]) for line in lines if line["line"] == "leaf"]


async def test_the_real_model_accepts_under_some_seeds_and_revises_under_others(podium: Cluster) -> None:
    await podium.wait_ready(300)
    async with aiohttp.ClientSession(headers=podium.headers) as session:
        told = await asyncio.gather(*(answered(podium, session, seed) for seed in SEEDS))
        shown = dict(zip(SEEDS, (answer["podium"] for answer in told), strict=True))
        accepted = {seed: run["rounds"][-1]["accepted"] for seed, run in shown.items()}
        print(f"\nseeds that accept: {[s for s in SEEDS if accepted[s]]}")
        print(f"seeds that revise: {[s for s in SEEDS if not accepted[s]]}")
        assert {run["plan"]["source"] for run in shown.values()} == {"model"}
        assert set(accepted.values()) == {True, False}
        for accepts in (True, False):
            seed = next(s for s in SEEDS if accepted[s] is accepts)
            plans = [
                leaf["facts"]
                for leaf in await leaves_of(podium, session, shown[seed]["run_id"])
                if leaf["type"] == "plan"
            ]
            assert [plan["round"] for plan in plans] == [0, 1]
            assert bool(plans[1]["steps"]) is not accepts
            assert plans[0]["seed"] != plans[1]["seed"]
