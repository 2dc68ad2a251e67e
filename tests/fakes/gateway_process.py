"""A gateway in a process of its own, as in service, between a client and a stack's router and audit."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.fakes.ports import free_ports
from tests.fakes.stack import Stack, gateway_settings
from tests.fakes.waiting import PATIENCE_S


@asynccontextmanager
async def gateway_process(stack: Stack, tls_dir: Path, tmp_path: Path) -> AsyncIterator[tuple[int, int]]:
    """Run one more gateway of the house, in its own process as in service; yield its port and process id."""
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
        yield port, process.pid
    finally:
        process.terminate()
        await process.wait()


async def _lists_worker(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientConnectionError:
        return False
