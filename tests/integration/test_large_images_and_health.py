"""A complaint about other gateways: images in parallel, and the health check hangs until all are done."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.fakes.ports import free_ports
from tests.fakes.stack import Stack, gateway_settings, running_stack
from tests.fakes.waiting import PATIENCE_S

_ANSWERS = 40
"""At least so many health checks are answered meanwhile; here 300 are. Kept waiting for an image each, or for
all of them, it would be ten or one. How long each takes is `make bench`'s to print.
"""

_SEES: dict[str, dict[str, Any]] = {"w": {"modalities": ["text", "image"]}}


@asynccontextmanager
async def gateway_process(stack: Stack, tls_dir: Path, tmp_path: Path) -> AsyncIterator[int]:
    """Run one more gateway of the house, in its own process as in service; yield its port."""
    addresses = {"router": stack.router.address, "audit": stack.audit.address}
    (port,) = free_ports(1)
    values = {**gateway_settings(tls_dir, tmp_path, **addresses), "listen": f"127.0.0.1:{port}"}
    environment = {f"PODIUM_GATEWAY_{name.upper()}": str(value) for name, value in values.items()}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "podium_gateway", env={"PATH": os.environ["PATH"], **environment}
    )
    try:
        async with (
            aiohttp.ClientSession(headers=stack.session.headers) as session,
            asyncio.timeout(PATIENCE_S),
        ):
            while not await _lists_worker(session, f"http://127.0.0.1:{port}/v1/models/worker/w"):
                await asyncio.sleep(0.05)
        yield port
    finally:
        process.terminate()
        await process.wait()


async def _lists_worker(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientConnectionError:
        return False


async def crowd(port: int, key: str) -> tuple[list[int], int]:
    """Let the crowd in; return its statuses, and how many health checks were answered meanwhile."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.image_crowd", str(port), key, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 2 * PATIENCE_S)
    told = json.loads(out)
    return told["statuses"], told["answers"]


async def test_health_is_answered_at_once_while_ten_large_images_are_in_flight(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with (
        running_stack(tls_dir, tmp_path, workers=_SEES) as stack,
        gateway_process(stack, tls_dir, tmp_path) as port,
    ):
        statuses, answers = await crowd(port, stack.audit.tokens["key1"])
    assert statuses == [200] * 10
    assert answers >= _ANSWERS
