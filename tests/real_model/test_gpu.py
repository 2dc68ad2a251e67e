"""What only a GPU can show: the CUDA build, with compiled graphs, and a model split over two devices.

Skipped, with the reason, wherever there is none. Nobody has run these yet: docs/conductor-vllm.md.
"""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from podium_conductor.engines.vllm.engine import VllmEngine
from podium_conductor.engines.vllm.options import PlanOptions, ServingOptions
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery
from tests.fakes.pools import question, worker
from tests.real_model.checkpoints import tiny_qwen2

POOL = tuple(worker(f"w{n}") for n in range(4))


def gpu_count() -> int:
    if find_spec("vllm") is None:
        return 0
    import torch

    return int(torch.cuda.device_count())


def needs(count: int) -> pytest.MarkDecorator:
    reason = f"needs {count} NVIDIA GPU{'s' if count > 1 else ''} and requirements/vllm-cuda.txt; {gpu_count()} seen"
    return pytest.mark.skipif(gpu_count() < count, reason=reason)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [pytest.param(1, marks=needs(1)), pytest.param(2, marks=needs(2))])
async def test_plans_come_from_gpus(tmp_path: Path, count: int) -> None:
    from podium_conductor.assembly import load_checkpoint

    options = ServingOptions(
        tiny_qwen2(tmp_path / "m", heads=count),
        context_tokens=16_384,
        tensor_parallel=count,
        gpu_memory_share=0.2,
    )
    loaded = await load_checkpoint(options)
    try:
        engine = VllmEngine(loaded, PlanOptions(256, 16))
        asked = [
            PlanQuery(f"run_{seed}", question("What is 6 times 7?"), POOL, Caps(), "podium", seed, 60.0)
            for seed in range(32)
        ]
        replies = await asyncio.gather(*(engine.plan(query, 0) for query in asked))
        assert all(reply.plan.steps and reply.chances for reply in replies)
    finally:
        await loaded.close()
