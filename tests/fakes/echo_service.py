"""A servicer of raw bytes whose four methods each do what the test hands them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc

from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.identity import TlsFiles

SERVICE = "podium.test.v1.EchoService"
ONE_TO_ONE = f"/{SERVICE}/OneToOne"
ONE_TO_MANY = f"/{SERVICE}/OneToMany"
MANY_TO_ONE = f"/{SERVICE}/ManyToOne"
MANY_TO_MANY = f"/{SERVICE}/ManyToMany"
METHODS = (ONE_TO_ONE, ONE_TO_MANY, MANY_TO_ONE, MANY_TO_MANY)

Context = grpc.aio.ServicerContext[bytes, bytes]


async def _echo(request: bytes, context: Context) -> bytes:
    return request


async def _echo_each(request: bytes, context: Context) -> AsyncIterator[bytes]:
    for byte in request:
        yield bytes([byte])


async def _join(requests: AsyncIterator[bytes], context: Context) -> bytes:
    return b"".join([request async for request in requests])


async def _pass_on(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request


@dataclass
class EchoService:
    """What each method does; replace a field to change it before the server starts."""

    one_to_one: Callable[[bytes, Context], Awaitable[bytes]] = _echo
    one_to_many: Callable[[bytes, Context], AsyncIterator[bytes]] = _echo_each
    many_to_one: Callable[[AsyncIterator[bytes], Context], Awaitable[bytes]] = _join
    many_to_many: Callable[[AsyncIterator[bytes], Context], AsyncIterator[bytes]] = _pass_on

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register the methods."""
        handlers: dict[str, Any] = {
            "OneToOne": grpc.unary_unary_rpc_method_handler(self.one_to_one),
            "OneToMany": grpc.unary_stream_rpc_method_handler(self.one_to_many),
            "ManyToOne": grpc.stream_unary_rpc_method_handler(self.many_to_one),
            "ManyToMany": grpc.stream_stream_rpc_method_handler(self.many_to_many),
        }
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])


class Peer:
    """A channel to an echo server; calls time out after five seconds."""

    def __init__(self, port: int, tls: TlsFiles, service: str = "router", timeout_s: float = 60.0) -> None:
        self.channel: Any = open_channel(f"127.0.0.1:{port}", service, tls)
        self._timeout_s = timeout_s

    async def one_to_one(
        self, request: bytes = b"hello", metadata: tuple[tuple[str, str], ...] = ()
    ) -> bytes:
        call = self.channel.unary_unary(ONE_TO_ONE)
        answer: bytes = await call(request, timeout=self._timeout_s, metadata=metadata)
        return answer

    def one_to_many(self, request: bytes = b"hello") -> Any:
        return self.channel.unary_stream(ONE_TO_MANY)(request, timeout=self._timeout_s)

    async def many_to_one(self, *requests: bytes) -> bytes:
        answer: bytes = await self.channel.stream_unary(MANY_TO_ONE)(iter(requests), timeout=self._timeout_s)
        return answer

    def many_to_many(self, *requests: bytes) -> Any:
        return self.channel.stream_stream(MANY_TO_MANY)(iter(requests), timeout=self._timeout_s)


def echo_server(
    tls: TlsFiles,
    service: EchoService | None = None,
    callers: frozenset[str] = frozenset({"gateway"}),
    *,
    listen: str = "127.0.0.1:0",
    **options: Any,
) -> GrpcServer:
    """Return a server of all four methods, open to `callers`; not yet started."""
    server = GrpcServer(listen=listen, tls=tls, permissions=dict.fromkeys(METHODS, callers), **options)
    (service or EchoService()).add_to(server.server)
    return server
