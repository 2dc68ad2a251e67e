"""HTTP servers that strangers reach: bounded connections, an end to silence, and no words but Podium's.

aiohttp by itself answers what is no HTTP with its parser's text and its version, writes a stack trace for it
into the log, keeps a silent connection for an hour, and waits for ever for a client to read an answer.
"""

import asyncio
import logging
import resource
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from aiohttp import web
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError, LineTooLong

from podium_core.domain.errors import Code, PodiumError, invalid

Refuse = Callable[[PodiumError], web.Response]
"""Makes the answer to an error, in the words of one HTTP edge."""

SERVER = "podium"
"""The `Server` header of every answer."""

_log = logging.getLogger(__name__)
_BACKLOG = 1_024
_OTHER_FILES = 256
_FEWEST_CONNECTIONS = 64
_MOST_CONNECTIONS = 4_096
_FIRST_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one server grants its clients, in connections and seconds.

    `idle_s` is how long a connection may be without a request, and so how long a request's head may take.
    `stall_s` is how long a client may read nothing of an answer; it is noticed within twice that time.
    """

    max_connections: int = _MOST_CONNECTIONS
    idle_s: float = 75.0
    stall_s: float = 30.0


class _Site(web.BaseSite):
    """Listens with connections of our own make."""

    def __init__(
        self,
        runner: web.AppRunner,
        host: str,
        port: int,
        limits: ConnectionLimits,
        refuse: Refuse,
        tls: ssl.SSLContext | None,
    ) -> None:
        super().__init__(runner, backlog=_BACKLOG)
        self._tls = tls
        self._address = host, port
        self._limits = limits
        self._refuse = refuse
        self._most = min(limits.max_connections, _spare_files())
        self._open = 0
        self._was_full = False

    @property
    def name(self) -> str:
        host, port = self._address
        return f"http://{host}:{port}"

    async def start(self) -> None:
        await super().start()
        loop = asyncio.get_running_loop()
        host, port = self._address
        self._server = await loop.create_server(
            self._connection, host, port, backlog=self._backlog, ssl=self._tls
        )

    def enter(self) -> bool:
        """Count one more connection; say whether there is room for it."""
        self._open += 1
        is_room = self._open <= self._most
        if not is_room and not self._was_full:
            _log.warning("connections are refused: there are as many as there may be")
        self._was_full = not is_room
        return is_room

    def leave(self) -> None:
        """Count one less."""
        self._open -= 1

    def _connection(self) -> "_Connection":
        server = self._runner.server
        assert server is not None
        return _Connection(server, self, self._limits, self._refuse)


class _Connection(web.RequestHandler):
    """One connection. Looks at itself now and then, so that nobody else must."""

    __slots__ = ("_is_full", "_left", "_look", "_refuse", "_site", "_stall_s")

    def __init__(self, server: web.Server, site: _Site, limits: ConnectionLimits, refuse: Refuse) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=limits.idle_s,
            access_log=None,  # type: ignore[arg-type]  # aiohttp means it to be possible
        )
        self._site = site
        self._refuse = refuse
        self._stall_s = limits.stall_s
        self._look: asyncio.TimerHandle | None = None
        self._is_full = False
        self._left: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless the house is full."""
        super().connection_made(transport)
        connected = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        if not self._site.enter():
            connected.abort()
        else:
            self._look_again(connected)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget everything."""
        self._site.leave()
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Note that the client does not keep up."""
        self._is_full = True
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it has read on."""
        self._is_full = False
        self._left = None
        super().resume_writing()

    def _look_again(self, transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(self._stall_s, self._check, transport)

    def _check(self, transport: asyncio.Transport) -> None:
        """Cut a client that has read nothing since the last look of what waits for it."""
        if not (self._is_full or transport.is_closing()):
            self._left = None
            self._look_again(transport)
            return
        left, before = transport.get_write_buffer_size(), self._left
        if before is not None and left >= before:
            transport.abort()
            return
        self._left = left
        self._look_again(transport)

    def close_if_idle(self) -> None:
        """Close unless a request is being answered, or is about to be."""
        if self._waiter is not None and not self._waiter.done():
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = _FIRST_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - the parser's words stay inside
    ) -> web.StreamResponse:
        """Answer what could not be read, or what no handler could."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is on its way already")
        if status >= _FIRST_SERVER_ERROR:
            _log.error("a request failed unexpectedly", exc_info=exc)
            return self._answer(PodiumError(Code.INTERNAL, "internal error"))
        return self._answer(_unreadable(exc))

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the answer; what aiohttp refuses before any handler is put into our words."""
        if isinstance(resp, web.HTTPException):
            resp = self._answer(
                invalid("the Expect header may ask for 100-continue", reason="MALFORMED_HTTP")
            )
        return await super().finish_response(request, resp, start_time)

    def log_exception(self, *args: object, **kwargs: object) -> None:
        """Log defects of ours, not those of a client's request."""
        if not isinstance(kwargs.get("exc_info"), (HttpProcessingError, web.RequestPayloadError)):
            super().log_exception(*args, **kwargs)

    def _answer(self, error: PodiumError) -> web.Response:
        response = self._refuse(error)
        response.headers["Server"] = SERVER
        response.force_close()
        return response


async def listen(
    app: web.Application,
    host: str,
    port: int,
    *,
    refuse: Refuse,
    limits: ConnectionLimits = ConnectionLimits(),
    shutdown_timeout_s: float = 1.0,
    tls: ssl.SSLContext | None = None,
) -> tuple[web.AppRunner, int]:
    """Serve and return the runner with its bound port; raise PodiumError when the address cannot be used.

    A client that hangs up cancels its handler at once.
    """
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=shutdown_timeout_s)
    await runner.setup()
    try:
        await _Site(runner, host, port, limits, refuse, tls).start()
    except OSError as error:
        await runner.cleanup()
        raise PodiumError(
            Code.INVALID_REQUEST,
            f"cannot listen on {host}:{port}: {error.strerror}",
            reason="CANNOT_LISTEN",
        ) from None
    return runner, int(runner.addresses[0][1])


async def stop_listening(runner: web.AppRunner) -> None:
    """Take no new connections: whoever tries is refused, and may try another. Open ones are served on."""
    for site in tuple(runner.sites):
        await site.stop()


def has_connections(runner: web.AppRunner) -> bool:
    """Whether anybody is connected."""
    return runner.server is not None and bool(runner.server.connections)


def hang_up_idle(runner: web.AppRunner) -> None:
    """Close the connections on which nothing is asked at the moment."""
    assert runner.server is not None
    for connection in runner.server.connections:
        if isinstance(connection, _Connection):
            connection.close_if_idle()


def _unreadable(error: BaseException | None) -> PodiumError:
    if isinstance(error, ContentEncodingError):
        return invalid(
            "the body's content-encoding is not known: send gzip, deflate or none", reason="BODY_UNREADABLE"
        )
    if isinstance(error, LineTooLong):
        return invalid("the URL or a header is too long", reason="MALFORMED_HTTP")
    return invalid("this is no well-formed HTTP/1.1 request", reason="MALFORMED_HTTP")


def _spare_files() -> int:
    """Return how many connections leave the process enough files for everything else."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(limit - _OTHER_FILES, _FEWEST_CONNECTIONS)
