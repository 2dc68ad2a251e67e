"""Write training tasks as the Parquet files that verl reads: train.parquet and dev.parquet.

Prompts are drawn as for GRPO on one machine, but without free reasoning, because verl's chats cannot carry
the beginning of a reply. Needs the extra `train`.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from podium_core.domain.errors import invalid
from podium_core.domain.run import Caps
from podium_train.learning.grpo_recipe import RECIPES, GrpoRecipe, recipe_named
from podium_train.learning.prompts import ChatWriter, draws
from podium_train.learning.replayed import replayed
from podium_train.learning.verl_reward import rows_of
from podium_train.outcomes.splits import Split

HELP = "write training tasks in verl's format"
_DEV_ROWS = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--recipe", default="paper-7b", help=f"named settings: {', '.join(sorted(RECIPES))}")
    parser.add_argument("--model", type=Path, required=True, help="checkpoint folder, for its tokenizer")
    parser.add_argument("--data", type=Path, required=True, help="folder of recorded answers")
    parser.add_argument("--to", type=Path, required=True, help="folder for the files")
    parser.add_argument("--seed", type=int, default=0, help="PODIUM_TRAIN_SEED of the reward workers")


def run(arguments: argparse.Namespace) -> int:
    """Write both files and say how many rows they have."""
    if find_spec("datasets") is None:
        raise invalid("this needs the extra `train` (docs/training.md)")
    from podium_train.learning.trl_engine import load_tokenizer  # noqa: PLC0415 - torch, only when it is used

    recipe = recipe_named(arguments.recipe)
    writer = ChatWriter(load_tokenizer(arguments.model))
    arguments.to.mkdir(parents=True, exist_ok=True)
    for split, count in ((Split.TRAIN, recipe.iterations * recipe.prompts), (Split.DEV, _DEV_ROWS)):
        rows = _rows(arguments.data, split, count, recipe, writer, arguments.seed)
        path = arguments.to / f"{split.value}.parquet"
        _write(rows, path)
        sys.stdout.write(f"{len(rows)} rows in {path}\n")
    return 0


def _rows(
    data: Path, split: Split, count: int, recipe: GrpoRecipe, writer: ChatWriter, seed: int
) -> list[dict[str, Any]]:
    made = replayed(data, seed=seed, split=split)
    drawn = draws(
        made.tasks,
        count,
        writer,
        seed=seed,
        room_tokens=recipe.context_tokens - recipe.completion_tokens,
        caps=Caps(),
        free_reasoning=False,
    )
    return rows_of(drawn, made.tasks, split.value)


def _write(rows: list[dict[str, Any]], path: Path) -> None:
    from datasets import Dataset  # noqa: PLC0415 - large, only when it is used

    Dataset.from_list(rows).to_parquet(str(path))
