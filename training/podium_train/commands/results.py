"""Write the page of results from the measurements in a folder. Figures come from there and nowhere else."""

import argparse
import sys
from pathlib import Path

from podium_core.domain.errors import invalid
from podium_train.evaluation.page import page

HELP = "write docs/results.md from stored measurements"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--measurements", type=Path, default=Path("docs/results"), help="default: docs/results"
    )
    parser.add_argument("--page", type=Path, default=Path("docs/results.md"), help="default: docs/results.md")


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    if not any(arguments.measurements.glob("*.json")):
        raise invalid("the folder of --measurements holds no *.json; `podium-train evaluate` writes them")
    arguments.page.write_text(page(arguments.measurements), encoding="utf-8")
    sys.stdout.write(f"{arguments.page}\n")
    return 0
