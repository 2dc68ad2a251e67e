"""The `podium` command: parses, dispatches, and turns expected failures into one message."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO, cast

from rich.console import Console

from podium_cli import (
    ask,
    bundle,
    custody,
    down,
    grade,
    keys,
    objects,
    pin,
    plan,
    profile,
    runs,
    show,
    status,
    stop,
    up,
    usage,
    verify,
)
from podium_cli.arguments import build_parser
from podium_cli.calibrate import command as calibrate
from podium_cli.failures import CliError
from podium_cli.home import open_home
from podium_cli.replay import command as replay
from podium_cli.settings import CliSettings
from podium_cli.words import TidyLines, plain

_INTERRUPTED = 130
_PIPE_WIDTH = 1_000
"""Wide enough that nothing is cut or broken on its way into a file or another program."""
COMMANDS: Mapping[str, Callable[..., int]] = {
    "approve": custody.approve,
    "ask": ask.run,
    "calibrate": calibrate.run,
    "down": down.run,
    "bundle": bundle.run,
    "erase": custody.erase,
    "grade": grade.run,
    "hold": custody.hold,
    "keys": keys.run,
    "objects": objects.run,
    "pin": pin.run,
    "plan": plan.run,
    "profile": profile.run,
    "reads": custody.reads,
    "retention": custody.retention,
    "replay": replay.run,
    "runs": runs.run,
    "show": show.run,
    "status": status.run,
    "stop": stop.run,
    "up": up.run,
    "usage": usage.run,
    "verify": verify.run,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = build_parser().parse_args(argv)
    settings = CliSettings()
    home = open_home(arguments.home or settings.home)
    console = _console()
    try:
        return COMMANDS[arguments.command](arguments, console, home, settings)
    except CliError as error:
        complaint = Console(stderr=True, highlight=False, markup=False)
        complaint.print(f"podium: {plain(error.message)}", style="red", soft_wrap=True)
        if error.hint:
            complaint.print(f"  {plain(error.hint)}", soft_wrap=True)
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("podium: interrupted\n")
        return _INTERRUPTED


def _console() -> Console:
    if sys.stdout.isatty():
        return Console(highlight=False, markup=False)
    return Console(
        highlight=False, markup=False, width=_PIPE_WIDTH, file=cast("TextIO", TidyLines(sys.stdout))
    )


if __name__ == "__main__":
    sys.exit(main())
