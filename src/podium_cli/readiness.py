"""Waits until services answer: HTTP readiness where there is HTTP, gRPC health over mutual TLS elsewhere."""

import asyncio
from collections.abc import Callable, Iterable

import aiohttp
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from podium_cli.home import HOST, Home
from podium_cli.local_ca import service_files
from podium_cli.services import Ports, Service
from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError
from podium_core.runtime.grpc_client import open_channel

_PROBE_S = 2.0
_PAUSE_S = 0.1
_NANOS = 1_000_000_000


async def is_ready(service: Service, home: Home, ports: Ports) -> bool:
    """Ask one service whether it takes calls now."""
    port = ports[service.ready_port]
    if service.ready_path is None:
        return await _grpc_ready(service.name, f"{HOST}:{port}", home)
    return await _http_ready(f"http://{HOST}:{port}{service.ready_path}")


async def wait_ready(
    services: Iterable[Service],
    home: Home,
    ports: Ports,
    *,
    clock: Clock,
    timeout_s: float,
    is_dead: Callable[[Service], bool],
    on_ready: Callable[[Service], None],
) -> list[Service]:
    """Wait until all are ready, one has died, or the time is up; return those that are not ready."""
    end_ns = clock.monotonic_ns() + int(timeout_s * _NANOS)
    waiting = list(services)
    while waiting:
        if any(is_dead(service) for service in waiting) or clock.monotonic_ns() > end_ns:
            return waiting
        answers = await asyncio.gather(*(is_ready(service, home, ports) for service in waiting))
        for service, ready in zip(tuple(waiting), answers, strict=True):
            if ready:
                waiting.remove(service)
                on_ready(service)
        if waiting:
            await asyncio.sleep(_PAUSE_S)
    return []


async def _http_ready(url: str) -> bool:
    timeout = aiohttp.ClientTimeout(total=_PROBE_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
            return response.ok
    except (aiohttp.ClientError, TimeoutError):
        return False


async def _grpc_ready(name: str, address: str, home: Home) -> bool:
    try:
        async with open_channel(address, name, service_files(home.tls_dir, "cli")) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=_PROBE_S)
    except (grpc.aio.AioRpcError, PodiumError):
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
