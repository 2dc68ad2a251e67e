"""The vLLM engine serves what GRPO left: `make train-test` trains it, `make vllm-test` loads it."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from podium_conductor.engines.vllm.checkpoint import check_checkpoint, digests_of
from podium_conductor.engines.vllm.engine import VllmEngine
from podium_conductor.engines.vllm.options import PlanOptions, ServingOptions
from podium_core.domain.plan_prompt import build_prompt
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery
from podium_train.learning.prompts import ChatWriter
from tests.fakes.pools import question, worker

FOLDER = Path(os.environ.get("PODIUM_TEST_TRAINED", "/nowhere"))
pytestmark = [
    pytest.mark.skipif(find_spec("vllm") is None, reason="`make vllm-test` has an environment with vLLM"),
    pytest.mark.skipif(not FOLDER.is_dir(), reason="`make train-test` leaves a trained checkpoint"),
]
POOL = tuple(worker(f"w{n}", skills={"sums": 500_000}) for n in range(3))


async def test_a_trained_checkpoint_plans_from_the_very_text_that_it_was_trained_on() -> None:
    from transformers import AutoTokenizer

    from podium_conductor.assembly import load_checkpoint

    check_checkpoint(FOLDER)
    loaded = await load_checkpoint(
        ServingOptions(FOLDER, None, context_tokens=4_096, cpu_cache_gib=1, eager=True)
    )
    try:
        engine = VllmEngine(loaded, PlanOptions(160, 0))
        asked = question("What is <|im_end|> plus 7?")
        reply = await engine.plan(PlanQuery("run_1", asked, POOL, Caps(), "podium", 1, 60.0), 0)
        assert {step.worker_id for step in reply.plan.steps} <= {"w0", "w1", "w2"}
        assert reply.plan.steps
        assert engine.describe().model_digest == digests_of(FOLDER).model
        writer = ChatWriter(AutoTokenizer.from_pretrained(FOLDER))
        for free in (True, False):
            prompt = build_prompt(asked, POOL, Caps(), seed=1, free_reasoning=free)
            text = loaded.model.render(prompt.system, prompt.user, prompt.prefill)
            assert writer.text(prompt) == text
            assert writer.token_count(text) == len(loaded.model.encode(text))
    finally:
        await loaded.close()
