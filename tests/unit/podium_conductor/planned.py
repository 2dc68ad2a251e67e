"""Makes plans with the rules engine in tests."""

from collections.abc import Coroutine
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from podium_conductor.engines.rules.engine import RulesEngine
from podium_core.config.pool import load_pool
from podium_core.domain.pool import Worker
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery, PlanReply
from tests.fakes.pools import question

ENGINE = RulesEngine()


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
    return at_once(ENGINE.plan(query(text, workers, max_steps=max_steps, seed=seed), 0))


def at_once(made: Coroutine[None, None, PlanReply]) -> PlanReply:
    """Return what a coroutine gives that never waits: the rules ask nobody."""
    try:
        made.send(None)
    except StopIteration as done:
        reply: PlanReply = done.value
        return reply
    raise AssertionError("the rules engine waited")


def shape(text: str, max_steps: int = 5) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return (worker, subtask, access) of every step, without `demo-`."""
    reply = plan(text, max_steps=max_steps)
    return [(s.worker_id.removeprefix("demo-"), s.subtask, s.access.steps) for s in reply.plan.steps]
