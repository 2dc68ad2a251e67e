"""One channel to several replicas: calls go round those that serve, and past those that do not."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.settings_base import check_target, target_of
from tests.fakes.echo_service import ONE_TO_MANY, ONE_TO_ONE, Context, EchoService, echo_server
from tests.fakes.name_server import name_server
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S, until


@dataclass
class Replicas:
    """Two servers that answer with their number, and a channel to both."""

    servers: list[GrpcServer] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
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


async def test_a_replica_that_comes_gets_calls_once_a_connection_is_old(tls_dir: Path) -> None:
    async with AsyncExitStack() as stack, name_server("127.0.0.1") as names:
        replicas, port = Replicas(), 0
        for number in range(2):
            server = echo_server(
                tls_of(tls_dir, "router"),
                named(number),
                listen=f"127.0.0.{number + 1}:{port}",
                max_connection_age_s=1.0,
            )
            port = await server.start()
            stack.push_async_callback(server.stop, 0)
        replicas.channel = open_channel(names.target(port), "router", tls_of(tls_dir, "gateway"))
        stack.push_async_callback(replicas.channel.close)
        assert await replicas.asked() == {b"0": 20}
        names.addresses.append("127.0.0.2")
        await replicas.until({b"0", b"1"})
        names.addresses.remove("127.0.0.1")
        await replicas.until({b"1"})


async def test_no_call_fails_while_connections_grow_old_and_replicas_are_replaced(tls_dir: Path) -> None:
    release, is_over, answered = asyncio.Event(), asyncio.Event(), Counter[bytes]()

    async def slowly(request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"begun"
        await release.wait()
        yield b"ended"

    async def started(number: int, port: int = 0) -> tuple[GrpcServer, int]:
        service = EchoService(one_to_one=named(number).one_to_one, one_to_many=slowly)
        listen = f"127.0.0.1:{port}"
        server = echo_server(tls_of(tls_dir, "router"), service, listen=listen, max_connection_age_s=0.3)
        return server, await server.start()

    async def ask_on(channel: Any) -> None:
        while not is_over.is_set():
            answered[await channel.unary_unary(ONE_TO_ONE)(b"who?", timeout=PATIENCE_S)] += 1
            await asyncio.sleep(0)

    servers = [await started(number) for number in range(2)]
    address = ",".join(f"127.0.0.1:{port}" for _, port in servers)
    channel: Any = open_channel(address, "router", tls_of(tls_dir, "gateway"))
    asking = [asyncio.create_task(ask_on(channel)) for _ in range(8)]
    for number, (server, port) in enumerate(servers):
        answered.clear()
        await until(lambda: len(answered) == 2)
        long = [channel.unary_stream(ONE_TO_MANY)(b"", timeout=PATIENCE_S) for _ in range(4)]
        assert [await call.read() for call in long] == [b"begun"] * 4
        await asyncio.sleep(1.0)  # three ages: by then no connection that they run on takes new calls
        release.set()
        assert [await call.read() for call in long] == [b"ended"] * 4
        release.clear()
        await server.leave()
        await server.stop(PATIENCE_S)
        servers[number] = await started(number, port)
    answered.clear()
    await until(lambda: len(answered) == 2)
    is_over.set()
    await asyncio.gather(*asking)
    await channel.close()
    for server, _ in servers:
        await server.stop(0)


async def test_no_call_fails_while_replicas_are_replaced_by_others_elsewhere(tls_dir: Path) -> None:
    """As a cluster does it: one comes, is named, and is ready for a while; then one goes and is named no more."""
    answered, is_over = Counter[bytes](), asyncio.Event()

    async def ask_on(channel: Any) -> None:
        while not is_over.is_set():
            answered[await channel.unary_unary(ONE_TO_ONE)(b"who?", timeout=PATIENCE_S)] += 1
            await asyncio.sleep(0)

    async with AsyncExitStack() as stack, name_server() as names:
        servers, port = [], 0

        async def come(number: int) -> None:
            listen = f"127.0.0.{number + 1}:{port}"
            server = echo_server(
                tls_of(tls_dir, "router"), named(number), listen=listen, max_connection_age_s=0.5
            )
            bound = await server.start()
            servers.append((server, bound))
            names.addresses.append(f"127.0.0.{number + 1}")

        await come(0)
        port = servers[0][1]
        await come(1)
        channel = await stack.enter_async_context(
            open_channel(names.target(port), "router", tls_of(tls_dir, "gateway"))
        )
        asking = [asyncio.create_task(ask_on(channel)) for _ in range(8)]
        for number in (2, 3, 4):
            await come(number)
            await until(partial(answered.get, b"%d" % number))
            server, _ = servers.pop(0)
            names.addresses.pop(0)
            await server.leave(0.1)
            await server.stop(PATIENCE_S)
        answered.clear()
        await until(lambda: len(answered) == 2)
        is_over.set()
        await asyncio.gather(*asking)
        for server, _ in servers:
            await server.stop(0)
    assert set(answered) == {b"3", b"4"}


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
