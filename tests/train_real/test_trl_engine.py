"""GRPO through TRL with a tiny random model: real steps, real checkpoints, real failures."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from podium_conductor.engines.vllm.checkpoint import check_checkpoint
from podium_core.domain.errors import PodiumError
from podium_core.domain.plan_prompt import PlanPrompt
from podium_train.environments.port import Outcome, Task
from podium_train.learning.collapse import CollapseLimits
from podium_train.learning.grpo_recipe import PAPER_7B, SMALL_CPU, Generation, GrpoRecipe
from tests.train_real.worlds import FailsAfter, Judged, length, tasks

pytestmark = pytest.mark.skipif(
    find_spec("trl") is None, reason="`make train-test` has an environment with torch and TRL"
)
TINY = replace(
    SMALL_CPU, iterations=4, prompts=1, rollouts=2, pass_size=2, completion_tokens=8, context_tokens=16_384,
    learning_rate=1e-3, checkpoint_every=2, autocast_bf16=False, score_timeout_s=1.0, seed=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.real_model.checkpoints import tiny_qwen2

    return tiny_qwen2(tmp_path_factory.mktemp("tiny"))


def train(model: Path, out: Path, recipe: GrpoRecipe = TINY, environment: Any = None, **options: Any) -> Any:
    from podium_train.learning.trl_engine import train as run

    return run(recipe, model, tasks(), environment or Judged(length), out, **options)


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    found: dict[str, Any] = load_file(folder / "model.safetensors")
    return found


def curve(out: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "iteration_s"} for line in lines]


def test_a_run_learns_keeps_32_bits_and_leaves_what_the_conductor_can_load(
    model: Path, tmp_path: Path
) -> None:
    import torch

    told: list[str] = []
    trained = train(model, tmp_path / "run", tell=told.append)
    assert (trained.iterations, trained.alarm) == (4, None)
    check_checkpoint(trained.served)
    before, after = weights(model), weights(tmp_path / "run" / "checkpoint-4")
    assert any(not torch.equal(before[name].float(), after[name]) for name in before)
    assert {weight.dtype for weight in after.values()} == {torch.float32}
    assert {weight.dtype for weight in weights(trained.served).values()} == {torch.bfloat16}
    assert [line["iteration"] for line in curve(tmp_path / "run")] == [1, 2, 3, 4]
    assert (tmp_path / "run" / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert told[0].startswith("iteration 1/4: reward")


def test_a_killed_run_resumes_along_the_same_curve_to_the_same_weights(model: Path, tmp_path: Path) -> None:
    import torch

    whole = train(model, tmp_path / "whole")
    # Two calls an iteration: the defect shows in the fourth, after a checkpoint and one iteration more.
    with pytest.raises(PodiumError) as caught:
        train(model, tmp_path / "cut", environment=FailsAfter(7))
    assert caught.value.reason == "TRAIN_ENVIRONMENT_FAILED"
    assert [line["iteration"] for line in curve(tmp_path / "cut")] == [1, 2, 3]
    with pytest.raises(PodiumError, match="holds a run"):
        train(model, tmp_path / "cut")
    resumed = train(model, tmp_path / "cut", resume=True)
    assert curve(tmp_path / "cut") == curve(tmp_path / "whole")
    first, second = weights(whole.served), weights(resumed.served)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_worker_that_always_times_out_refuses_the_batch_and_nothing_is_learnt(
    model: Path, tmp_path: Path
) -> None:
    class Silent:
        async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
            await asyncio.Event().wait()
            raise AssertionError

    with pytest.raises(PodiumError) as caught:
        train(model, tmp_path / "run", replace(TINY, score_timeout_s=0.05), Silent())
    assert caught.value.reason == "TRAIN_BATCH_UNSCORABLE"
    assert not (tmp_path / "run" / "progress.jsonl").exists()
    assert not list((tmp_path / "run").glob("checkpoint-*"))


def test_one_masked_completion_does_not_pull_the_group_down(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import torch

    calls = iter(range(100))

    def all_right_but_one_unscorable(_: str) -> float | None:
        return None if next(calls) == 0 else 1.0

    recipe = replace(TINY, iterations=1, rollouts=6, pass_size=3, checkpoint_every=1)
    train(model, tmp_path / "run", recipe, Judged(all_right_but_one_unscorable))
    (line,) = curve(tmp_path / "run")
    assert line["reward"] == 1.0
    assert line["unscorable_share"] == pytest.approx(1 / 6)
    before, after = weights(model), weights(tmp_path / "run" / "checkpoint-1")
    assert all(torch.equal(before[name].float(), after[name]) for name in before), (
        "counted as 0 it would move"
    )
    assert "What is" not in caplog.text, "a question stands in the log"


def test_a_disk_without_room_stops_before_half_a_checkpoint(model: Path, tmp_path: Path) -> None:
    with pytest.raises(PodiumError) as caught:
        train(model, tmp_path / "run", free_bytes=lambda _: 1_000)
    assert caught.value.reason == "TRAIN_DISK_FULL"
    assert not list((tmp_path / "run").glob("checkpoint-*"))
    assert train(model, tmp_path / "run", resume=True).iterations == 4


def test_an_alarm_stops_the_run_with_a_checkpoint_and_its_reason(model: Path, tmp_path: Path) -> None:
    limits = CollapseLimits(window=1, grace=1, max_clipped_share=0.0)
    trained = train(model, tmp_path / "run", replace(TINY, limits=limits, checkpoint_every=4))
    assert trained.iterations == 2
    assert "token cap" in trained.alarm
    assert (tmp_path / "run" / "checkpoint-2").is_dir()


def test_what_is_no_model_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match="hub names are never looked up"):
        train(Path("some-org/some-model"), tmp_path / "run")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda r: r.iterations, "max_steps"),
        (lambda r: r.rollouts, "num_generations"),
        (lambda r: r.completion_tokens, "max_completion_length"),
        (lambda r: r.kl, "beta"),
        (lambda r: r.loss.value, "loss_type"),
        (lambda r: r.advantage_scale.value, "scale_rewards"),
        (lambda r: r.clip_high, "epsilon_high"),
        (lambda r: r.batch, "generation_batch_size"),
    ],
)
@pytest.mark.parametrize("recipe", [PAPER_7B, SMALL_CPU], ids=lambda recipe: recipe.name)
def test_trl_gets_what_the_recipe_says(
    recipe: GrpoRecipe, ours: Callable[[GrpoRecipe], object], theirs: str, tmp_path: Path
) -> None:
    from podium_train.learning.trl_engine import trl_settings

    settings = trl_settings(replace(recipe, generation=Generation.TRANSFORMERS), tmp_path)
    assert getattr(settings, theirs) == ours(recipe)


def test_a_batch_that_does_not_divide_is_refused(tmp_path: Path) -> None:
    from podium_train.learning.trl_engine import trl_settings

    with pytest.raises(PodiumError, match="does not divide"):
        trl_settings(replace(TINY, pass_size=3), tmp_path)


def test_an_iteration_makes_what_was_rewarded_likelier(model: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from podium_core.domain.run import Caps
    from podium_train.learning.prompts import ChatWriter, draws

    recipe = replace(
        TINY,
        iterations=1,
        rollouts=12,
        pass_size=12,
        completion_tokens=1,
        learning_rate=1e-2,
        checkpoint_every=1,
    )
    tokenizer = AutoTokenizer.from_pretrained(model)

    written: dict[float, set[str]] = {0.0: set(), 1.0: set()}

    def parity(text: str) -> float:
        reward = float(sum(text.encode()) % 2 == 0)
        written[reward].add(text)
        return reward

    train(model, tmp_path / "run", recipe, Judged(parity))
    assert 0 < curve(tmp_path / "run")[0]["reward"] < 1
    (draw,) = draws(
        tasks(), 1, ChatWriter(tokenizer), seed=recipe.seed, room_tokens=16_000, caps=Caps(),
        free_reasoning=recipe.free_reasoning,
    )  # fmt: skip
    prompt = tokenizer(draw.text, return_tensors="pt", add_special_tokens=False)
    texts = [tokenizer.decode([token], skip_special_tokens=True) for token in range(len(tokenizer))]

    def odds(folder: Path) -> float:
        loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        with torch.no_grad():
            chances = loaded(**prompt).logits[0, -1].softmax(-1)
        right, wrong = (
            sum(float(chances[n]) for n, text in enumerate(texts) if text in written[reward])
            for reward in (1.0, 0.0)
        )
        return right / wrong

    assert odds(tmp_path / "run" / "checkpoint-1") > 1.1 * odds(model)


def test_two_processes_train_one_run_and_stop_together(model: Path, tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = tmp_path / "run"
    done = subprocess.run(
        [*launcher, "-m", "tests.train_real.two_processes", str(model), str(run)],
        capture_output=True, text=True, check=False, timeout=600, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.count("done after 2: 1.00 of the completions hit the token cap") == 2
    assert [line["iteration"] for line in curve(run)] == [1, 2]
    check_checkpoint(run / "served")
