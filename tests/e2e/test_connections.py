"""The services of a whole Podium connect to each other exactly where the chart's network policies let them."""

from pathlib import Path

import aiohttp
import pytest

from tests.chart.network import SERVICE_FLOWS
from tests.e2e.cluster import Cluster

_ESTABLISHED = "01"

pytestmark = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="reads Linux's table of connections"
)


def remote_ports(pid: int) -> set[int]:
    """Return the other ends' ports of every TCP connection that a process has."""
    links = [link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    sockets = {name[len("socket:[") : -1] for name in links if name.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _ESTABLISHED and fields[9] in sockets:
                found.add(int(fields[2].rpartition(":")[2], 16))
    return found


async def test_no_service_connects_where_the_policies_deny_it(podium: Cluster) -> None:
    async with aiohttp.ClientSession(headers=podium.headers) as session:
        for model in ("podium", "podium-fast", "podium-max", "worker/demo-arithmetic"):
            body = {"model": model, "messages": [{"role": "user", "content": "What is 17 * 23?"}]}
            async with session.post(f"{podium.gateway_url}/v1/chat/completions", json=body) as answer:
                assert answer.status == 200, await answer.text()
    by_port = {port: name for name, port in podium.ports.items()}
    seen = {
        (name, by_port[port])
        for name, process in podium.processes.items()
        for port in remote_ports(process.pid)
        if port in by_port
    }
    allowed = {(source, target) for source, target, _ in SERVICE_FLOWS} | {("router", "demo")}
    assert seen <= allowed
    # The conductor notes its model at audit when it starts, and is not told of it here.
    assert seen >= allowed - {("conductor", "audit")}
