"""Turns a public source's own files, from a local copy, into a data folder. Nothing is downloaded.

Recorded answers: reasoning-gym-eval, mmlu-pro, zeroeval, llmrouterbench. Question sets for live runs: math,
mmlu, rlpr, livecodebench, aime, gpqa, bigcodebench.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from podium_train.outcomes.importers import (
    choice_sets,
    code_sets,
    llmrouterbench,
    mathematics_sets,
    mmlu_pro_results,
    reasoning_gym_eval,
    zeroeval_results,
)
from podium_train.outcomes.importers.imported import Imported, write

HELP = "turn a public source's own files into a data folder"

_SOURCES: Mapping[str, Callable[[Path], Imported]] = {
    "reasoning-gym-eval": reasoning_gym_eval.convert,
    "mmlu-pro": mmlu_pro_results.convert,
    "zeroeval": zeroeval_results.convert,
    "llmrouterbench": llmrouterbench.convert,
    "math": mathematics_sets.convert_math,
    "mmlu": choice_sets.convert_mmlu,
    "rlpr": mathematics_sets.convert_rlpr,
    "livecodebench": code_sets.convert_livecodebench,
    "aime": mathematics_sets.convert_aime,
    "gpqa": choice_sets.convert_gpqa,
    "bigcodebench": code_sets.convert_bigcodebench,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the source and the two folders."""
    parser.add_argument("source", choices=tuple(_SOURCES), metavar="SOURCE", help=", ".join(_SOURCES))
    parser.add_argument(
        "--from", dest="from_dir", type=Path, required=True, metavar="DIR", help="the local copy"
    )
    parser.add_argument(
        "--to", dest="to_dir", type=Path, required=True, metavar="DIR", help="the data folder"
    )
    parser.add_argument("--replace", action="store_true", help="replace what an earlier import wrote")


def run(arguments: argparse.Namespace) -> int:
    """Read the whole source, then write it; return 0."""
    imported = _SOURCES[arguments.source](arguments.from_dir)
    target = write(imported, arguments.to_dir, replace=arguments.replace)
    for note in imported.notes:
        sys.stdout.write(f"note: {note}\n")
    sys.stdout.write(f"{imported.row_count} rows written to {target.name}\n")
    return 0
