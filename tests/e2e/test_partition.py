"""Audit cut off by the network, each service in a namespace of its own: nothing is dispatched, and it heals."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import SERVICES, Cluster, running
from tests.e2e.namespaces import Namespaces, namespaces
from tests.e2e.test_kill import every_run_ended, leaves_in
from tests.fakes.waiting import PATIENCE_S

pytestmark = pytest.mark.slow

CLIENT = """
import sys, urllib.error, urllib.request
url, key, body = sys.argv[1:]
data = body.encode() or None
headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
try:
    answer = urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60)
except urllib.error.HTTPError as error:
    answer = error
except OSError:
    sys.exit("0 {}")
print(answer.status, answer.read().decode())
"""
QUESTION = {"model": "podium", "messages": [{"role": "user", "content": "What is 17 * 23?"}]}
TIMES = {
    "gateway": {
        "PODIUM_GATEWAY_AUDIT_WAIT_S": "2",
        "PODIUM_GATEWAY_SEAL_WAIT_S": "2",
        "PODIUM_GATEWAY_LEASE_S": "3",
    }
}


@dataclass(slots=True)
class Networked(Cluster):
    """Every service with an address of its own."""

    network: Namespaces = field(default_factory=lambda: Namespaces(SERVICES))

    def within(self, service: str) -> tuple[str, ...]:
        return self.network.within(service)

    def host(self, service: str) -> str:
        return self.network.addresses[service.removesuffix("_http")]

    def _arguments(self, service: str) -> list[str]:
        given = Cluster._arguments(self, service)
        return [*given, "--allow-network"] if service == "demo" else given

    async def ask(self, path: str = "/v1/chat/completions", body: object = QUESTION) -> tuple[int, Any]:
        """Ask from where the gateway is, which no cut touches; 0 is no answer."""
        text = json.dumps(body) if body else ""
        command = [*self.within("gateway"), sys.executable, "-c", CLIENT]
        done = await asyncio.to_thread(
            subprocess.run,
            [*command, f"{self.gateway_url}{path}", self.api_key, text],
            capture_output=True,
            text=True,
            check=False,
        )
        status, _, page = (done.stdout or "0 {}").partition(" ")
        return int(status), json.loads(page)

    async def answers(self) -> Any:
        """Ask until there is an answer."""
        async with asyncio.timeout(2 * PATIENCE_S):
            while (asked := await self.ask())[0] != 200:
                assert all(process.poll() is None for process in self.processes.values()), asked
                await asyncio.sleep(0.2)
        return asked[1]


def unplugged(network: Namespaces) -> Callable[[], None]:
    network.set_link("audit", "down")
    return lambda: network.set_link("audit", "up")


def mute(network: Namespaces) -> Callable[[], None]:
    """Audit hears everything, and what it commits nobody hears."""
    rule = ("OUTPUT", "--out-interface", "eth0", "--jump", "DROP")
    network.filter("audit", "--append", *rule)
    return lambda: network.filter("audit", "--delete", *rule)


def deaf(network: Namespaces) -> Callable[[], None]:
    rule = ("INPUT", "--in-interface", "eth0", "--jump", "DROP")
    network.filter("audit", "--append", *rule)
    return lambda: network.filter("audit", "--delete", *rule)


def resetting(network: Namespaces) -> Callable[[], None]:
    rule = (
        "INPUT",
        "--in-interface",
        "eth0",
        "--protocol",
        "tcp",
        "--jump",
        "REJECT",
        "--reject-with",
        "tcp-reset",
    )
    network.filter("audit", "--append", *rule)
    return lambda: network.filter("audit", "--delete", *rule)


def hidden_from_the_router(network: Namespaces) -> Callable[[], None]:
    """Runs are opened; what could perform them gets no permit."""
    rule = ("INPUT", "--source", network.addresses["router"], "--jump", "DROP")
    network.filter("audit", "--append", *rule)
    return lambda: network.filter("audit", "--delete", *rule)


@pytest.mark.parametrize(
    ("cut", "readyz"),
    [(unplugged, 503), (mute, 503), (deaf, 503), (resetting, 503), (hidden_from_the_router, 200)],
)
async def test_audit_unreachable_means_no_dispatch_and_heals_without_a_restart(
    cut: Callable[[Namespaces], Callable[[], None]], readyz: int, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        network = stack.enter_context(namespaces(*SERVICES))
        podium = Networked(tmp_path, TIMES, network=network)
        stack.enter_context(running(podium))
        assert (await podium.answers())["choices"][0]["message"]["content"]
        before = len(podium.provider_requests())
        assert before > 0
        heal = cut(network)
        for status, page in await asyncio.gather(*(podium.ask() for _ in range(4))):
            assert (status, page["error"]["type"]) == (503, "server_error"), page
        assert (await podium.ask("/readyz", None))[0] == readyz
        assert len(podium.provider_requests()) == before
        heal()
        await podium.answers()
        assert all(process.poll() is None for process in podium.processes.values())
        await every_run_ended(podium)
        begun = [leaf["facts"]["attempt_id"] for leaf in leaves_in(podium) if leaf["type"] == "attempt_begun"]
        assert {request["attempt_id"] for request in podium.provider_requests()} <= set(begun)
