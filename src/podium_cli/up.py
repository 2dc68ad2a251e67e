"""`podium up`: everything on one machine, started in the background, with a first question answered."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from subprocess import Popen

from rich.console import Console

from podium_cli import ask, examples, processes
from podium_cli.audit_client import AuditClient
from podium_cli.down import stop_all
from podium_cli.failures import CliError
from podium_cli.first_start import check_files, prepare
from podium_cli.gateway_client import Asking, GatewayClient
from podium_cli.home import Home, write_private
from podium_cli.hosted import VARIABLES, Offer, offers_from_keys, what_is_missing
from podium_cli.ports import choose_ports, save_ports, saved_ports
from podium_cli.providers import add_to_pool, offers_from_servers, save_keys
from podium_cli.readiness import wait_ready
from podium_cli.services import SERVICES, Ports, Service
from podium_cli.settings import CliSettings, variables_set
from podium_core.config.pool import load_pool
from podium_core.domain.clock import SystemClock

FIRST_QUESTION = "Multiply 17 by 23, write the result as a Roman numeral, and reverse the word 'stressed'."
"""Needs three specialists, two of them at once."""

_READY_S = 90.0


def run(arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Start what does not run, then show that it works."""
    home.create()
    with home.locked():
        running = {s.name for s in SERVICES if (p := processes.find(home, s.name)) and p.is_alive}
        if len(running) == len(SERVICES):
            console.print(f"Podium is already running in {home.directory}.", soft_wrap=True)
            examples.show(console, home)
            return 0
        ports = _start(arguments, console, home, running)
        _pin_log_key(home)
    if arguments.no_ask:
        examples.show(console, home)
        return 0
    return _show_that_it_works(console, home, ports)


def _start(arguments: argparse.Namespace, console: Console, home: Home, running: set[str]) -> Ports:
    if running:
        console.print(
            f"Of an earlier start only {', '.join(sorted(running))} still run; stopping them first."
        )
        stop_all(home)
    ports = choose_ports(home, free_ports=arguments.free_ports)
    if prepare(home, ports["demo"]):
        console.print(
            f"Created {home.directory}: certificates, one demo tenant with an API key, the demo pool."
        )
    _offer_workers(arguments, console, home)
    check_files(home)
    save_ports(home, ports)
    children = {
        service: processes.spawn(home, service.name, service.command(ports), service.environment(home, ports))
        for service in SERVICES
    }
    try:
        late = _wait(console, home, ports, children)
    except KeyboardInterrupt:
        stop_all(home)
        raise
    if late:
        raise _failure(home, late, children, console)
    console.print(
        f"All {len(SERVICES)} services are ready; logs are in {home.directory / 'logs'}.", soft_wrap=True
    )
    return ports


def _wait(
    console: Console, home: Home, ports: Ports, children: Mapping[Service, "Popen[bytes]"]
) -> list[Service]:
    """Wait until all services are ready, and show it; return those that are not."""
    with console.status("starting") as status:
        ready: list[str] = []

        def on_ready(service: Service) -> None:
            ready.append(service.name)
            status.update(f"starting: {', '.join(ready)} ready")
            if not console.is_terminal:
                console.print(f"{service.name} is ready")

        return asyncio.run(
            wait_ready(
                SERVICES,
                home,
                ports,
                clock=SystemClock(),
                timeout_s=_READY_S,
                is_dead=lambda service: children[service].poll() is not None,
                on_ready=on_ready,
            )
        )


def _failure(
    home: Home, late: Sequence[Service], children: Mapping[Service, "Popen[bytes]"], console: Console
) -> CliError:
    """Show the log of what failed, stop the rest, and return the error to raise."""
    dead = [service for service in late if children[service].poll() is not None]
    for service in dead or late:
        code = children[service].poll()
        state = f"died with exit code {code}" if code is not None else f"was not ready in {_READY_S:.0f} s"
        console.print(f"{service.name} {state}; the end of its log:", style="red")
        for line in processes.last_lines(home.log_file(service.name)):
            console.print(f"  {line}", soft_wrap=True)
    stop_all(home)
    names = ", ".join(service.name for service in dead or late)
    return CliError(f"Podium did not start because of {names}; everything is stopped again")


def _offer_workers(arguments: argparse.Namespace, console: Console, home: Home) -> None:
    """List the workers this machine could add; add them only when told to."""
    environment = variables_set(VARIABLES)
    offers = [*offers_from_keys(environment), *asyncio.run(offers_from_servers())]
    for line in what_is_missing(environment):
        console.print(line)
    if not offers:
        return
    if not arguments.use_keys:
        console.print("These workers could join the pool; `podium up --use-keys` adds them:")
        _show(console, offers)
        return
    save_keys(home, offers, environment)
    taken = frozenset(load_pool(home.pool_file).pool.by_id)
    text, added = add_to_pool(home.pool_file.read_text(encoding="utf-8"), offers, taken)
    write_private(home.pool_file, text)
    if added:
        console.print(f"Added to {home.pool_file}; questions may now leave this machine:")
        _show(console, added)


def _show(console: Console, offers: Sequence[Offer]) -> None:
    for offer in offers:
        console.print(f"  {offer.found}:")
        console.print(offer.entry, soft_wrap=True)


def _pin_log_key(home: Home) -> None:
    """Keep the log's key as it is at the first start; later exports are checked against it."""
    vkey = asyncio.run(AuditClient(home.read_endpoints()["audit"], home.read_api_key()).vkey())
    if not home.vkey_file.exists():
        write_private(home.vkey_file, f"{vkey}\n")
    elif home.vkey_file.read_text(encoding="utf-8").strip() != vkey:
        raise CliError(
            "the log signs with another key than at the first start of this home",
            hint=f"if you replaced the log in {home.audit_dir} on purpose, remove {home.vkey_file}",
        )


def _show_that_it_works(console: Console, home: Home, ports: Ports) -> int:
    console.print(f"\nA first question: {FIRST_QUESTION}\n", style="bold")
    client = GatewayClient(home.read_endpoints()["gateway"], home.read_api_key())
    view = ask.ask_and_show(client, Asking(FIRST_QUESTION), console)
    examples.show(console, home, run_id=view.run_id)
    return 0 if ports == saved_ports(home) and ask.succeeded(view) else 1
