"""One channel to several replicas: calls go round those that serve, and past those that do not."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.settings_base import check_target, target_of
from tests.fakes.echo_service import ONE_TO_ONE, Context, EchoService, echo_server
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S


@dataclass
class Replicas:
    """Two servers that answer with their number, and a channel to both."""

    servers: list[GrpcServer]
    ports: list[int]
    channel: grpc.aio.Channel = field(init=False)

    async def ask(self) -> bytes:
        call: Any = self.channel.unary_unary(ONE_TO_ONE)
        answer: bytes = await call(b"who?", timeout=PATIENCE_S, wait_for_ready=True)
        return answer

    async def asked(self, times: int = 20) -> Counter[bytes]:
        return Counter([await self.ask() for _ in range(times)])

    async def until(self, answering: set[bytes]) -> None:
        """Ask until nobody else answers."""
        async with asyncio.timeout(PATIENCE_S):
            while set(await self.asked(8)) != answering:
                await asyncio.sleep(0.02)


def named(number: int) -> EchoService:
    async def one_to_one(request: bytes, context: Context) -> bytes:
        return b"%d" % number

    return EchoService(one_to_one=one_to_one)


@pytest.fixture
async def replicas(tls_dir: Path) -> AsyncIterator[Replicas]:
    servers = [echo_server(tls_of(tls_dir, "router"), named(number)) for number in range(2)]
    made = Replicas(servers, [await server.start() for server in servers])
    async with AsyncExitStack() as stack:
        for server in servers:
            stack.push_async_callback(server.stop, 0)
        address = ",".join(f"127.0.0.1:{port}" for port in made.ports)
        made.channel = open_channel(address, "router", tls_of(tls_dir, "gateway"))
        stack.push_async_callback(made.channel.close)
        await made.until({b"0", b"1"})
        yield made


async def test_calls_go_round_all_replicas(replicas: Replicas) -> None:
    assert await replicas.asked() == {b"0": 10, b"1": 10}


async def test_a_replica_that_stops_is_left_out(replicas: Replicas) -> None:
    await replicas.servers[0].stop(0)
    await replicas.until({b"1"})
    assert await replicas.asked() == {b"1": 20}


async def test_a_replica_that_says_it_does_not_serve_is_left_out_until_it_does(replicas: Replicas) -> None:
    replicas.servers[1].set_serving(False)
    await replicas.until({b"0"})
    replicas.servers[1].set_serving(True)
    await replicas.until({b"0", b"1"})


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("audit.podium.svc:7053", "audit.podium.svc:7053"),
        ("10.0.0.1:7053,10.0.0.2:7053", "ipv4:10.0.0.1:7053,10.0.0.2:7053"),
        ("[::1]:7053,[::2]:7053", "ipv6:[::1]:7053,[::2]:7053"),
    ],
)
def test_an_address_may_stand_for_several(address: str, target: str) -> None:
    assert target_of(check_target(address)) == target


@pytest.mark.parametrize(
    "address",
    ["a:1,b:2", "10.0.0.1:1,b:2", "10.0.0.1:1,[::1]:2", "10.0.0.1:1,", "10.0.0.1:1, 10.0.0.2:1", ""],
)
def test_a_list_that_no_channel_can_be_opened_to_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"address"):
        check_target(address)
