"""The vLLM engine's speed: `make vllm-bench`. Plans per second and latencies, beside vLLM driven directly.

Needs the environment of `make vllm-test` and takes a checkpoint folder; prints one line per measurement. The
service is the conductor's own gRPC server with mutual TLS, around the same loaded engine.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import uvloop
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider

from podium.conductor.v1.conductor_service_pb2_grpc import (
    ConductorServiceStub,
    add_ConductorServiceServicer_to_server,
)
from podium_cli.local_ca import create_local_ca, service_files
from podium_conductor.assembly import load_checkpoint
from podium_conductor.engines.vllm.engine import Loaded, VllmEngine
from podium_conductor.engines.vllm.model import Sampling, TextModel
from podium_conductor.engines.vllm.options import PlanOptions, ServingOptions
from podium_conductor.planning import Planning, PlanningLimits
from podium_conductor.ports import Engine
from podium_conductor.servicer import PERMISSIONS, ConductorServicer
from podium_conductor.telemetry import PlanTelemetry
from podium_core.domain.clock import SystemClock
from podium_core.domain.plan_grammar import plan_grammar
from podium_core.domain.plan_prompt import build_prompt
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.wire.plan_query import plan_query_to_proto, plan_reply_from_proto
from tests.fakes.engine import FakeEngine
from tests.fakes.pools import question, worker

POOL = tuple(
    worker(f"w{n}", skills={"arithmetic": 500_000 + 40_000 * n, "dates": 900_000 - 50_000 * n})
    for n in range(6)
)
TOKENS = 64
"""Of one plan: the prompt is what a plan costs on a CPU, and what prefix caching is about."""


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
        f"  p50 {statistics.median(took) * 1e3:8.2f} ms"
        f"  p99 {took[int(len(took) * 0.99)] * 1e3:9.2f} ms  {tokens / seconds:6.0f} tokens/s",
        flush=True,
    )
    return count / seconds


def planning(engine: VllmEngine) -> Callable[[int], Awaitable[int]]:
    async def plan(seed: int) -> int:
        return (await engine.plan(query(seed), 0)).usage.output_tokens

    return plan


@asynccontextmanager
async def service(engine: Engine) -> AsyncIterator[Callable[[int], Awaitable[int]]]:
    """Serve the engine over gRPC on loopback; give a job that asks it for a plan."""
    clock = SystemClock()
    telemetry = PlanTelemetry(NoOpTracerProvider().get_tracer("b"), NoOpMeterProvider().get_meter("b"), clock)
    with tempfile.TemporaryDirectory() as directory:
        tls = Path(directory)
        create_local_ca(tls, ("conductor", "gateway"))
        server = GrpcServer(
            listen="127.0.0.1:0", tls=service_files(tls, "conductor"), permissions=PERMISSIONS
        )
        planning = Planning(engine, telemetry, clock, PlanningLimits(max_running=64, max_plan_s=600.0))
        add_ConductorServiceServicer_to_server(ConductorServicer(planning, 600.0), server.server)
        port = await server.start()
        async with open_channel(f"127.0.0.1:{port}", "conductor", service_files(tls, "gateway")) as channel:
            stub = ConductorServiceStub(channel)

            async def plan(seed: int) -> int:
                reply = await stub.Plan(plan_query_to_proto(query(seed)), timeout=600)
                return plan_reply_from_proto(reply, seed).usage.output_tokens

            yield plan
        await server.stop(0)


async def hop() -> None:
    """What the service adds to an engine that takes no time at all."""
    engine = FakeEngine()

    async def at_once(seed: int) -> int:
        return (await engine.plan(query(seed), 0)).usage.output_tokens

    async with service(engine) as plan:
        await timed("warm up", 1, 200, plan)
        await timed("an instant engine, called", 1, 2_000, at_once)
        await timed("an instant engine, over gRPC", 1, 2_000, plan)


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
    await hop()
    options = ServingOptions(folder, context_tokens=4_096, cpu_cache_gib=3, eager=True)
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
            jobs = max(count, at_once)
            await timed(f"grammar, caching {caching}", at_once, jobs, planning(engine))
            if caching:
                await compared(loaded, plain, at_once, jobs)
        await engine.close()


async def compared(loaded: Loaded, plain: PlanOptions, at_once: int, jobs: int) -> None:
    """The same work, driven in other ways and with other options."""
    engine = VllmEngine(loaded, plain)
    async with service(engine) as plan:
        over_grpc = await timed("the same, over gRPC", at_once, jobs, plan)
    alone = await timed("the same, engine called", at_once, jobs, planning(engine))
    direct = await timed("the same, vLLM driven directly", at_once, jobs, directly(loaded.model))
    print(
        f"  throughput: over gRPC {over_grpc / alone:.3f} of the engine, engine {alone / direct:.3f} of vLLM"
    )
    free = VllmEngine(loaded, replace(plain, constrained=False, max_tries=1))
    await timed("no grammar (texts, parsed or not)", at_once, jobs, _unparsed(free))
    sure = VllmEngine(loaded, replace(plain, chances=True))
    await timed("grammar and chances", at_once, jobs, planning(sure))


def _unparsed(engine: VllmEngine) -> Callable[[int], Awaitable[int]]:
    async def plan(seed: int) -> int:
        await asyncio.gather(engine.plan(query(seed), 0), return_exceptions=True)
        return TOKENS

    return plan


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conductor_vllm", description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--count", type=int, default=8, help="fewest jobs per measurement (default: 8)")
    arguments = parser.parse_args()
    uvloop.run(main(arguments.checkpoint, arguments.count))
