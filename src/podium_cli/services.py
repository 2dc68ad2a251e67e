"""The five processes of a local Podium: how each is started, and how it says that it is ready."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from podium_cli.home import HOST, Home
from podium_cli.local_ca import service_files
from podium_cli.settings import service_environment, variables_of
from podium_core.config.pool import load_pool
from podium_core.domain.errors import PodiumError

Ports = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Service:
    """One process. `ports` names what it listens on; `ready_path` is None where gRPC health answers."""

    name: str
    module: str
    ports: tuple[str, ...]
    ready_port: str
    ready_path: str | None
    own_settings: Callable[[Home, Ports], dict[str, str]]
    arguments: Callable[[Ports], list[str]] = lambda _: []
    secrets: Callable[[Home], list[str]] = lambda _: []

    def command(self, ports: Ports) -> list[str]:
        """Return the program and its arguments."""
        return [sys.executable, "-m", self.module, *self.arguments(ports)]

    def environment(self, home: Home, ports: Ports) -> dict[str, str]:
        """Return everything the process may see of the environment."""
        prefix = f"PODIUM_{self.name.upper()}_"
        own = {prefix + name: value for name, value in self.own_settings(home, ports).items()}
        return service_environment(own, self.secrets(home))


def _tls(home: Home, name: str, ports: Ports) -> dict[str, str]:
    files = service_files(home.tls_dir, name)
    return {
        "TLS_CERT_FILE": str(files.cert_file),
        "TLS_KEY_FILE": str(files.key_file),
        "TLS_CA_FILE": str(files.ca_file),
        "OPS_LISTEN": _at(ports, f"{name}-metrics"),
    }


def _audit(home: Home, ports: Ports) -> dict[str, str]:
    return {
        **_tls(home, "audit", ports),
        "LISTEN": _at(ports, "audit"),
        "HTTP_LISTEN": _at(ports, "audit-http"),
        "DATA_DIR": str(home.audit_dir),
        "KEYS_DIR": str(home.audit_keys_dir),
        "TENANTS_FILE": str(home.tenants_file),
    }


def _router(home: Home, ports: Ports) -> dict[str, str]:
    return {
        **_tls(home, "router", ports),
        "LISTEN": _at(ports, "router"),
        "AUDIT_ADDRESS": _at(ports, "audit"),
        "POOL_FILE": str(home.pool_file),
        "ALLOW_CLI": "true",  # whoever owns this home holds the command's certificate: `podium calibrate`
    }


def _conductor(home: Home, ports: Ports) -> dict[str, str]:
    return {
        **_tls(home, "conductor", ports),
        "LISTEN": _at(ports, "conductor"),
        "ROUTER_ADDRESS": _at(ports, "router"),
        "AUDIT_ADDRESS": _at(ports, "audit"),
    }


def _gateway(home: Home, ports: Ports) -> dict[str, str]:
    return {
        **_tls(home, "gateway", ports),
        "LISTEN": _at(ports, "gateway"),
        "TENANTS_FILE": str(home.tenants_file),
        "PLANS_FILE": str(home.plans_file),
        "PINS_FILE": str(home.pins_file),
        "CONDUCTOR_ADDRESS": _at(ports, "conductor"),
        "ROUTER_ADDRESS": _at(ports, "router"),
        "AUDIT_ADDRESS": _at(ports, "audit"),
    }


def _provider_keys(home: Home) -> list[str]:
    """Return the variables that the pool reads keys from: only these, and only to the router."""
    try:
        entries = load_pool(home.pool_file).entries
    except PodiumError:
        return []  # the router itself says what is wrong with the file
    return [key.env for entry in entries for key in entry.keys.values() if key.env is not None]


def _at(ports: Ports, name: str) -> str:
    return f"{HOST}:{ports[name]}"


SERVICES = (
    Service(
        "demo",
        "podium_demo",
        ("demo",),
        "demo",
        "/healthz",
        lambda _home, _ports: {},
        arguments=lambda ports: ["--listen", _at(ports, "demo")],
    ),
    Service(
        "audit", "podium_audit", ("audit", "audit-http", "audit-metrics"), "audit-http", "/readyz", _audit
    ),
    Service(
        "router",
        "podium_router",
        ("router", "router-metrics"),
        "router",
        None,
        _router,
        secrets=_provider_keys,
    ),
    Service(
        "conductor",
        "podium_conductor",
        ("conductor", "conductor-metrics"),
        "conductor",
        None,
        _conductor,
        # Which engine plans is chosen from outside: PODIUM_CONDUCTOR_ENGINE=worker podium up
        secrets=lambda _: variables_of("PODIUM_CONDUCTOR_"),
    ),
    Service("gateway", "podium_gateway", ("gateway", "gateway-metrics"), "gateway", "/readyz", _gateway),
)
"""In the order in which they are stopped last to first: nobody outlives what it calls."""
