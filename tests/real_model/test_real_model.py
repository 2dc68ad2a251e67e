"""vLLM with a real small instruction model: every constrained plan parses, free ones are counted.

Run by `make vllm-test`; it prints what it measured. Figures are those of docs/conductor-vllm.md.
"""

import asyncio
import math
import os
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import pytest_asyncio

from podium_conductor.engines.vllm.closing import CLOSED
from podium_conductor.engines.vllm.engine import Loaded, VllmEngine
from podium_conductor.engines.vllm.model import Sampling
from podium_conductor.engines.vllm.options import PlanOptions, ServingOptions
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery, PlanReply
from tests.fakes.pools import question, worker
from tests.fakes.waiting import PATIENCE_S
from tests.real_model.checkpoints import checkpoint_cache, smollm
from tests.real_model.reference import Recorded, Reference, differences

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(find_spec("vllm") is None, reason="`make vllm-test` has an environment with vLLM"),
]
PLANS = int(os.environ.get("PODIUM_TEST_PLANS", "60"))
CAPPED = PlanOptions(completion_tokens=256, reasoning_tokens=64, temperature=0.8)
SKILLS = ("arithmetic", "translation", "coding")
POOL = tuple(
    worker(f"worker-{n}", skills={skill: 400_000 + 37_000 * ((n * 5 + k * 3) % 15) for k, skill in enumerate(SKILLS)})
    for n in range(12)
)  # fmt: skip
QUESTIONS = (
    "What is 17 * 23, and on which weekday did 3 March 2020 fall?",
    "Translate 'the early bird catches the worm' into French and explain it.",
    "Write a Python function that finds the longest palindrome in a text, then test it.",
    "Three friends share 47 apples unequally; list all ways in which nobody gets fewer than 10.",
    "Schreibe ein kurzes Gedicht über den Herbst.",
)


def query(number: int) -> PlanQuery:
    workers = POOL[: (1, 3, 6, 12)[number % 4]]
    caps = Caps(max_steps=1 + number % 5)
    return PlanQuery(
        f"run_{number}", question(QUESTIONS[number % len(QUESTIONS)]), workers, caps, "podium", number, 600.0
    )


@pytest.fixture(scope="session")
def checkpoint() -> Path:
    return smollm(checkpoint_cache())


@asynccontextmanager
async def serving(folder: Path, dtype: str) -> AsyncIterator[Loaded]:
    from podium_conductor.assembly import load_checkpoint

    started = time.perf_counter()
    loaded = await load_checkpoint(
        ServingOptions(folder, dtype=dtype, context_tokens=4_096, cpu_cache_gib=3, eager=True)  # type: ignore[arg-type]
    )
    print(f"\n{dtype}: ready after {time.perf_counter() - started:.1f} s")
    try:
        yield loaded
    finally:
        await loaded.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def loaded(checkpoint: Path) -> AsyncIterator[Loaded]:
    async with serving(checkpoint, "bfloat16") as made:
        yield made


def said(what: str, replies: Sequence[PlanReply], seconds: float) -> None:
    tokens = sum(reply.usage.output_tokens for reply in replies)
    print(f"\n{what}: {len(replies)} plans in {seconds:.1f} s, {tokens / seconds:.0f} tokens/s")


async def test_every_constrained_plan_parses_and_obeys_pool_and_caps(loaded: Loaded) -> None:
    engine = VllmEngine(loaded, replace(CAPPED, chances=False))
    asked = [query(n) for n in range(PLANS)]
    started = time.perf_counter()
    replies = await asyncio.gather(*(engine.plan(q, 0) for q in asked))
    said("constrained", replies, time.perf_counter() - started)
    for one, reply in zip(asked, replies, strict=True):
        assert 1 <= len(reply.plan.steps) <= one.caps.max_steps
        assert {step.worker_id for step in reply.plan.steps} <= {w.worker_id for w in one.workers}
        assert reply.usage.output_tokens <= CAPPED.completion_tokens
    closed = sum(reply.raw_text.endswith(CLOSED) for reply in replies)
    steps = Counter(len(reply.plan.steps) for reply in replies)
    used = len({step.worker_id for reply in replies for step in reply.plan.steps})
    print(f"closed by rule: {closed}; plans by steps: {dict(sorted(steps.items()))}; workers used: {used}")
    load = engine.load()
    print(f"prefix cache: {load.prefix_found} of {load.prefix_asked} prompt tokens found")


async def test_every_choice_of_a_plan_has_the_chances_of_all_workers(loaded: Loaded) -> None:
    asked = [query(n) for n in range(4)]
    started = time.perf_counter()
    replies = await asyncio.gather(*(VllmEngine(loaded, CAPPED).plan(q, 0) for q in asked))
    said("constrained, with chances", replies, time.perf_counter() - started)
    for one, reply in zip(asked, replies, strict=True):
        assert [len(chances) for chances in reply.chances] == [len(one.workers)] * len(reply.plan.steps)
        for chances in reply.chances:
            assert sum(chance.eligible_ppm for chance in chances) == pytest.approx(
                1_000_000, abs=len(chances)
            )


async def test_free_plans_are_parsed_or_refused_with_the_broken_rule(loaded: Loaded) -> None:
    free = PlanOptions(256, temperature=0.8, constrained=False, max_tries=1, chances=False)
    engine = VllmEngine(loaded, free)
    started = time.perf_counter()
    outcomes = await asyncio.gather(*(engine.plan(query(n), 0) for n in range(PLANS)), return_exceptions=True)
    replies = [outcome for outcome in outcomes if isinstance(outcome, PlanReply)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, PodiumError)]
    print(f"\nfree: {PLANS} texts in {time.perf_counter() - started:.1f} s, {len(replies)} plans")
    print(f"refused: {dict(Counter(error.reason for error in refused).most_common())}")
    assert len(replies) + len(refused) == PLANS
    assert {error.code for error in refused} <= {Code.PLAN_INVALID}


async def test_cancelling_32_plans_frees_the_engine_within_a_second(loaded: Loaded) -> None:
    engine = VllmEngine(loaded, PlanOptions(1_000, 900, chances=False))
    plans = [asyncio.create_task(engine.plan(query(n), 0)) for n in range(32)]
    async with asyncio.timeout(4 * PATIENCE_S):
        while engine.load().running < len(plans):
            assert not any(plan.done() for plan in plans)
            await asyncio.sleep(0.05)
    started = time.perf_counter()
    for plan in plans:
        plan.cancel()
    await asyncio.gather(*plans, return_exceptions=True)
    await loaded.model.generate(loaded.model.encode("Hello"), max_tokens=1, sampling=Sampling())
    seconds = time.perf_counter() - started
    print(f"\n32 cancelled, and another text begun and ended, within {seconds * 1e3:.0f} ms")
    assert engine.load().running <= 1
    assert seconds < 1


async def test_recorded_log_probabilities_are_those_of_an_independent_computation(
    checkpoint: Path, loaded: Loaded
) -> None:
    async with serving(checkpoint, "float32") as exact:
        recorded = Recorded(exact.model)
        engine = VllmEngine(Loaded(recorded, exact.digests), PlanOptions(128, 0))
        reply = await engine.plan(query(3), 0)
    lookups = recorded.lookups
    reference = Reference(checkpoint).log_probabilities(
        [prompt for prompt, _ in lookups], [list(found) for _, found in lookups]
    )
    off = differences(lookups, reference)
    coarse = Recorded(loaded.model)
    for prompt, found in lookups:
        await coarse.log_probabilities(prompt, list(found))
    rough = differences(coarse.lookups, reference)
    print(
        f"\n{len(off)} log-probabilities: float32 off by at most {max(off):.5f} nat; "
        f"bfloat16 by {statistics.median(rough):.3f} in the median, at most {max(rough):.3f}"
    )
    assert max(off) < 0.02
    _check_recorded(reply, lookups, reference)


def _check_recorded(
    reply: PlanReply,
    lookups: Sequence[tuple[tuple[int, ...], dict[int, float]]],
    reference: list[dict[int, float]],
) -> None:
    """The first choice, from the reference alone: tokens of the id, then a delimiter, summed over delimiters."""
    known = {prompt: expected for (prompt, _), expected in zip(lookups, reference, strict=True)}
    first = min((prompt for prompt, _ in lookups), key=len)
    digits = sorted(known[first])
    for chance, digit in zip(reply.chances[0][:10], digits, strict=True):
        if chance.raw_ppm < 1_000:
            continue
        following = known[(*first, digit)]
        ends = sum(math.exp(value) for token, value in following.items() if token not in digits)
        assert math.log(chance.raw_ppm / 1e6) == pytest.approx(known[first][digit] + math.log(ends), abs=0.02)
