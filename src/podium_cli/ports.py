"""Which port each service listens on, and whether it is free."""

import json
import socket
from collections.abc import Mapping
from typing import Any

from podium_cli.failures import CliError
from podium_cli.home import HOST, Home

DEFAULT_PORTS: Mapping[str, int] = {
    "demo": 7070,
    "conductor": 7051,
    "router": 7052,
    "audit": 7053,
    "gateway": 8080,
    "audit-http": 8081,
    "gateway-metrics": 9464,
    "conductor-metrics": 9465,
    "router-metrics": 9466,
    "audit-metrics": 9467,
}


def is_free(port: int) -> bool:
    """Say whether something could listen on `port` of loopback now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def choose_ports(home: Home, *, free_ports: bool) -> dict[str, int]:
    """Return a port for every listener: the usual ones, or any free ones.

    Free ports stay the same from start to start while they can. Raises CliError naming a port in use.
    """
    if free_ports:
        before = saved_ports(home)
        wanted = {name: before.get(name, 0) for name in DEFAULT_PORTS}
        return _fill({name: port if port and is_free(port) else 0 for name, port in wanted.items()})
    for name, port in DEFAULT_PORTS.items():
        if not is_free(port):
            raise CliError(
                f"port {port}, which {name} needs, is in use by another program",
                hint=f"stop what listens on {HOST}:{port}, or let Podium choose with --free-ports",
            )
    return dict(DEFAULT_PORTS)


def saved_ports(home: Home) -> dict[str, int]:
    """Return the ports of the last start; empty when there was none."""
    try:
        ports = home.read_endpoints().get("ports")
    except CliError:
        return {}
    if not isinstance(ports, dict) or not all(isinstance(ports.get(name), int) for name in DEFAULT_PORTS):
        return {}
    return {name: ports[name] for name in DEFAULT_PORTS}


def endpoints_of(ports: Mapping[str, int]) -> dict[str, Any]:
    """Return what `endpoints.json` says: addresses for people and programs."""
    address = {name: f"{HOST}:{port}" for name, port in ports.items()}
    return {
        "gateway": f"http://{address['gateway']}",
        "audit": f"http://{address['audit-http']}",
        "demo": f"http://{address['demo']}",
        "grpc": {name: address[name] for name in ("conductor", "router", "audit")},
        "metrics": {
            name.removesuffix("-metrics"): f"http://{value}/metrics"
            for name, value in address.items()
            if name.endswith("-metrics")
        },
        "ports": dict(ports),
    }


def save_ports(home: Home, ports: Mapping[str, int]) -> None:
    """Write `endpoints.json`."""
    home.endpoints_file.write_text(json.dumps(endpoints_of(ports), indent=2) + "\n", encoding="utf-8")


def _fill(ports: dict[str, int]) -> dict[str, int]:
    """Replace zeros by free ports, holding all of them open until each is found, so that they differ."""
    held: list[socket.socket] = []
    try:
        for name, port in ports.items():
            if port == 0:
                probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                held.append(probe)
                probe.bind((HOST, 0))
                ports[name] = probe.getsockname()[1]
    finally:
        for probe in held:
            probe.close()
    return ports
