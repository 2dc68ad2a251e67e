"""Two replicas of each service as hardened containers, each calling the others through Envoy."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.containers.envoy import Replica, envoy
from tests.containers.laptop import USER
from tests.containers.podman import environment, image, podman
from tests.e2e.replicas import REPLICATED, Replicas
from tests.fakes.ports import free_ports
from tests.fakes.postgres_server import PostgresServer

_PREFIX = "podium-replica-"


@dataclass(slots=True)
class ContainerReplicas(Replicas):
    """They share the machine's network, so that the database on its loopback is in reach."""

    drain_delay_s: float = 2.0
    envoy_ports: dict[str, int] = field(default_factory=dict)
    ops_ports: dict[str, int] = field(default_factory=dict)

    def prepare(self) -> None:
        """Write certificates and configuration, for the containers' user to read."""
        Replicas.prepare(self)
        self.envoy_ports = dict(zip(REPLICATED, free_ports(len(REPLICATED)), strict=True))
        names = [f"{service}{number}" for service in REPLICATED for number in ("", "-2")]
        self.ops_ports = dict(zip(names, free_ports(len(names)), strict=True))
        self._hand_over()

    def start(self, *services: str) -> None:
        """Start a container for each name."""
        self._hand_over()  # what was copied in the meantime, too
        for name in services:
            service = name.partition("-")[0]
            settings = self._environment(name)
            given = [f"--env={key}={value}" for key, value in settings.items() if key.startswith("PODIUM_")]
            program = ["--entrypoint=podium-demo-provider"] if service == "demo" else []
            log = (self.home / f"{name}.log").open("ab")
            self.processes[name] = subprocess.Popen(
                ["podman", "run", "--rm", "--replace", f"--name={_PREFIX}{name}", "--network=host",
                 "--read-only", f"--user={USER}:{USER}", "--cap-drop=ALL", "--security-opt=no-new-privileges",
                 f"--volume={self.home}:{self.home}", *given, *program,
                 image("audit" if service == "demo" else service), *self._arguments(service)],
                env=environment(), stdout=log, stderr=log,
            )  # fmt: skip
            log.close()

    def stop(self) -> None:
        """End everything at once, whatever is left."""
        podman(
            "rm",
            "--force",
            "--ignore",
            "--time=0",
            *(f"{_PREFIX}{name}" for name in self.processes),
            check=False,
        )
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
            process.wait()

    def behind_envoy(self) -> dict[str, list[Replica]]:
        """Return the replicas of each service."""
        return {
            service: [
                Replica(self.ports[service], self.ops_ports[service]),
                Replica(self.second[service], self.ops_ports[f"{service}-2"]),
            ]
            for service in REPLICATED
        }

    def _environment(self, name: str) -> dict[str, str]:
        told = Replicas._environment(self, name)
        service = name.partition("-")[0]
        prefix = f"PODIUM_{service.upper()}_"
        peers = {f"{prefix}{peer.upper()}_ADDRESS": port for peer, port in self.envoy_ports.items()}
        told |= {key: f"127.0.0.1:{port}" for key, port in peers.items() if key in told}
        if name in self.ops_ports:
            told[f"{prefix}OPS_LISTEN"] = f"127.0.0.1:{self.ops_ports[name]}"
        return told

    def _hand_over(self) -> None:
        for path in (self.home, *self.home.rglob("*")):
            os.chown(path, USER, USER)


@asynccontextmanager
async def running_containers(
    home: Path, postgres: PostgresServer, envoy_program: Path
) -> AsyncIterator[ContainerReplicas]:
    """Run everything inside the block."""
    replicas = ContainerReplicas(home, databases=(postgres.new_database(), postgres.new_database()))
    replicas.prepare()
    try:
        with envoy(envoy_program, home, replicas.envoy_ports, replicas.behind_envoy()):
            await replicas.start_all()
            yield replicas
    finally:
        replicas.stop()
