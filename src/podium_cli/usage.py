"""`podium usage`: requests, attempts, tokens, cost as the log counts them, and what is left of the budget."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from podium_cli.access import gateway_client
from podium_cli.home import Home
from podium_cli.settings import CliSettings
from podium_cli.words import usd

_COUNTS = ("requests", "attempts", "input_tokens", "output_tokens")


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Show one row per group, the sum, and the money."""
    query = {"group_by": arguments.by, "from": arguments.first, "to": arguments.last}
    if arguments.all_keys:
        query["scope"] = "tenant"
    asked = {name: value for name, value in query.items() if value}
    page = asyncio.run(gateway_client(arguments, home, settings).usage(asked))
    whose = f"key {page['key']} of tenant {page['tenant']}" if page.get("key") else f"tenant {page['tenant']}"
    console.print(f"{whose}, {page['from']} to {page['to']} (UTC days)\n")
    console.print(_table(page, arguments.by.split(",")))
    uncounted = page["total"]["unknown_attempts"]
    if uncounted:
        console.print(f"{uncounted} attempts had no token counts; they are billed at what was reserved.")
    console.print()
    console.print(_money(page["money"], f"tenant {page['tenant']}"))
    if page.get("key_money") and page["key_money"]["budget_usd_micros"] is not None:
        console.print(_money(page["key_money"], f"key {page['key']}"))
    return 0


def _table(page: Mapping[str, Any], groups: list[str]) -> Table:
    table = Table(*groups, "requests", "attempts", "tokens in", "out", "cost", box=None, pad_edge=False)
    for row in page["rows"]:
        table.add_row(*(str(row[name] or "-") for name in groups), *_cells(row))
    table.add_row("all", *("" for _ in groups[1:]), *_cells(page["total"]))
    return table


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [*(str(row[name]) for name in _COUNTS), usd(row["cost_usd_micros"])]


def _money(money: Mapping[str, Any], whose: str) -> str:
    used = f"{whose} in {money['month']}: {usd(money['spent_usd_micros'])} spent"
    if money["reserved_usd_micros"]:
        used += f", {usd(money['reserved_usd_micros'])} reserved for calls under way"
    if money["budget_usd_micros"] is None:
        return f"{used}; no budget is set"
    return f"{used} of {usd(money['budget_usd_micros'])}; {usd(money['left_usd_micros'])} left"
