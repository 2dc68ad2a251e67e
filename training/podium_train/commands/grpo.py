"""Train a small language model as a Conductor by GRPO, over recorded answers, with TRL on this machine.

The output folder holds checkpoints, progress.jsonl and, at the end, served/: a checkpoint for the vLLM
engine. A run that was interrupted goes on with --resume. Needs the extra `train`.
"""

import argparse
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from podium_core.domain.errors import Code, PodiumError, invalid
from podium_train.learning.grpo_recipe import RECIPES, Generation, recipe_named
from podium_train.learning.replayed import replayed
from podium_train.outcomes.cards import Grain

HELP = "train a language model by GRPO with TRL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--recipe", required=True, help=f"named settings: {', '.join(sorted(RECIPES))}")
    parser.add_argument("--model", type=Path, required=True, help="checkpoint folder of an instruction model")
    parser.add_argument("--data", type=Path, required=True, help="folder of recorded answers")
    parser.add_argument("--to", type=Path, required=True, help="folder for the run")
    parser.add_argument("--resume", action="store_true", help="go on with the run that the folder holds")
    parser.add_argument("--iterations", type=int, help="instead of the recipe's")
    parser.add_argument("--seed", type=int, help="draws tasks and completions (default: the recipe's)")
    parser.add_argument(
        "--generation", choices=[kind.value for kind in Generation], help="instead of the recipe's"
    )
    parser.add_argument("--grain", choices=[grain.value for grain in Grain], default=Grain.CATEGORY.value)


def run(arguments: argparse.Namespace) -> int:
    """Train, telling each iteration. Raises PodiumError TRAIN_COLLAPSED when an alarm stopped the run."""
    if find_spec("trl") is None:
        raise invalid("this needs torch and TRL: install the extra `train` (docs/training.md)")
    changes = {
        "iterations": arguments.iterations,
        "seed": arguments.seed,
        "generation": None if arguments.generation is None else Generation(arguments.generation),
    }
    recipe = recipe_named(arguments.recipe)
    recipe = replace(recipe, **{name: value for name, value in changes.items() if value is not None})
    made = replayed(arguments.data, seed=recipe.seed, grain=Grain(arguments.grain))
    from podium_train.learning.trl_engine import train  # noqa: PLC0415 - torch, only when it is used

    trained = train(
        recipe,
        arguments.model,
        made.tasks,
        made.environment,
        arguments.to,
        resume=arguments.resume,
        tell=_tell,
    )
    if trained.alarm is not None:
        raise PodiumError(
            Code.CONFLICT,
            f"the run was stopped after {trained.iterations} iterations: {trained.alarm}. Look at "
            "progress.jsonl; its last checkpoint is kept",
            reason="TRAIN_COLLAPSED",
        )
    _tell(f"{trained.iterations} iterations done; serve {trained.served}")
    return 0


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
