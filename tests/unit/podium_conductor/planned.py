"""Makes plans with the engine and the weights that ship, in tests."""

import asyncio
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from podium_conductor.engines.embedded.engine import load_engine
from podium_conductor.engines.embedded.weights import shipped_folder
from podium_core.config.pool import load_pool
from podium_core.domain.pool import Worker
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery, PlanReply
from tests.fakes.pools import question

ENGINE = load_engine(shipped_folder())


def demo_workers() -> tuple[Worker, ...]:
    """Return the workers of the packaged demo pool."""
    text = (files("podium_demo") / "pool.demo.yaml").read_text(encoding="utf-8")
    with TemporaryDirectory() as directory:
        path = Path(directory) / "pool.yaml"
        path.write_text(text.replace("{base_url}", "http://127.0.0.1:7070/v1"), encoding="utf-8")
        return load_pool(path).pool.workers


WORKERS = demo_workers()


def query(
    text: str, workers: tuple[Worker, ...] = WORKERS, *, max_steps: int = 5, seed: int = 7
) -> PlanQuery:
    return PlanQuery("run_1", question(text), workers, Caps(max_steps=max_steps), "podium", seed, 5.0)


def plan(text: str, workers: tuple[Worker, ...] = WORKERS, *, max_steps: int = 5, seed: int = 7) -> PlanReply:
    return asyncio.run(ENGINE.plan(query(text, workers, max_steps=max_steps, seed=seed), 0))
