"""An installation with two replicas of each service on PostgreSQL, behind a load balancer."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.identity import TlsFiles
from tests.e2e.cluster import Cluster
from tests.fakes.ports import free_ports
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.tcp_balancer import TcpBalancer, tcp_balancer
from tests.fakes.waiting import PATIENCE_S

REPLICATED = ("audit", "router", "conductor", "gateway")
_SETTLED_S = 2.0
"""As a cluster's `minReadySeconds`: callers try an address again within a second."""
_WAITS = {
    "gateway": {"AUDIT_WAIT_S": "30", "SEAL_WAIT_S": "30", "PLAN_TIMEOUT_S": "60", "LEASE_S": "60"},
    "router": {"PERMIT_TIMEOUT_S": "30"},
    "audit": {"COMMIT_WAIT_S": "20"},
}
"""Who waits is answered in the end, however busy the machine: that these waits have ends is tried elsewhere."""


@dataclass(slots=True)
class Replicas(Cluster):
    """The first replica of a service has its name, the second one's is `<service>-2`."""

    databases: tuple[str, str] = ("", "")
    """URLs of the log's and of the keys' database."""
    max_connection_age_s: float = 1.0
    drain_delay_s: float = 0.5
    second: dict[str, int] = field(default_factory=dict)

    def prepare(self) -> None:
        """Write certificates and configuration."""
        Cluster.prepare(self)
        names = (*REPLICATED, "audit_http")
        self.second = dict(zip(names, free_ports(len(names)), strict=True))

    async def start_all(self) -> None:
        """Start everything; the second audit has the first one's keys."""
        self.start("demo", "audit")
        await self.served("audit")
        shutil.copytree(self.home / "audit-keys", self.home / "audit-keys-2")
        (self.home / "audit-keys-2" / "checkpoint.note").unlink(missing_ok=True)
        self.start("audit-2", *(f"{name}{number}" for name in REPLICATED[1:] for number in ("", "-2")))
        for name in self.processes:
            await self.served(name)

    async def restart(self, name: str, how: signal.Signals = signal.SIGTERM) -> int:
        """Stop a replica as a cluster does, start it again and let it settle; return its exit code."""
        process = self.processes[name]
        process.send_signal(how)
        code = await asyncio.to_thread(process.wait, PATIENCE_S)
        self.start(name)
        await self.served(name)
        await asyncio.sleep(_SETTLED_S)
        return code

    async def served(self, name: str) -> None:
        """Wait until a replica says that it serves."""
        service, _, number = name.partition("-")
        port = (self.second if number else self.ports)[service]
        async with asyncio.timeout(2 * PATIENCE_S):
            while not await self._serves(service, port):
                assert self.processes[name].poll() is None, self.log_of(name)
                await asyncio.sleep(0.05)

    async def _is_ready(self, port: int) -> bool:
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{port}/readyz") as told,
            ):
                return told.status == 200
        except aiohttp.ClientError:
            return False

    async def _serves(self, service: str, port: int) -> bool:
        if service == "gateway":
            return await self._is_ready(port)
        if service == "demo":
            return True
        tls = self.home / "tls"
        files = TlsFiles(tls / "cli" / "cert.pem", tls / "cli" / "key.pem", tls / "ca.pem")
        async with open_channel(f"127.0.0.1:{port}", service, files) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            told = await stub.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S, wait_for_ready=True)
        return bool(told.status == health_pb2.HealthCheckResponse.SERVING)

    def _environment(self, name: str) -> dict[str, str]:
        service, _, number = name.partition("-")
        environment = Cluster._environment(self, service)
        if service == "demo":
            return environment
        prefix = f"PODIUM_{service.upper()}_"
        for peer in ("conductor", "router", "audit"):
            key = f"{prefix}{peer.upper()}_ADDRESS"
            if key in environment:
                environment[key] = f"127.0.0.1:{self.ports[peer]},127.0.0.1:{self.second[peer]}"
        own = {"DRAIN_DELAY_S": str(self.drain_delay_s), **_WAITS.get(service, {})}
        if service != "gateway":
            own["MAX_CONNECTION_AGE_S"] = str(self.max_connection_age_s)
        if number:
            own["LISTEN"] = f"127.0.0.1:{self.second[service]}"
        if service == "audit":
            own["DATABASE_URL"], own["KEY_DATABASE_URL"] = self.databases
            own["DATA_DIR"] = str(self.home / f"{name}-data")
            if number:
                own["KEYS_DIR"] = str(self.home / "audit-keys-2")
                own["HTTP_LISTEN"] = f"127.0.0.1:{self.second['audit_http']}"
        return {**environment, **{f"{prefix}{key}": value for key, value in own.items()}}


@asynccontextmanager
async def running_replicas(
    home: Path, postgres: PostgresServer
) -> AsyncIterator[tuple[Replicas, TcpBalancer]]:
    """Run everything inside the block."""
    replicas = Replicas(home, databases=(postgres.new_database(), postgres.new_database()))
    replicas.prepare()
    try:
        await replicas.start_all()
        async with tcp_balancer(replicas.ports["gateway"], replicas.second["gateway"]) as balancer:
            yield replicas, balancer
    finally:
        replicas.stop()
