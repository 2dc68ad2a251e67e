"""A name server on loopback that knows one name, and as many addresses for it as the test says."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

_HEADER_BYTES = 12
_ANSWERED, _OF_ADDRESS = b"\x81\x80", b"\x00\x01\x00\x01"
_NAME_OF_QUESTION = b"\xc0\x0c"
_TTL_S = 0


@dataclass(slots=True)
class NameServer(asyncio.DatagramProtocol):
    """Answers each question for an IPv4 address with `addresses`, and every other one with nothing."""

    addresses: list[str] = field(default_factory=list)
    port: int = 0
    questions: int = 0
    _transport: asyncio.DatagramTransport | None = None

    def target(self, port: int) -> str:
        """Return what a channel is opened to that asks here."""
        return f"dns://127.0.0.1:{self.port}/replicas.podium.test:{port}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer."""
        self.questions += 1
        end = data.index(b"\x00", _HEADER_BYTES) + 5
        question = data[_HEADER_BYTES:end]
        found = self.addresses if question.endswith(_OF_ADDRESS) else []
        records = b"".join(
            _NAME_OF_QUESTION + _OF_ADDRESS + _TTL_S.to_bytes(4) + (4).to_bytes(2) + socket.inet_aton(address)
            for address in found
        )
        counts = (1).to_bytes(2) + len(found).to_bytes(2) + bytes(4)
        assert self._transport is not None
        self._transport.sendto(data[:2] + _ANSWERED + counts + question + records, addr)


@asynccontextmanager
async def name_server(*addresses: str) -> AsyncIterator[NameServer]:
    """Serve inside the block."""
    loop = asyncio.get_running_loop()
    server = NameServer(list(addresses))
    transport, _ = await loop.create_datagram_endpoint(lambda: server, ("127.0.0.1", 0))
    server.port = transport.get_extra_info("sockname")[1]
    try:
        yield server
    finally:
        transport.close()
