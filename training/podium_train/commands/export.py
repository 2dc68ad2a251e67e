"""Copy trained weights to where the embedded engine reads them, after checking that they plan."""

import argparse
import shutil
import sys
from pathlib import Path

from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.plan_model.weights import ARRAYS_FILE, SKILLS_FILE, unpacked

HELP = "copy the weights of a finished run to a folder for serving"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--run", type=Path, required=True, help="the output folder of `podium-train learn`")
    parser.add_argument(
        "--to", type=Path, required=True, help="parent folder; the weights keep their digest name"
    )


def run(arguments: argparse.Namespace) -> int:
    """Copy the newest weights of a run."""
    folders = sorted(
        (arguments.run / "weights").glob("*/manifest.json"), key=lambda path: path.stat().st_mtime
    )
    if not folders:
        raise invalid(
            "that run has no weights yet; let `podium-train learn` finish", reason="WEIGHTS_MISSING"
        )
    folder = folders[-1].parent
    unpacked({name: (folder / name).read_bytes() for name in (ARRAYS_FILE, SKILLS_FILE)})
    try:
        shutil.copytree(folder, arguments.to / folder.name, dirs_exist_ok=True)
    except OSError as error:
        raise PodiumError(
            Code.INTERNAL,
            "the weights could not be copied; free space there and export again",
            reason="TRAIN_NOT_SAVED",
        ) from error
    sys.stdout.write(f"{arguments.to / folder.name}\n")
    return 0
