"""`podium runs`: the newest runs of the log that this key may see, or all that fit as a file."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from podium_cli.access import audit_client
from podium_cli.home import Home
from podium_cli.run_file import FILTERS, write_runs
from podium_cli.settings import CliSettings
from podium_cli.words import moment, usd

_RUN_ID_WIDTH = 36
_TO_THE_SECOND = slice(19)
_MONTH_TO_MINUTE = slice(5, 16)
_WIDE = 104
"""Columns of a terminal that holds every column of the table."""


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Show one row per run, newest first, and how many there are in all; with `--out`, write them all."""
    client = audit_client(arguments, home, settings)
    filters = {name: value for name in FILTERS if (value := getattr(arguments, f"only_{name}")) is not None}
    if arguments.out is not None:
        return asyncio.run(write_runs(client, filters, arguments.out, console))
    page = asyncio.run(client.runs(arguments.limit, arguments.before, filters))
    rows = [_row(each, is_wide=console.width >= _WIDE) for each in page.get("runs") or ()]
    columns = [
        Column("run", no_wrap=True, min_width=_RUN_ID_WIDTH),
        Column("opened", no_wrap=True),
        Column("by", overflow="fold"),
        Column("model", overflow="fold"),
        Column("outcome", no_wrap=True),
        Column("calls", no_wrap=True),
        Column("cost", no_wrap=True),
    ]
    shown = [column for column in columns if not rows or column.header in rows[0]]
    table = Table(*shown, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row.values())
    console.print(table)
    console.print(f"{len(page.get('runs') or ())} of {page.get('total', '?')} runs")
    return 0


def _row(run: Mapping[str, Any], *, is_wide: bool) -> dict[str, str]:
    """Return the cells of a run by column; a narrow terminal gets those that tell runs apart."""
    row = {
        "run": str(run.get("run_id", "?")),
        "opened": moment(run.get("opened_us"))[_TO_THE_SECOND if is_wide else _MONTH_TO_MINUTE],
        "by": str(run.get("principal_id", "?")),
        "model": str(run.get("requested_model", "?")),
        "outcome": str(run.get("outcome") or "open"),
        "calls": str(run.get("attempt_count", "")),
        "cost": usd(run.get("cost_usd_micros")) if run.get("outcome") else "",
    }
    return row if is_wide else {name: cell for name, cell in row.items() if name not in ("model", "calls")}
