"""A load balancer for TCP, as a cluster's: new connections go round the backends that say they are ready."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

_LOOK_EVERY_S = 0.05
_CHUNK_BYTES = 64 * 1024
_READY = b"GET /readyz HTTP/1.0\r\n\r\n"


@dataclass(slots=True)
class TcpBalancer:
    """Passes bytes through and understands none; `ready` are the ports that new connections go to."""

    backends: Sequence[int]
    port: int = 0
    ready: list[int] = field(default_factory=list)
    _turns: "count[int]" = field(default_factory=count)
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    async def look(self) -> None:
        """Ask who is ready, again and again."""
        while True:
            found = await asyncio.gather(*map(_is_ready, self.backends))
            self.ready = [port for port, is_ready in zip(self.backends, found, strict=True) if is_ready]
            await asyncio.sleep(_LOOK_EVERY_S)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            port = self.ready[next(self._turns) % len(self.ready)]
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_carry(reader, there_writer), _carry(there_reader, writer))
        finally:
            writer.close()
            self._open.discard(task)

    async def close(self) -> None:
        """Cut every connection."""
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(set(self._open))


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _is_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return False
    try:
        writer.write(_READY)
        return b" 200 " in await reader.readline()
    except ConnectionError:
        return False
    finally:
        writer.close()


@asynccontextmanager
async def tcp_balancer(*backends: int) -> AsyncIterator[TcpBalancer]:
    """Serve inside the block."""
    balancer = TcpBalancer(backends)
    server = await asyncio.start_server(balancer.serve, "127.0.0.1", 0)
    balancer.port = server.sockets[0].getsockname()[1]
    looking = asyncio.create_task(balancer.look())
    try:
        yield balancer
    finally:
        looking.cancel()
        server.close()
        await balancer.close()
