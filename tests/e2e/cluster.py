"""A whole Podium on loopback: real processes that a test can kill and start again one by one."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import aiohttp

from podium_cli.local_ca import create_local_ca
from podium_core.config.tenants import new_key
from tests.fakes.ports import free_ports
from tests.fakes.waiting import PATIENCE_S

SERVICES = ("demo", "audit", "router", "conductor", "gateway")
PORTS = (*SERVICES, "audit_http")
_MODULES = {"demo": "podium_demo", **{name: f"podium_{name}" for name in SERVICES if name != "demo"}}


@dataclass(slots=True)
class Cluster:
    """One installation in `home`. `extra` adds environment variables per service; an empty one takes it away."""

    home: Path
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    budget_usd_per_month: str = "1000.00"
    more_workers: str = ""
    """Further entries of pool.yaml."""
    ports: dict[str, int] = field(default_factory=dict)
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    api_key: str = ""

    @property
    def gateway_url(self) -> str:
        """Where clients go."""
        return f"http://{self.host('gateway')}:{self.ports['gateway']}"

    @property
    def audit_url(self) -> str:
        """Where auditors go."""
        return f"http://{self.host('audit_http')}:{self.ports['audit_http']}"

    @property
    def demo_url(self) -> str:
        """Where the demo provider listens."""
        return f"http://{self.host('demo')}:{self.ports['demo']}"

    @property
    def headers(self) -> dict[str, str]:
        """The demo tenant's credentials."""
        return {"Authorization": f"Bearer {self.api_key}"}

    @property
    def database(self) -> Path:
        """Directory of the log's database."""
        return self.home / "audit-data"

    def prepare(self) -> None:
        """Write certificates and configuration."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        create_local_ca(self.home / "tls", ("gateway", "conductor", "router", "audit", "cli"))
        self.api_key, digest = new_key("e2e")
        tenants = {
            "tenants": [
                {
                    "id": "demo",
                    "budget_usd_per_month": self.budget_usd_per_month,
                    "keys": [{"id": "e2e", "sha256": digest, "roles": ["client", "auditor"]}],
                }
            ]
        }
        (self.home / "tenants.yaml").write_text(json.dumps(tenants))
        template = resources.files("podium_demo").joinpath("pool.demo.yaml").read_text()
        (self.home / "pool.yaml").write_text(
            template.replace("{base_url}", f"{self.demo_url}/v1") + self.more_workers
        )

    def start(self, *services: str) -> None:
        """Start the named services, or all of them."""
        for service in services or SERVICES:
            log = (self.home / f"{service}.log").open("ab")
            self.processes[service] = subprocess.Popen(
                [
                    *self.within(service),
                    sys.executable,
                    "-m",
                    _MODULES[service.partition("-")[0]],
                    *self._arguments(service),
                ],
                env=self._environment(service),
                stdout=log,
                stderr=log,
                cwd=self.home,
            )
            log.close()

    def within(self, service: str) -> tuple[str, ...]:
        """Return the command before a service's own, for where it must run."""
        del service
        return ()

    def host(self, service: str) -> str:
        """Return the IP address of a service."""
        del service
        return "127.0.0.1"

    def start_replica(self, **settings: str) -> str:
        """Start a second gateway with further settings; return its URL. It may take a moment to be ready."""
        (port,) = free_ports(1)
        own = {f"PODIUM_GATEWAY_{name.upper()}": value for name, value in settings.items()}
        with (self.home / "replica.log").open("ab") as log:
            self.processes["replica"] = subprocess.Popen(
                [sys.executable, "-m", _MODULES["gateway"]],
                env={**self._environment("gateway"), "PODIUM_GATEWAY_LISTEN": f"127.0.0.1:{port}", **own},
                stdout=log,
                stderr=log,
                cwd=self.home,
            )
        return f"http://127.0.0.1:{port}"

    def kill(self, service: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal a service and wait until it is gone."""
        process = self.processes[service]
        process.send_signal(number)
        process.wait(timeout=PATIENCE_S)

    def stop(self) -> None:
        """End everything."""
        for process in reversed(self.processes.values()):
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    async def wait_ready(self, timeout_s: float = 2 * PATIENCE_S) -> None:
        """Wait until the gateway says that everything is there."""
        async with asyncio.timeout(timeout_s), aiohttp.ClientSession() as session:
            while True:
                dead = [name for name, p in self.processes.items() if p.poll() is not None]
                assert not dead, f"{dead} ended: {self.log_of(dead[0])}"
                for url in (f"{self.gateway_url}/readyz", f"{self.audit_url}/readyz"):
                    try:
                        async with session.get(url) as answer:
                            if answer.status != 200 or "degraded" in await answer.text():
                                break
                    except aiohttp.ClientError:
                        break
                else:
                    return
                await asyncio.sleep(0.05)

    def log_of(self, service: str) -> str:
        """Return the end of a service's log."""
        return (self.home / f"{service}.log").read_text(errors="replace")[-4_000:]

    def provider_requests(self) -> list[dict[str, Any]]:
        """Return the demo provider's own request log."""
        path = self.home / "requests.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _arguments(self, service: str) -> list[str]:
        if service != "demo":
            return []
        return [
            "--listen", f"{self.host('demo')}:{self.ports['demo']}",
            "--request-log", str(self.home / "requests.jsonl"),
            "--allow-faults",
        ]  # fmt: skip

    def _environment(self, service: str) -> dict[str, str]:
        address = {name: f"{self.host(name)}:{port}" for name, port in self.ports.items()}
        tls = self.home / "tls" / service
        own = {
            "LISTEN": address[service],
            "TLS_CERT_FILE": str(tls / "cert.pem"),
            "TLS_KEY_FILE": str(tls / "key.pem"),
            "TLS_CA_FILE": str(self.home / "tls" / "ca.pem"),
        }
        peers = {f"{name.upper()}_ADDRESS": address[name] for name in ("conductor", "router", "audit")}
        tenants = {"TENANTS_FILE": str(self.home / "tenants.yaml")}
        settings = {
            "demo": {},
            "audit": {
                **own,
                **tenants,
                "HTTP_LISTEN": address["audit_http"],
                "DATA_DIR": str(self.database),
                "KEYS_DIR": str(self.home / "audit-keys"),
            },
            "router": {**own, "AUDIT_ADDRESS": address["audit"], "POOL_FILE": str(self.home / "pool.yaml")},
            "conductor": {**own, "ROUTER_ADDRESS": address["router"]},
            "gateway": {**own, **tenants, **peers},
        }[service]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PODIUM_", "OTEL_"))}
        named = {f"PODIUM_{service.upper()}_{key}": value for key, value in settings.items()}
        extra = self.extra.get(service, {})
        return {name: value for name, value in {**kept, **named, **extra}.items() if value}


@contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Prepare and start a cluster; stop it at the end."""
    cluster.prepare()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
