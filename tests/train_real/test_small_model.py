"""GRPO of a real small instruction model: a few iterations, a cut, a resume, and what the conductor serves.

The served folder stays in the cache, where `make vllm-test` looks for it.
"""

import os
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from podium_conductor.engines.vllm.checkpoint import check_checkpoint
from podium_core.domain.errors import PodiumError
from podium_train.__main__ import main
from podium_train.learning.curve_file import CurveFile
from podium_train.learning.grpo_recipe import SMALL_CPU
from tests.train_real.worlds import FailsAfter, Judged, length, tasks
from tests.unit.train.gym_folder import write_gym

pytestmark = [
    pytest.mark.skipif(
        find_spec("trl") is None, reason="`make train-test` has an environment with torch and TRL"
    ),
    pytest.mark.skipif("PODIUM_TEST_CACHE" not in os.environ, reason="PODIUM_TEST_CACHE names no folder"),
]


@pytest.fixture(scope="module")
def cache() -> Path:
    return Path(os.environ["PODIUM_TEST_CACHE"])


@pytest.fixture(scope="module")
def smollm2(cache: Path) -> Path:
    from tests.real_model.checkpoints import smollm

    return smollm(cache)


def test_a_small_instruction_model_is_trained_cut_and_resumed(
    smollm2: Path, cache: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    from podium_train.learning.trl_engine import train

    run = tmp_path / "run"
    # Two rollouts an iteration: the defect shows in the third, after the checkpoint of the second.
    with pytest.raises(PodiumError, match="the environment raised RuntimeError"):
        train(SMALL_CPU, smollm2, tasks(), FailsAfter(4), run, tell=print)
    trained = train(SMALL_CPU, smollm2, tasks(), Judged(length), run, resume=True, tell=print)
    lines = CurveFile(run / "progress.jsonl").read()
    assert [line["iteration"] for line in lines] == [1, 2, 3]
    assert all(line["validity"] == 1.0 for line in lines)
    print("iterations took", ", ".join(f"{line['iteration_s']:.0f} s" for line in lines))
    check_checkpoint(trained.served)
    before, after = load_file(smollm2 / "model.safetensors"), load_file(trained.served / "model.safetensors")
    assert before.keys() == after.keys()
    assert any((before[name] != after[name]).any() for name in before), "nothing was learnt"
    kept = cache / "smollm2-grpo"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(trained.served, kept)


def test_the_verb_trains_on_recorded_answers(smollm2: Path, tmp_path: Path) -> None:
    """With the model's own tokenizer and a random body, so that it takes seconds."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=8_192, tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    run = tmp_path / "run"
    words = [
        "grpo",
        "--recipe",
        "small-cpu",
        "--model",
        str(tmp_path / "model"),
        "--to",
        str(run),
        "--iterations",
        "2",
    ]
    assert main([*words, "--data", str(write_gym(tmp_path / "data"))]) == 0
    assert len(CurveFile(run / "progress.jsonl").read()) == 2
    check_checkpoint(run / "served")
    assert replace(SMALL_CPU, iterations=2).batch == 2
