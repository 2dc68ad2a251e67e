"""The vLLM engine's speed: `make vllm-bench`. Plans per second and latencies, beside vLLM driven directly.

Needs the environment of `make vllm-test` and takes a checkpoint folder; prints one line per measurement.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import uvloop

from podium_conductor.assembly import load_checkpoint
from podium_conductor.engines.vllm.engine import Loaded, VllmEngine
from podium_conductor.engines.vllm.model import Sampling, TextModel
from podium_conductor.engines.vllm.options import PlanOptions, ServingOptions
from podium_core.domain.plan_grammar import plan_grammar
from podium_core.domain.plan_prompt import build_prompt
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery
from tests.fakes.pools import question, worker

POOL = tuple(
    worker(f"w{n}", skills={"arithmetic": 500_000 + 40_000 * n, "dates": 900_000 - 50_000 * n})
    for n in range(6)
)
TOKENS = 128


def query(seed: int) -> PlanQuery:
    return PlanQuery(
        "run", question(f"What is {seed} times 7, and why?"), POOL, Caps(), "podium", seed, 600.0
    )


async def timed(name: str, at_once: int, count: int, make: Callable[[int], Awaitable[int]]) -> float:
    """Run `count` jobs, `at_once` at a time; print and return jobs per second."""
    waiting = iter(range(count))
    took: list[float] = []
    tokens = 0

    async def worker_of() -> None:
        nonlocal tokens
        for seed in waiting:
            started = time.perf_counter()
            tokens += await make(seed)
            took.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(worker_of() for _ in range(at_once)))
    seconds = time.perf_counter() - started
    took.sort()
    print(
        f"{name:<40} at once {at_once:>2}  {count / seconds:6.2f}/s"
        f"  p50 {statistics.median(took) * 1e3:6.0f} ms"
        f"  p99 {took[int(len(took) * 0.99)] * 1e3:7.0f} ms  {tokens / seconds:6.0f} tokens/s",
        flush=True,
    )
    return count / seconds


def planning(engine: VllmEngine) -> Callable[[int], Awaitable[int]]:
    async def plan(seed: int) -> int:
        return (await engine.plan(query(seed), 0)).usage.output_tokens

    return plan


def directly(model: TextModel) -> Callable[[int], Awaitable[int]]:
    """The same prompts and grammar, without the engine around: tokens are counted, nothing is parsed."""
    grammar = plan_grammar(len(POOL), 5, max_subtask_chars=None)

    async def generate(seed: int) -> int:
        asked = query(seed)
        prompt = build_prompt(asked.question, POOL, asked.caps, seed=seed, free_reasoning=False)
        tokens = model.encode(model.render(prompt.system, prompt.user, prompt.prefill))
        made = await model.generate(tokens, max_tokens=TOKENS, sampling=Sampling(0.8, seed), grammar=grammar)
        return len(made.token_ids)

    return generate


async def main(folder: Path, count: int) -> None:
    options = ServingOptions(folder, context_tokens=16_384, cpu_cache_gib=3, eager=True)
    plain = PlanOptions(TOKENS, 0, temperature=0.8, chances=False)
    for caching in (True, False):
        started = time.perf_counter()
        loaded: Loaded = await load_checkpoint(replace(options, prefix_caching=caching))
        engine = VllmEngine(loaded, plain)
        await engine.plan(query(0), 0)
        print(
            f"prefix caching {caching}: start to first plan {time.perf_counter() - started:.1f} s", flush=True
        )
        for at_once in (1, 8, 32):
            jobs = max(count, at_once * 2)
            await timed(f"grammar, caching {caching}", at_once, jobs, planning(engine))
            if caching:
                await timed("the same, vLLM driven directly", at_once, jobs, directly(loaded.model))
                free = VllmEngine(loaded, replace(plain, constrained=False, max_tries=1))
                await timed("no grammar (texts, parsed or not)", at_once, jobs, _unparsed(free))
                sure = VllmEngine(loaded, replace(plain, chances=True))
                await timed("grammar and chances", at_once, jobs, planning(sure))
        await engine.close()


def _unparsed(engine: VllmEngine) -> Callable[[int], Awaitable[int]]:
    async def plan(seed: int) -> int:
        await asyncio.gather(engine.plan(query(seed), 0), return_exceptions=True)
        return TOKENS

    return plan


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conductor_vllm", description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--count", type=int, default=16, help="jobs per measurement (default: 16)")
    arguments = parser.parse_args()
    uvloop.run(main(arguments.checkpoint, arguments.count))
