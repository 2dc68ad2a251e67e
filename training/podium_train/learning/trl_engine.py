"""GRPO of a language model on one node with TRL: any environment, checkpoints, exact resume, a served folder.

The run's folder holds `recipe.json`, `checkpoint-N/` (32-bit weights, optimiser, generators),
`progress.jsonl` (one line per iteration), `curve.png` and, once it has ended, `served/`: a 16-bit
checkpoint that the vLLM engine of the conductor loads.
"""

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Read at import by the libraries below: no hub is ever asked, nothing is reported.
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", DO_NOT_TRACK="1")  # noqa: TID251

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback
from transformers.utils.logging import disable_progress_bar
from trl import GRPOConfig, GRPOTrainer

from podium_core.domain.errors import invalid
from podium_core.domain.run import Caps
from podium_train.environments.port import Environment, Task
from podium_train.learning.curve_file import CurveFile
from podium_train.learning.environment_reward import EnvironmentReward
from podium_train.learning.grpo_recipe import Generation, GrpoRecipe
from podium_train.learning.later_rounds import FirstAttempts, RoundsEnvironment
from podium_train.learning.prompts import ChatWriter, Draw, draws
from podium_train.learning.run_folder import claim, last_whole_checkpoint
from podium_train.learning.trl_watch import RunWatch

SERVED = "served"


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """What a run left: how many iterations are done, why it stopped early (None: it did not), the folder."""

    iterations: int
    alarm: str | None
    served: Path


def train(
    recipe: GrpoRecipe,
    model: Path,
    tasks: Sequence[Task],
    environment: Environment,
    out: Path,
    *,
    resume: bool = False,
    caps: Caps | None = None,
    tell: Callable[[str], None] = lambda _: None,
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> TrainedModel:
    """Train the checkpoint in `model` and return what came of it. Blocks; start it outside any event loop.

    `out` must be new, or hold an interrupted run of the same recipe when `resume` is set: the run then goes
    on from its last whole checkpoint along the same curve. `tell` gets a line per iteration.

    Raises PodiumError: INVALID_REQUEST for a model, tasks or a folder that cannot do; UNAVAILABLE
    (TRAIN_BATCH_UNSCORABLE, TRAIN_DISK_FULL) and INTERNAL (TRAIN_ENVIRONMENT_FAILED) with the last
    checkpoint intact.
    """
    tokenizer = load_tokenizer(model)
    drawn = _draws(recipe, tasks, tokenizer, environment, caps or Caps())
    checkpoint = _start(out, recipe, resume=resume)
    watch = RunWatch(CurveFile(out / "progress.jsonl"), recipe.limits, free_bytes, tell)
    trainer = _trainer(recipe, model, tokenizer, drawn, environment, out, watch)
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    last = out / "last"
    trainer.save_model(str(last))
    if trainer.accelerator.is_main_process:
        export_served(last, out / SERVED)
        shutil.rmtree(last)
    return TrainedModel(trainer.state.global_step, watch.alarm, out / SERVED)


def export_served(trained: Path, served: Path) -> None:
    """Write the checkpoint in `trained` as 16-bit weights with its tokenizer and chat template.

    `served` appears whole or not at all; one that is there is replaced.
    """
    making = served.with_name(f"{served.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    weights = AutoModelForCausalLM.from_pretrained(trained, dtype=torch.bfloat16, local_files_only=True)
    weights.save_pretrained(making)
    AutoTokenizer.from_pretrained(trained, local_files_only=True).save_pretrained(making)
    shutil.rmtree(served, ignore_errors=True)
    making.rename(served)


def _start(out: Path, recipe: GrpoRecipe, *, resume: bool) -> Path | None:
    # Several processes train one run: the first takes the folder, the others only read it.
    if int(os.environ.get("RANK", "0")):  # noqa: TID251 - set by the launcher of TRL's processes
        return last_whole_checkpoint(out) if resume else None
    return claim(out, recipe, resume=resume)


def load_tokenizer(model: Path) -> Any:
    """Return the tokenizer of a checkpoint folder, which then adds no token of its own.

    Raises PodiumError INVALID_REQUEST for what is no such folder.
    """
    if not (model / "config.json").is_file():
        raise invalid("the model path is no checkpoint folder of this machine; hub names are never looked up")
    tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    # The chat template writes every special token itself; serving adds none, so training must not either.
    tokenizer.add_bos_token = False
    text = "model_id"
    if tokenizer(text)["input_ids"] != tokenizer.encode(text, add_special_tokens=False):
        raise invalid("the model's tokenizer adds tokens to a rendered chat; it cannot be trained here")
    return tokenizer


def _draws(
    recipe: GrpoRecipe, tasks: Sequence[Task], tokenizer: Any, environment: Environment, caps: Caps
) -> tuple[Draw, ...]:
    performs_rounds = isinstance(environment, RoundsEnvironment)
    if recipe.later_share and not performs_rounds:
        raise invalid(
            f"the recipe {recipe.name} asks for second rounds; this environment performs only first ones"
        )
    return tuple(
        draws(
            tasks,
            recipe.iterations * recipe.prompts,
            ChatWriter(tokenizer),
            seed=recipe.seed,
            room_tokens=recipe.context_tokens - recipe.completion_tokens,
            caps=caps,
            free_reasoning=recipe.free_reasoning,
            first_round=FirstAttempts(environment) if isinstance(environment, RoundsEnvironment) else None,
            later_share=recipe.later_share,
        )
    )


def _trainer(
    recipe: GrpoRecipe,
    model: Path,
    tokenizer: Any,
    drawn: Sequence[Draw],
    environment: Environment,
    out: Path,
    watch: RunWatch,
) -> Any:
    # TRL would log the whole prompt of a completion that cannot be scored.
    logging.getLogger("trl.trainer.grpo_trainer").addFilter(_without_content)
    reward = EnvironmentReward(
        environment,
        drawn,
        timeout_s=recipe.score_timeout_s,
        max_concurrent=recipe.max_concurrent_scores,
        max_unscorable_share=recipe.max_unscorable_share,
    )
    rows = Dataset.from_list([{"prompt": draw.text, "row": number} for number, draw in enumerate(drawn)])
    # 32-bit: an update of 1e-6 is below the precision of a 16-bit weight and would vanish.
    weights = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32, local_files_only=True)
    disable_progress_bar()
    trainer = GRPOTrainer(
        model=weights,
        reward_funcs=reward,
        args=trl_settings(recipe, out),
        train_dataset=rows,
        processing_class=tokenizer,
        callbacks=[watch],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def trl_settings(recipe: GrpoRecipe, out: Path) -> Any:
    """Return the recipe as TRL's own settings. Raises PodiumError when its batch does not divide."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))  # noqa: TID251 - set by the launcher of TRL's processes
    passes, rest = divmod(recipe.batch, recipe.pass_size * processes)
    if rest:
        raise invalid(
            f"a batch of {recipe.batch} completions does not divide into passes of {recipe.pass_size} on "
            f"{processes} processes"
        )
    return GRPOConfig(
        output_dir=str(out),
        max_steps=recipe.iterations,
        per_device_train_batch_size=recipe.pass_size,
        gradient_accumulation_steps=passes,
        num_generations=recipe.rollouts,
        max_completion_length=recipe.completion_tokens,
        temperature=recipe.temperature,
        learning_rate=recipe.learning_rate,
        warmup_steps=recipe.warmup_share,
        lr_scheduler_type=recipe.schedule,
        adam_beta1=recipe.adam_betas[0],
        adam_beta2=recipe.adam_betas[1],
        beta=recipe.kl,
        loss_type=recipe.loss.value,
        scale_rewards=recipe.advantage_scale.value,
        epsilon=recipe.clip_low,
        epsilon_high=recipe.clip_high,
        mask_truncated_completions=recipe.masks_truncated,
        bf16=recipe.autocast_bf16,
        gradient_checkpointing=recipe.saves_memory,
        use_cpu=not torch.cuda.is_available(),
        shuffle_dataset=False,
        seed=recipe.seed,
        save_strategy="steps",
        save_steps=recipe.checkpoint_every,
        save_total_limit=recipe.kept_checkpoints,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        **_generation_settings(recipe),
    )


def _generation_settings(recipe: GrpoRecipe) -> dict[str, Any]:
    if recipe.generation is Generation.TRANSFORMERS:
        return {"use_vllm": False}
    return {
        "use_vllm": True,
        "vllm_mode": recipe.generation.value,
        "vllm_max_model_length": recipe.context_tokens,
        "vllm_importance_sampling_correction": True,
    }


def _without_content(record: logging.LogRecord) -> bool:
    return "returned None for the following kwargs" not in str(record.msg)
