"""`podium bundle`: several runs in one file that proves itself."""

import argparse
import asyncio

from rich.console import Console

from podium_cli.access import audit_client
from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.settings import CliSettings


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Fetch the bundle; return 0."""
    if bool(arguments.run) == bool(arguments.since and arguments.until):
        raise CliError(
            "name runs, or a time", hint="podium bundle RUN, or: podium bundle --from DAY --to DAY"
        )
    query = [("run", run_id) for run_id in arguments.run]
    named = {"case": arguments.case, "from": arguments.since, "to": arguments.until}
    query += [(name, value) for name, value in named.items() if value]
    query += [("content", "false")] if arguments.no_content else []
    client = audit_client(arguments, home, settings)
    asyncio.run(client.download("/v1/bundle", query, arguments.out))
    console.print(f"bundled to {arguments.out}; podium verify {arguments.out}", soft_wrap=True)
    return 0
