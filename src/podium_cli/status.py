"""`podium status`: which services run, where, whether they are ready, and which file has a mistake."""

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from podium_cli import processes
from podium_cli.home import HOST, Home
from podium_cli.ports import saved_ports
from podium_cli.readiness import is_ready
from podium_cli.services import SERVICES, Service
from podium_cli.settings import CliSettings
from podium_core.config.pins import load_pins
from podium_core.config.plans import load_plans
from podium_core.config.pool import load_pool
from podium_core.config.tenants import load_tenants
from podium_core.domain.errors import PodiumError


def run(_arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Show one row per service, then mistakes in files; exit code 1 unless all is well."""
    home.read_endpoints()
    ports = saved_ports(home)
    states = asyncio.run(_states(home, ports))
    table = Table("service", "state", "pid", "address", "log", box=None, pad_edge=False)
    for service, state in states.items():
        process = processes.find(home, service.name)
        table.add_row(
            service.name,
            state,
            str(process.pid) if process is not None and state != "stopped" else "",
            f"{HOST}:{ports.get(service.ready_port, '?')}",
            str(home.log_file(service.name)),
        )
    console.print(table)
    mistakes = _mistakes(home)
    for mistake in mistakes:
        console.print(f"{mistake}; while services run, they keep to its last good version", soft_wrap=True)
    return 0 if set(states.values()) == {"ready"} and not mistakes else 1


def _mistakes(home: Home) -> list[str]:
    """Return what is wrong with each file of the home that services read again."""
    files: tuple[tuple[Path, Callable[[Path], object]], ...] = (
        (home.pool_file, load_pool),
        (home.tenants_file, load_tenants),
        (home.plans_file, load_plans),
        (home.pins_file, load_pins),
    )
    found = []
    for path, load in files:
        try:
            if path.exists():
                load(path)
        except PodiumError as error:
            found.append(error.message)
    return found


async def _states(home: Home, ports: dict[str, int]) -> dict[Service, str]:
    async def state(service: Service) -> str:
        process = processes.find(home, service.name)
        if process is None or not process.is_alive:
            return "stopped"
        return "ready" if ports and await is_ready(service, home, ports) else "not ready"

    return dict(zip(SERVICES, await asyncio.gather(*map(state, SERVICES)), strict=True))
