"""A whole installation gets new certificates of a new authority under load, and no question fails."""

import asyncio
import os
from collections import Counter
from pathlib import Path

import aiohttp
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from podium_cli.local_ca import CA_FILE, create_local_ca, service_files
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.identity import SERVICES
from tests.e2e.cluster import Cluster, running
from tests.fakes.waiting import PATIENCE_S

pytestmark = pytest.mark.slow

QUESTION = {"model": "podium", "messages": [{"role": "user", "content": "What is 17 * 23?"}]}
SETTLED_S = 3.0
"""In which every service has looked at its files, since every one is called."""
YOUNG = {
    service: {f"PODIUM_{service.upper()}_MAX_CONNECTION_AGE_S": "1"}
    for service in ("audit", "router", "conductor")
}
"""Connections end so often that every certificate is needed."""


def replace(path: Path, content: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(content)
    os.replace(new, path)  # noqa: PTH105 - as editors and kubelets do


async def state(podium: Cluster, service: str, tls_dir: Path) -> object:
    """What a service says to somebody with certificates of `tls_dir`."""
    address = f"127.0.0.1:{podium.ports[service]}"
    async with open_channel(address, service, service_files(tls_dir, "cli")) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            told = await stub.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return told.status


async def test_a_new_authority_takes_over_under_load(tmp_path: Path) -> None:
    podium, is_over, statuses = Cluster(tmp_path, YOUNG), asyncio.Event(), Counter[int]()
    old, new = tmp_path / "tls", tmp_path / "tls-new"

    async def keep_asking(session: aiohttp.ClientSession) -> None:
        while not is_over.is_set():
            async with session.post(f"{podium.gateway_url}/v1/chat/completions", json=QUESTION) as answer:
                statuses[answer.status] += 1
            await asyncio.sleep(0.1)

    with running(podium):
        await podium.wait_ready()
        create_local_ca(new, SERVICES)
        former = {path: path.read_bytes() for path in old.rglob("*.pem")}
        async with aiohttp.ClientSession(headers=podium.headers) as session:
            asking = [asyncio.create_task(keep_asking(session)) for _ in range(3)]
            replace(old / CA_FILE, former[old / CA_FILE] + (new / CA_FILE).read_bytes())
            await asyncio.sleep(SETTLED_S)
            for service in SERVICES:
                now, then = service_files(old, service), service_files(new, service)
                replace(now.key_file, then.key_file.read_bytes())
                replace(now.cert_file, then.cert_file.read_bytes())
            await asyncio.sleep(SETTLED_S)
            replace(old / CA_FILE, (new / CA_FILE).read_bytes())
            await asyncio.sleep(SETTLED_S)
            is_over.set()
            await asyncio.gather(*asking)
        assert set(statuses) == {200}, statuses
        for path, content in former.items():
            left = tmp_path / "left" / path.relative_to(old)
            left.parent.mkdir(parents=True, exist_ok=True)
            left.write_bytes(content)
        for service in ("audit", "router", "conductor"):
            assert await state(podium, service, new) == health_pb2.HealthCheckResponse.SERVING
            assert await state(podium, service, tmp_path / "left") == grpc.StatusCode.UNAVAILABLE
        assert all(process.poll() is None for process in podium.processes.values())
