"""`podium runs`: the newest runs of the log that this key may see."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from podium_cli.access import audit_client
from podium_cli.home import Home
from podium_cli.settings import CliSettings
from podium_cli.words import moment, usd

_RUN_ID_WIDTH = 36
_TO_THE_SECOND = 19


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Show one row per run, newest first, and how many there are in all."""
    client = audit_client(arguments, home, settings)
    page = asyncio.run(client.runs(arguments.limit, arguments.before))
    run_id = Column("run", no_wrap=True, min_width=_RUN_ID_WIDTH)
    table = Table(run_id, "opened", "by", "model", "outcome", "calls", "cost", box=None, pad_edge=False)
    for each in page.get("runs") or ():
        table.add_row(*_row(each))
    console.print(table)
    console.print(f"{len(page.get('runs') or ())} of {page.get('total', '?')} runs")
    return 0


def _row(run: Mapping[str, Any]) -> list[str]:
    return [
        str(run.get("run_id", "?")),
        moment(run.get("opened_us"))[:_TO_THE_SECOND],
        str(run.get("principal_id", "?")),
        str(run.get("requested_model", "?")),
        str(run.get("outcome") or "open"),
        str(run.get("attempt_count", "")),
        usd(run.get("cost_usd_micros")) if run.get("outcome") else "",
    ]
