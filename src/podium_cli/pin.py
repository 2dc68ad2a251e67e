"""`podium pin`: gives today's Conductor model and pool a dated name, `podium@<date>`."""

import argparse
import asyncio
from datetime import UTC, datetime
from pathlib import Path

import yaml
from rich.console import Console

from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.local_ca import service_files
from podium_cli.planning_client import planning_client
from podium_cli.settings import CliSettings
from podium_cli.yaml_edit import appended, edited, is_filled, parse, rewrite, value_of, with_field
from podium_core.config.pins import Pin, load_pins
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import RandomIds


def run(arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Add a pin of what is loaded now; one that is there stays what it was."""
    today = datetime.fromtimestamp(SystemClock().now_ns() // 10**9, UTC).date()
    day = arguments.date or today.isoformat()
    try:
        datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
        pins = load_pins(home.pins_file).by_day
    except ValueError:
        raise CliError(f"{day} is no date", hint="write 2026-11-30") from None
    except PodiumError as error:
        raise CliError(error.message) from None
    if day in pins:
        raise CliError(
            f"podium@{day} is pinned already, and a name never changes its meaning",
            hint="choose another date",
        )
    pin = asyncio.run(_loaded(home, day))
    add_pin(home.pins_file, pin)
    console.print(f"podium@{day} now stands for what is loaded:")
    console.print(f"  pool {pin.pool_digest}\n  Conductor model {pin.model_digest}")
    console.print("When either is replaced the name is refused; it never means anything else.")
    return 0


def add_pin(path: Path, pin: Pin) -> None:
    """Write one more pin into the file; CliError with the file untouched."""
    entry = f'{{date: {pin.day}, pool_digest: "{pin.pool_digest}", model_digest: "{pin.model_digest}"}}'

    def change(text: str) -> str:
        node = parse(text)
        pins = value_of(node, "pins")
        if isinstance(pins, yaml.SequenceNode) and is_filled(pins):
            return edited(text, [appended(text, pins, [entry])])
        if not isinstance(node, yaml.MappingNode):
            return f"{text.rstrip()}\npins:\n  - {entry}\n"
        return edited(text, [with_field(text, node, "pins", [entry])])

    def check(draft: Path) -> None:
        if load_pins(draft).by_day != {**load_pins(path).by_day, pin.day: pin}:
            raise CliError("the pins file is written in a way that cannot be edited safely; it is unchanged")

    rewrite(path, change, check)


async def _loaded(home: Home, day: str) -> Pin:
    addresses = home.read_endpoints()["grpc"]
    try:
        async with planning_client(
            addresses, service_files(home.tls_dir, "cli"), RandomIds(SystemClock())
        ) as client:
            return Pin(day, (await client.pool()).pool_digest, await client.model_digest())
    except PodiumError as error:
        raise CliError(error.message, hint="`podium status` shows what runs") from None
