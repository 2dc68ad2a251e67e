"""Gateway, router and audit as they are, over gRPC in one process, between a client and a scripted provider."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from podium.conductor.v1 import conductor_service_pb2_grpc
from podium_core.domain.clock import SystemClock
from podium_core.domain.ids import RandomIds
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.telemetry import configure_telemetry
from podium_gateway.service import Gateway, running_gateway
from podium_gateway.settings import GatewaySettings
from tests.fakes.audit_service import RunningAudit, running_audit
from tests.fakes.router_rig import Rig, router_rig
from tests.fakes.services import ScriptedConductor
from tests.fakes.tls import tls_of
from tests.fakes.upstream import Upstream
from tests.fakes.waiting import PATIENCE_S

URL = "/v1/chat/completions"
_PLAN = "/podium.conductor.v1.ConductorService/Plan"


@dataclass(slots=True)
class Stack:
    """The house, a client in front of it, and the provider behind it."""

    gateway: Gateway
    router: Rig
    audit: RunningAudit
    conductor: ScriptedConductor
    session: aiohttp.ClientSession

    @property
    def upstream(self) -> Upstream:
        """The provider of every worker."""
        return self.router.upstream

    @property
    def sent(self) -> list[dict[str, Any]]:
        """Every body that reached the provider, decoded."""
        return [request.fields for request in self.upstream.requests]

    async def ask(self, text: str = "6 times 7?", **changes: Any) -> tuple[int, Any]:
        """Ask worker `w` and return the status and the decoded answer."""
        async with self.session.post(URL, json=asked(text, **changes)) as response:
            return response.status, await response.json()

    async def stream(self, text: str = "6 times 7?", **changes: Any) -> "Streamed":
        """Ask worker `w` for a stream and return what came."""
        async with self.session.post(URL, json=asked(text, stream=True, **changes)) as response:
            pieces = [piece async for piece in response.content.iter_any()]
            return Streamed(response.status, tuple(pieces))


@dataclass(frozen=True, slots=True)
class Streamed:
    """A streamed answer as it was read, piece by piece."""

    status: int
    pieces: tuple[bytes, ...]

    @property
    def datas(self) -> list[str]:
        """The text of every data event."""
        lines = b"".join(self.pieces).decode().split("\n")
        return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """Every event but [DONE], decoded."""
        return [json.loads(data) for data in self.datas if data != "[DONE]"]

    @property
    def choices(self) -> list[dict[str, Any]]:
        """The choices of all chunks."""
        return [choice for chunk in self.chunks for choice in chunk.get("choices", ())]

    @property
    def text(self) -> str:
        """The answer's text."""
        return "".join(choice["delta"].get("content") or "" for choice in self.choices)

    @property
    def finish_reasons(self) -> list[str]:
        """The finish reasons that are none of null."""
        return [choice["finish_reason"] for choice in self.choices if choice["finish_reason"]]

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The error events."""
        return [chunk["error"] for chunk in self.chunks if "error" in chunk]

    @property
    def is_done(self) -> bool:
        """Whether the stream ended with [DONE]."""
        return self.datas[-1:] == ["[DONE]"]

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The tool calls, put together as the official clients do."""
        calls: dict[int, dict[str, Any]] = {}
        for choice in self.choices:
            for delta in choice["delta"].get("tool_calls", ()):
                call = calls.setdefault(delta["index"], {"id": "", "name": "", "arguments": ""})
                call["id"] = delta.get("id") or call["id"]
                function = delta.get("function", {})
                call["name"] = function.get("name") or call["name"]
                call["arguments"] += function.get("arguments") or ""
        return [calls[index] for index in sorted(calls)]


def asked(text: str = "6 times 7?", **changes: Any) -> dict[str, Any]:
    """Return a request body; None leaves a field out."""
    body = {"model": "worker/w", "messages": [{"role": "user", "content": text}], **changes}
    return {name: value for name, value in body.items() if value is not None}


@asynccontextmanager
async def running_stack(
    tls_dir: Path,
    tmp_path: Path,
    *,
    workers: Mapping[str, Mapping[str, Any]] | None = None,
    router: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Stack]:
    """Run the house; `workers` are the pool by id, each with what differs in its entry of pool.yaml."""
    async with AsyncExitStack() as stack:
        audit = await stack.enter_async_context(running_audit(tmp_path, tls_dir))
        rig = await stack.enter_async_context(
            router_rig(tls_dir, tmp_path, audit_address=audit.address, **(router or {}))
        )
        if workers is not None:
            rig.write_pool(**workers)
        conductor = ScriptedConductor()
        address = await _conductor_address(stack, tls_dir, conductor)
        configured = gateway_settings(
            tls_dir, tmp_path, conductor=address, router=rig.address, audit=audit.address
        )
        clock = SystemClock()
        checked = GatewaySettings.model_validate({**configured, **settings})
        telemetry = configure_telemetry("gateway", checked)
        stack.callback(telemetry.shutdown)
        running = running_gateway(checked, telemetry, clock, RandomIds(clock))
        gateway = await stack.enter_async_context(running)
        headers = {"Authorization": f"Bearer {audit.tokens['key1']}"}
        url = f"http://127.0.0.1:{gateway.port}"
        session = await stack.enter_async_context(aiohttp.ClientSession(url, headers=headers))
        await _ready(session)
        yield Stack(gateway, rig, audit, conductor, session)


async def _conductor_address(stack: AsyncExitStack, tls_dir: Path, conductor: ScriptedConductor) -> str:
    server = GrpcServer(
        listen="127.0.0.1:0", tls=tls_of(tls_dir, "conductor"), permissions={_PLAN: frozenset({"gateway"})}
    )
    conductor_service_pb2_grpc.add_ConductorServiceServicer_to_server(conductor, server.server)
    port = await server.start()
    stack.push_async_callback(server.stop, 0)
    return f"127.0.0.1:{port}"


def gateway_settings(tls_dir: Path, tmp_path: Path, **addresses: str) -> dict[str, Any]:
    """Return a gateway's settings; `addresses` are those of the services behind it, by name."""
    tls = tls_of(tls_dir, "gateway")
    return {
        "tls_cert_file": tls.cert_file,
        "tls_key_file": tls.key_file,
        "tls_ca_file": tls.ca_file,
        "tenants_file": tmp_path / "tenants.yaml",
        "listen": "127.0.0.1:0",
        "pool_refresh_s": 0.2,
        **{f"{name}_address": address for name, address in addresses.items()},
    }


async def _ready(session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await session.get("/v1/models")).status != 200:
            await asyncio.sleep(0.01)
