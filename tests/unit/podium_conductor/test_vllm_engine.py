"""The vLLM engine's own work over a scripted model: prompts, retries, closing, evidence, switching."""

import asyncio
import math
from importlib.util import find_spec
from pathlib import Path

import pytest

from podium_conductor.assembly import load_checkpoint
from podium_conductor.engines.vllm.checkpoint import CheckpointDigests
from podium_conductor.engines.vllm.choices import as_chances, id_places, log_chances, tokens_before
from podium_conductor.engines.vllm.closing import CLOSED, close_plan
from podium_conductor.engines.vllm.engine import Loaded, VllmEngine
from podium_conductor.engines.vllm.options import PlanOptions, ServingOptions
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.plan_format import parse_plan
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery
from tests.fakes.checkpoint_files import checkpoint
from tests.fakes.pools import question, worker
from tests.fakes.text_model import FakeTextModel

WORKERS = tuple(worker(f"w{n}", skills={"arithmetic": 900_000 - n}) for n in range(12))
TWO_STEPS = 'model_id = [11, 1]\nsubtasks = ["Solve.", "Check."]\naccess_list = [[], [0]]'


def query(tier: str = "podium", text: str = "What is 6 times 7?", **more: object) -> PlanQuery:
    fields: dict[str, object] = {"round": 0, **more}
    return PlanQuery("run_1", question(text), WORKERS, Caps(), tier, 7, 5.0, **fields)  # type: ignore[arg-type]


def engine_of(model: FakeTextModel, options: PlanOptions | None = None) -> VllmEngine:
    return VllmEngine(
        Loaded(model, CheckpointDigests("m" * 64, "t" * 64, "c" * 64)), options or PlanOptions()
    )


async def test_a_plan_comes_with_the_chances_of_every_worker_at_each_choice() -> None:
    model = FakeTextModel(lambda prompt, grammar: TWO_STEPS)
    reply = await engine_of(model).plan(query(), 0)
    assert [step.subtask for step in reply.plan.steps] == ["Solve.", "Check."]
    assert reply.plan.source is PlanSource.MODEL
    assert reply.model_digest == "m" * 64
    assert [len(step) for step in reply.chances] == [12, 12]
    assert {chance.worker_id for chance in reply.chances[0]} == {w.worker_id for w in WORKERS}
    assert sum(chance.eligible_ppm for chance in reply.chances[1]) == pytest.approx(1_000_000, abs=12)
    assert reply.usage.reasoning_output_tokens == len("It is easy.")
    assert "It is easy.\nmodel_id" in reply.raw_text


async def test_the_chance_of_an_id_is_that_of_its_tokens_and_a_delimiter_in_the_written_context() -> None:
    model = FakeTextModel()
    context = model.encode("... model_id = [")
    chances = await log_chances(model, context, 12)

    def step(text: str, token: str) -> float:
        return model.log_probability(model.encode(f"... model_id = [{text}"), ord(token))

    def ended(text: str) -> float:
        return math.log(sum(math.exp(step(text, end)) for end in ",]"))

    assert chances[3] == pytest.approx(step("", "3") + ended("3"))
    assert chances[1] == pytest.approx(step("", "1") + ended("1"))
    assert chances[11] == pytest.approx(step("", "1") + step("1", "1") + ended("11"))
    shares = as_chances(chances, [w.worker_id for w in WORKERS])
    assert shares[11].raw_ppm == round(math.exp(chances[11]) * 1e6)


def test_the_places_of_ids_are_those_of_the_last_list() -> None:
    text = 'As in model_id = [9] above.\nmodel_id = [11, 1]\nsubtasks = ["model_id", ""]'
    assert [(text[place : place + 2].strip("],"), k) for place, k in id_places(text)] == [
        ("11", 11),
        ("1", 1),
    ]
    assert id_places("no list") == []
    model = FakeTextModel()
    assert tokens_before(model, model.encode("abc"), 2) == 2
    assert tokens_before(model, [], 2) is None


async def test_fast_takes_the_likeliest_worker_and_writes_nothing() -> None:
    model = FakeTextModel()
    reply = await engine_of(model).plan(query("podium-fast"), 0)
    (step,) = reply.plan.steps
    assert step.subtask == ""
    best = max(reply.chances[0], key=lambda chance: chance.raw_ppm)
    assert step.worker_id == best.worker_id
    assert model.prompts == []
    assert reply.raw_text.endswith('subtasks = [""]\naccess_list = [[]]')


async def test_free_texts_are_tried_again_and_then_refused_with_the_rule() -> None:
    answers = iter(["nothing", 'model_id = [99]\nsubtasks = ["x"]\naccess_list = [[]]', TWO_STEPS])
    model = FakeTextModel(lambda prompt, grammar: next(answers))
    free = PlanOptions(constrained=False, temperature=1.0)
    reply = await engine_of(model, free).plan(query(), 0)
    assert reply.generation_count == 3
    assert [sampling.seed for sampling in model.samplings] == [7, 8, 9]
    with pytest.raises(PodiumError) as failed:
        await engine_of(FakeTextModel(lambda p, g: "nothing"), free).plan(query(), 0)
    assert (failed.value.code, failed.value.reason) == (Code.PLAN_INVALID, "PLAN_NO_TRIPLE")


async def test_the_caps_reach_the_grammar() -> None:
    seen: list[str | None] = []

    def script(prompt: str, grammar: str | None) -> str:
        seen.append(grammar)
        return TWO_STEPS

    await engine_of(FakeTextModel(script)).plan(query(), 0)
    assert seen[0] is not None
    assert '"11"' in seen[0]
    assert '"12"' not in seen[0]
    assert "plan-5" in seen[0]


@pytest.mark.parametrize("cut_at", range(len("model_id = [11, 1]\n"), len(TWO_STEPS)))
def test_a_plan_that_the_limit_cut_is_closed_and_parses(cut_at: int) -> None:
    closed = close_plan(TWO_STEPS[:cut_at])
    assert closed.endswith(CLOSED)
    steps = parse_plan(closed, [w.worker_id for w in WORKERS])
    assert [step.worker_id for step in steps] == ["w11", "w1"]
    assert "Solve.".startswith(steps[0].subtask)
    assert steps[1].access == Access((0,))


def test_a_cut_escape_does_not_swallow_the_closing_quote() -> None:
    closed = close_plan('model_id = [0]\nsubtasks = ["a\\\\b\\')
    assert parse_plan(closed, ["w0"])[0].subtask == "a\\b"
    assert close_plan("model_id = [0, ") == "model_id = [0, "


async def test_a_long_question_is_shortened_until_it_fits_and_refused_when_it_cannot() -> None:
    long = "word " * 200_000
    prompts = FakeTextModel(context_tokens=16_000)
    reply = await engine_of(prompts).plan(query(text=long), 0)
    assert reply.plan.steps
    assert all(len(prompt) <= 16_000 for prompt in prompts.prompts)
    with pytest.raises(PodiumError) as failed:
        await engine_of(FakeTextModel(context_tokens=4_000)).plan(query(text=long), 0)
    assert failed.value.reason == "PLAN_PROMPT_TOO_LONG"


async def test_a_later_round_may_accept() -> None:
    model = FakeTextModel(lambda p, g: "model_id = []\nsubtasks = []\naccess_list = []")
    before = Plan((Step("w1", "Solve."),), PlanSource.MODEL)
    reply = await engine_of(model).plan(query("podium-max", round=1, previous_plan=before), 0)
    assert (reply.plan.steps, reply.chances) == ((), ())


async def test_a_switch_fails_no_plan_and_closes_the_old_model_after_its_last() -> None:
    old, new = FakeTextModel(), FakeTextModel()
    old.hold = asyncio.Event()
    engine = engine_of(old)
    under_way = asyncio.create_task(engine.plan(query(), 0))
    await asyncio.sleep(0)

    async def make() -> Loaded:
        return Loaded(new, CheckpointDigests("n" * 64, "", ""))

    switching = asyncio.create_task(engine.switch(make))
    await asyncio.sleep(0)
    after = await engine.plan(query(), 0)
    assert (after.model_digest, old.closed) == ("n" * 64, False)
    old.hold.set()
    assert (await under_way).model_digest == "m" * 64
    await switching
    assert (old.closed, new.closed, engine.describe().model_digest) == (True, False, "n" * 64)

    async def broken() -> Loaded:
        raise PodiumError(Code.UNAVAILABLE, "no")

    with pytest.raises(PodiumError):
        await engine.switch(broken)
    assert (await engine.plan(query(), 0)).model_digest == "n" * 64


async def test_a_cancelled_plan_leaves_nothing_running() -> None:
    model = FakeTextModel()
    model.hold = asyncio.Event()
    engine = engine_of(model)
    plans = [asyncio.create_task(engine.plan(query(), 0)) for _ in range(32)]
    await asyncio.sleep(0)
    assert engine.load().running == 32
    for plan in plans:
        plan.cancel()
    await asyncio.gather(*plans, return_exceptions=True)
    assert engine.load().running == 0


async def test_the_engine_is_built_only_from_what_is_there(tmp_path: Path) -> None:
    """Nothing of vLLM is imported until the checkpoint has passed its checks."""
    with pytest.raises(PodiumError) as failed:
        await load_checkpoint(ServingOptions(tmp_path / "none"))
    assert failed.value.reason == "CHECKPOINT_MISSING"
    if find_spec("vllm") is None:
        with pytest.raises(PodiumError) as failed:
            await load_checkpoint(ServingOptions(checkpoint(tmp_path / "model")))
        assert failed.value.reason == "VLLM_NOT_INSTALLED"


async def test_a_dead_model_is_reported() -> None:
    model = FakeTextModel()
    engine = engine_of(model)
    assert not engine.is_stopped()
    model.stopped = True
    assert engine.is_stopped()
