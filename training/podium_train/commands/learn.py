"""Train the embedded Conductor: text encoder, supervised warm start, reinforcement, export."""

import argparse
import logging
import sys
from dataclasses import replace
from pathlib import Path

from podium_core.domain.errors import invalid
from podium_core.domain.plan import MAX_STEPS

HELP = "train the embedded Conductor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--data", type=Path, help="folder of recorded outcomes; without it, demo tasks only")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints, figures and weights")
    parser.add_argument("--seed", type=int, default=0, help="seed of the whole run (0)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--reduced", action="store_true", help="a small run of under a quarter of an hour")
    size.add_argument("--smoke", action="store_true", help="a run of a few minutes, for CI")
    parser.add_argument(
        "--max-steps",
        type=int,
        default=MAX_STEPS,
        help=f"most steps of a plan in reinforcement ({MAX_STEPS})",
    )
    shared = parser.add_mutually_exclusive_group()
    shared.add_argument("--encoder-of", type=Path, metavar="RUN", help="take the text encoder of another run")
    shared.add_argument(
        "--supervised-of", type=Path, metavar="RUN", help="take encoder and warm start of another run"
    )
    parser.add_argument("--steps", type=int, help="steps of reinforcement, instead of the size's own")


def run(arguments: argparse.Namespace) -> int:
    """Train, and say where the weights are."""
    try:
        from podium_train.learning.run import FULL, REDUCED, SMOKE, learn  # noqa: PLC0415 - needs torch
    except ImportError:
        raise invalid(
            "training needs torch, which is not installed: install requirements/train.txt",
            reason="TRAIN_EXTRA_MISSING",
        ) from None
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    options = REDUCED if arguments.reduced else SMOKE if arguments.smoke else FULL
    grpo = replace(
        options.grpo,
        seed=arguments.seed,
        steps=arguments.steps or options.grpo.steps,
        max_steps=arguments.max_steps,
    )
    options = replace(
        options,
        seed=arguments.seed,
        grpo=grpo,
        encoder_of=arguments.encoder_of,
        supervised_of=arguments.supervised_of,
    )
    learned = learn(arguments.data, arguments.out, options)
    for stage, found in learned.stages.items():
        shown = ", ".join(f"{kind} {value:.3f}" for kind, value in found.items())
        sys.stdout.write(f"{stage}: greedy dev accuracy {shown}\n")
    sys.stdout.write(f"weights: {learned.folder}\n")
    return 0
