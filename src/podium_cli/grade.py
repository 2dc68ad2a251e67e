"""`podium grade RUN`: says how good a run's answer was; the log keeps it, the gate learns from it."""

import argparse
import asyncio

from rich.console import Console

from podium_cli.access import audit_client, gateway_client
from podium_cli.audit_client import LAST, RUN_ID
from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.settings import CliSettings


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Send the grade."""
    told = asyncio.run(_grade(arguments, home, settings))
    console.print(
        f"run {told.get('run_id')} is graded {told.get('score')}; leaf {told.get('leaf_index')} of the log"
    )
    return 0


async def _grade(arguments: argparse.Namespace, home: Home, settings: CliSettings) -> "dict[str, object]":
    run_id = str(arguments.run)
    if run_id == LAST:
        run_id = await audit_client(arguments, home, settings).resolve(LAST)
    elif not RUN_ID.fullmatch(run_id):
        raise CliError("this is no id of a run", hint="`podium runs` lists those there are")
    grade: dict[str, object] = {"comment": arguments.comment} if arguments.comment else {}
    if arguments.score is not None:
        grade["score"] = arguments.score
    else:
        grade["pass"] = bool(arguments.passed)
    return dict(await gateway_client(arguments, home, settings).grade(run_id, grade))
