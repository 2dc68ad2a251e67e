"""The `podium-train` command: one module of `commands` per verb."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from podium_core.domain.errors import PodiumError
from podium_train.commands import evaluate, export, grpo, import_, learn, live, results, rows, sandbox, sweep

_COMMANDS: Mapping[str, ModuleType] = {
    "evaluate": evaluate,
    "export": export,
    "grpo": grpo,
    "import": import_,
    "learn": learn,
    "live": live,
    "results": results,
    "rows": rows,
    "sandbox": sandbox,
    "sweep": sweep,
}
"""Verb -> module with `HELP`, `add_arguments(parser)` and `run(arguments) -> int`."""
_INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every verb."""
    parser = argparse.ArgumentParser(prog="podium-train", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, module in _COMMANDS.items():
        module.add_arguments(verbs.add_parser(name, help=module.HELP, description=module.__doc__))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    arguments = build_parser().parse_args(argv)
    try:
        return int(_COMMANDS[arguments.verb].run(arguments))
    except PodiumError as error:
        sys.stderr.write(f"podium-train: {error.message}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("podium-train: interrupted\n")
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
