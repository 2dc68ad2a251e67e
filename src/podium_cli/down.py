"""`podium down`: stops every service of a home, gently first, whatever state it is in."""

import argparse
import signal
import time

from rich.console import Console

from podium_cli import processes
from podium_cli.home import Home
from podium_cli.processes import Process
from podium_cli.services import SERVICES
from podium_cli.settings import CliSettings

_GRACE_S = 40.0
_KILL_S = 5.0


def run(_arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Stop what runs; running requests get their time to finish."""
    if not home.directory.is_dir():
        console.print(f"nothing to stop: there is no Podium in {home.directory}")
        return 0
    with home.locked():
        stopped, killed = stop_all(home)
    if not stopped:
        console.print(f"nothing to stop: no service of {home.directory} is running")
        return 0
    names = ", ".join(process.service for process in stopped)
    console.print(f"stopped {names}")
    if killed:
        names = ", ".join(process.service for process in killed)
        console.print(f"killed after {_GRACE_S:.0f} s without an end: {names}", style="yellow")
    return 0


def stop_all(home: Home) -> tuple[list[Process], list[Process]]:
    """Stop every service; return those that ran, and those of them that had to be killed.

    The gateway goes first, so that running requests can still end on the others.
    """
    stopped: list[Process] = []
    killed: list[Process] = []
    for service in reversed(SERVICES):
        process = processes.find(home, service.name)
        if process is not None and process.is_alive:
            stopped.append(process)
            processes.send(process, signal.SIGTERM)
            if processes.wait_gone([process], _GRACE_S, time.sleep):
                killed.append(process)
                processes.send(process, signal.SIGKILL)
                processes.wait_gone([process], _KILL_S, time.sleep)
        processes.forget(home, service.name)
    return stopped, killed
