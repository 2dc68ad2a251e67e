"""`podium status`: which services run, where they listen, and whether they are ready."""

import argparse
import asyncio

from rich.console import Console
from rich.table import Table

from podium_cli import processes
from podium_cli.home import HOST, Home
from podium_cli.ports import saved_ports
from podium_cli.readiness import is_ready
from podium_cli.services import SERVICES, Service
from podium_cli.settings import CliSettings


def run(_arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Show one row per service; exit code 1 unless all are ready."""
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
    return 0 if set(states.values()) == {"ready"} else 1


async def _states(home: Home, ports: dict[str, int]) -> dict[Service, str]:
    async def state(service: Service) -> str:
        process = processes.find(home, service.name)
        if process is None or not process.is_alive:
            return "stopped"
        return "ready" if ports and await is_ready(service, home, ports) else "not ready"

    return dict(zip(SERVICES, await asyncio.gather(*map(state, SERVICES)), strict=True))
