"""The audit service as a process of its own, which a test may kill, starve and start again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import connect
from typing import Any

import aiohttp
import psycopg
from pydantic import SecretStr

from podium.audit.v1 import audit_service_pb2_grpc
from podium_core.runtime.grpc_client import open_channel
from tests.fakes.audit_service import settings_for
from tests.fakes.ports import free_ports
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S

ALL_LEAVES = "SELECT data FROM leaves ORDER BY leaf_index"


@dataclass(slots=True)
class AuditProcess:
    """One installation; `changes` are settings."""

    home: Path
    tls_dir: Path
    changes: dict[str, Any] = field(default_factory=dict)
    ports: Sequence[int] = field(default_factory=lambda: free_ports(2))
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        """Where people read."""
        return f"http://127.0.0.1:{self.ports[1]}"

    @property
    def database(self) -> Path:
        """The log's file."""
        return self.home / "data" / "log.db"

    @property
    def pid(self) -> int:
        """The process."""
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Start the process; it may take a moment until it answers."""
        settings = settings_for(self.home, self.tls_dir, **self.changes)
        values = settings.model_dump(exclude_unset=True) | {
            "listen": f"127.0.0.1:{self.ports[0]}",
            "http_listen": f"127.0.0.1:{self.ports[1]}",
        }
        named = {
            f"PODIUM_AUDIT_{name.upper()}": value.get_secret_value()
            if isinstance(value, SecretStr)
            else str(value)
            for name, value in values.items()
        }
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PODIUM_", "OTEL_"))
        }
        with (self.home / "audit.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "podium_audit"], env={**kept, **named}, stdout=log, stderr=log
            )

    async def ready(self, status: int = 200) -> None:
        """Wait until /readyz answers with `status`."""
        async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as session:
            while True:
                assert self.process is not None
                assert self.process.poll() is None, self.log_text()
                try:
                    async with session.get(f"{self.url}/readyz") as answer:
                        if answer.status == status:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.02)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Signal the process and wait for its end; return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def stub(self, service: str) -> tuple[Any, Any]:
        """Return a channel of its own and its stub."""
        channel = open_channel(f"127.0.0.1:{self.ports[0]}", "audit", tls_of(self.tls_dir, service))
        return channel, audit_service_pb2_grpc.AuditServiceStub(channel)

    def log_text(self) -> str:
        """Return what the process wrote to its log."""
        return (self.home / "audit.log").read_text()

    def leaves(self) -> list[bytes]:
        """Read every leaf past the service."""
        return [row[0] for row in self.rows(ALL_LEAVES)]

    def records(self) -> list[dict[str, Any]]:
        """Read every record past the service."""
        return [json.loads(leaf) for leaf in self.leaves()]

    def rows(self, query: str) -> list[Any]:
        """Ask the database itself."""
        return self.rows_at_once(query)[0]

    def rows_at_once(self, *queries: str) -> list[list[Any]]:
        """Ask the database itself, for one moment: the service goes on writing meanwhile."""
        if url := self.changes.get("database_url"):
            with psycopg.connect(url) as shared:
                shared.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                return [shared.execute(query).fetchall() for query in queries]
        with closing(connect(f"file:{self.database}?mode=ro", uri=True)) as database:
            database.execute("BEGIN")
            return [database.execute(query).fetchall() for query in queries]


@asynccontextmanager
async def audit_process(home: Path, tls_dir: Path, **changes: Any) -> AsyncIterator[AuditProcess]:
    """Start a process and stop it at the end."""
    made = AuditProcess(home, tls_dir, changes)
    made.start()
    try:
        await made.ready()
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.kill(signal.SIGTERM)
