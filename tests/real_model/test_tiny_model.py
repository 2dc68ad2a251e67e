"""vLLM with tiny random checkpoints: the service as a process, switching checkpoints, adapters, wrong weights."""

import asyncio
import os
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podium.conductor.v1 import conductor_service_pb2 as pb
from podium.conductor.v1.conductor_service_pb2_grpc import ConductorServiceStub
from podium_conductor.engines.vllm.engine import VllmEngine
from podium_conductor.engines.vllm.options import PlanOptions, ServingOptions
from podium_core.domain.errors import PodiumError
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.wire.plan_query import plan_query_to_proto, plan_reply_from_proto
from tests.fakes.pools import question, worker
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S
from tests.real_model.checkpoints import edit_config, tiny_adapter, tiny_qwen2

if TYPE_CHECKING:
    from podium.conductor.v1.conductor_service_pb2_grpc import ConductorServiceAsyncStub

pytestmark = pytest.mark.skipif(
    find_spec("vllm") is None, reason="`make vllm-test` has an environment with vLLM"
)
POOL = tuple(worker(f"w{n}") for n in range(4))
STARTING_S = 300


def query(seed: int) -> PlanQuery:
    return PlanQuery("run_1", question("What is 6 times 7?"), POOL, Caps(), "podium", seed, 60.0)


@asynccontextmanager
async def conductor(
    tls_dir: Path, model: Path
) -> AsyncIterator["tuple[asyncio.subprocess.Process, ConductorServiceAsyncStub]"]:
    tls = tls_of(tls_dir, "conductor")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    settings = {
        "LISTEN": f"127.0.0.1:{port}",
        "TLS_CERT_FILE": str(tls.cert_file), "TLS_KEY_FILE": str(tls.key_file), "TLS_CA_FILE": str(tls.ca_file),
        "ENGINE": "vllm", "MODEL_PATH": str(model), "CONTEXT_TOKENS": "16384", "CPU_CACHE_GIB": "1", "EAGER": "true",
        "COMPLETION_TOKENS": "160", "REASONING_TOKENS": "16",
    }  # fmt: skip
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        **{f"PODIUM_CONDUCTOR_{key}": value for key, value in settings.items()},
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "podium_conductor", env=environment)
    channel = open_channel(f"127.0.0.1:{port}", "conductor", tls_of(tls_dir, "gateway"))
    try:
        yield process, ConductorServiceStub(channel)
    finally:
        await channel.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def digest(stub: "ConductorServiceAsyncStub") -> str:
    described = await stub.Describe(pb.DescribeRequest(), timeout=STARTING_S, wait_for_ready=True)
    assert described.engine == "vllm"
    return str(described.model_digest)


async def changed(stub: "ConductorServiceAsyncStub", before: str) -> str:
    async with asyncio.timeout(STARTING_S):
        while (now := await digest(stub)) == before:
            await asyncio.sleep(0.2)
    return now


def point(link: Path, target: Path) -> None:
    new = link.with_suffix(".new")
    new.symlink_to(target)
    new.replace(link)


async def test_the_service_switches_checkpoints_and_back_without_a_failed_plan(
    tls_dir: Path, tmp_path: Path
) -> None:
    first, second = tiny_qwen2(tmp_path / "a", seed=1), tiny_qwen2(tmp_path / "b", seed=2)
    link = tmp_path / "model"
    point(link, first)
    made: Counter[str] = Counter()
    done = asyncio.Event()

    async def keep_planning(stub: "ConductorServiceAsyncStub", seed: int) -> None:
        while not done.is_set():
            with rpc_errors("conductor"):
                asked = plan_query_to_proto(query(seed))
                reply = plan_reply_from_proto(await stub.Plan(asked, timeout=120), seed)
            assert reply.plan.steps
            made[reply.model_digest] += 1

    async with conductor(tls_dir, link) as (process, stub):
        one = await digest(stub)
        planners = [asyncio.create_task(keep_planning(stub, seed)) for seed in range(3)]
        point(link, second)
        two = await changed(stub, one)
        point(link, first)
        assert await changed(stub, two) == one
        done.set()
        await asyncio.gather(*planners)
        print(f"\nplans during two switches: {sum(made.values())}, none failed")
        assert set(made) == {one, two}
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0


async def test_an_adapter_changes_the_plans_and_the_digest(tmp_path: Path) -> None:
    from podium_conductor.assembly import load_checkpoint

    folder = tiny_qwen2(tmp_path / "m")
    adapter = tiny_adapter(folder, tmp_path / "lora")
    options = ServingOptions(folder, adapter, context_tokens=16_384, cpu_cache_gib=1, eager=True)
    loaded = await load_checkpoint(options)
    try:
        engine = VllmEngine(loaded, PlanOptions(160, 0))
        reply = await engine.plan(query(1), 0)
        assert reply.plan.steps
        from podium_conductor.engines.vllm.checkpoint import digests_of

        assert engine.describe().model_digest != digests_of(folder).model
        prompt = loaded.model.encode("model_id = [0, 1]")
        asked = sorted(set(prompt))
        served = await loaded.model.log_probabilities(prompt, asked)
        from tests.real_model.reference import Reference

        (adapted,) = Reference(folder, adapter).log_probabilities([prompt], [asked])
        (plain,) = Reference(folder).log_probabilities([prompt], [asked])
        assert max(abs(served[token] - adapted[token]) for token in asked) < 0.1
        assert max(abs(plain[token] - adapted[token]) for token in asked) > 0.3
    finally:
        await loaded.close()


async def test_weights_that_do_not_fit_the_config_are_a_typed_error(tmp_path: Path) -> None:
    from podium_conductor.assembly import load_checkpoint

    folder = tiny_qwen2(tmp_path / "m")
    edit_config(folder, hidden_size=128)
    with pytest.raises(PodiumError) as failed:
        await load_checkpoint(ServingOptions(folder, context_tokens=4_096, cpu_cache_gib=1, eager=True))
    assert failed.value.reason == "MODEL_NOT_LOADED"


def test_vllm_finds_the_plugin_and_it_still_fits() -> None:
    from vllm.distributed.device_communicators import shm_broadcast
    from vllm.platforms import current_platform
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    own = shm_broadcast.sched_yield.__module__
    assert own.startswith("podium_conductor" if current_platform.is_cpu() else "vllm")
