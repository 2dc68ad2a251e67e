"""A channel that connects anew once its client's certificate was renewed on disk.

gRPC's Python binds a channel to one certificate for ever. So there is one channel after the other behind this
one: new calls go to the newest, those that run end where they began.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Self

import grpc

from podium_core.runtime.live_tls import LiveTls, Pems

_LOOK_EVERY_S: Final = 1.0
"""At most so often files are looked at: a call takes microseconds of ours, three looks would be as much."""


class RenewingChannel(grpc.aio.Channel):
    """Used as any channel, from one event loop."""

    def __init__(self, connect: Callable[[Pems], grpc.aio.Channel], tls: LiveTls) -> None:
        self._connect = connect
        self._tls = tls
        self._pems = tls.fresh()
        self._newest = _Generation(connect(self._pems))
        self._older: set[_Generation] = set()
        self._next_look_s = 0.0

    def newest(self) -> "_Generation":
        """Return where calls go now."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + _LOOK_EVERY_S
            pems = self._tls.fresh()
            if pems is not self._pems:
                self._pems = pems
                self._older.add(self._newest)
                self._newest.retire(self._older.discard)
                self._newest = _Generation(self._connect(pems))
        return self._newest

    def unary_unary(self, *args: Any, **options: Any) -> Any:
        """Return the method, as gRPC's channels do."""
        return _Method(self, "unary_unary", args, options)

    def unary_stream(self, *args: Any, **options: Any) -> Any:
        """Return the method, as gRPC's channels do."""
        return _Method(self, "unary_stream", args, options)

    def stream_unary(self, *args: Any, **options: Any) -> Any:
        """Return the method, as gRPC's channels do."""
        return _Method(self, "stream_unary", args, options)

    def stream_stream(self, *args: Any, **options: Any) -> Any:
        """Return the method, as gRPC's channels do."""
        return _Method(self, "stream_stream", args, options)

    async def close(self, grace: float | None = None) -> None:
        """Close what there is; calls that still run are cancelled after `grace` seconds."""
        for generation in (self._newest, *self._older):
            await generation.channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:  # noqa: FBT001, FBT002 - gRPC's
        """Return the newest channel's state."""
        return self._newest.channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the newest channel has another state."""
        await self._newest.channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until the newest channel is connected."""
        await self._newest.channel.channel_ready()

    async def __aenter__(self) -> Self:
        """Use it within the block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()


class _Generation:
    """A channel with one certificate, and how many calls run on it."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self._running = 0
        self._closed: Callable[[_Generation], None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def began(self, call: Any) -> None:
        self._running += 1
        call.add_done_callback(self._ended)

    def retire(self, closed: "Callable[[_Generation], None]") -> None:
        """Close once the last call has ended."""
        self._closed = closed
        self._close_unused()

    def _ended(self, _call: Any) -> None:
        self._running -= 1
        self._close_unused()

    def _close_unused(self) -> None:
        if self._closed is not None and not self._running and self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(self._closed))

    async def _close(self, closed: "Callable[[_Generation], None]") -> None:
        await self.channel.close()
        closed(self)


class _Method:
    """One method, on whichever channel is the newest."""

    __slots__ = ("_args", "_channel", "_generation", "_kind", "_method", "_options")

    def __init__(
        self, channel: RenewingChannel, kind: str, args: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self._channel, self._kind = channel, kind
        self._args, self._options = args, options
        self._generation: _Generation | None = None
        self._method: Any = None

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Begin a call."""
        generation = self._channel.newest()
        if generation is not self._generation:
            self._generation = generation
            self._method = getattr(generation.channel, self._kind)(*self._args, **self._options)
        call = self._method(*args, **options)
        generation.began(call)
        return call
