"""What a service tells those who keep it running: `/livez`, `/readyz`, `/metrics`, on a port of its own.

Plain HTTP, because the kubelet's gRPC probe cannot speak mutual TLS and Prometheus need not be a caller that
services trust. Nothing there is content, and nothing can be changed. It is served from threads, so that a
process whose event loop hangs is told apart from one that is busy.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Self

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.settings_base import parse_listen

_LOOP_ANSWERS_WITHIN_S: Final = 2.0
_REQUEST_TIMEOUT_S: Final = 2.0
_MAX_REQUESTS: Final = 16
_TEXT: Final = "text/plain; charset=utf-8"

Page = tuple[HTTPStatus, str, bytes]
"""Status, media type and body."""


class Ops:
    """Whether the service lives and takes calls. Made within the event loop that does its work."""

    def __init__(self) -> None:
        self._is_ready = False
        self._is_broken = False
        self._conditions: dict[str, Callable[[], str]] = {}
        self._loop = _running_loop()

    def set_ready(self, ready: bool) -> None:  # noqa: FBT001 - a setter's one argument
        """Say whether calls may be sent here. What all replicas share, as a database, is no reason not to.

        If it were, an outage of a second would take all of them out of their Service, and callers would
        find no name where they could have waited.
        """
        self._is_ready = ready

    def set_broken(self, broken: bool) -> None:  # noqa: FBT001 - a setter's one argument
        """Say that only a restart helps, because a part of the process is gone."""
        self._is_broken = broken

    def show_condition(self, name: str, state: Callable[[], str]) -> None:
        """Tell people beside "ready" how something stands that is no reason to send calls elsewhere."""
        self._conditions[name] = state

    @property
    def conditions(self) -> str:
        """Return each condition on a line of its own."""
        return "".join(f"{name}: {state()}\n" for name, state in tuple(self._conditions.items()))

    def is_live(self) -> bool:
        """Whether the process can still do anything. Asked from another thread than the loop's."""
        if self._is_broken:
            return False
        if self._loop is None:
            return True
        answered = threading.Event()
        try:
            self._loop.call_soon_threadsafe(answered.set)
        except RuntimeError:  # the loop has ended
            return False
        return answered.wait(_LOOP_ANSWERS_WITHIN_S)

    def is_ready(self) -> bool:
        """Whether calls may be sent here."""
        return self._is_ready and not self._is_broken


class OpsServer:
    """Serves an `Ops` and a registry of metrics until it is closed."""

    def __init__(self, listen: str, ops: Ops, registry: CollectorRegistry) -> None:
        """Listen. Raises PodiumError (CANNOT_LISTEN) when the address is taken or not this machine's."""
        host, port = parse_listen(listen)
        pages: dict[str, Callable[[str], Page]] = {
            "/livez": lambda _: _state(
                ops.is_live(), "live", "the event loop does not answer, or a part is gone"
            ),
            "/readyz": lambda _: _state(
                ops.is_ready(), "ready", "not ready: starting, or going", ops.conditions
            ),
            "/metrics": lambda accept: _metrics(registry, accept),
        }
        try:
            self._server = _Server(host, port, pages)
        except OSError as error:
            raise PodiumError(
                Code.INVALID_REQUEST,
                f"cannot serve probes and metrics on {listen}: {error.strerror}",
                reason="CANNOT_LISTEN",
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="ops", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The bound port."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_REQUEST_TIMEOUT_S)

    def __enter__(self) -> Self:
        """Serve within the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, pages: dict[str, Callable[[str], Page]]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = pages
        self._places = threading.BoundedSemaphore(_MAX_REQUESTS)
        super().__init__((host, port), _Handler)

    def process_request(self, request: object, client_address: object) -> None:
        """Answer in a thread, a bounded number at a time; others are cut off."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)  # type: ignore[arg-type]
            return
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Answer, and give the place back."""
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A probe that hung up is nobody's news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _REQUEST_TIMEOUT_S
    server_version = "podium"
    sys_version = ""

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        status, media_type, body = (
            (HTTPStatus.NOT_FOUND, _TEXT, b"/livez, /readyz or /metrics\n")
            if page is None
            else page(self.headers.get("Accept", ""))
        )
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Probes come every few seconds: none of them is logged."""


def _state(is_so: bool, yes: str, no: str, more: str = "") -> Page:  # noqa: FBT001 - private, and said at each use
    status = HTTPStatus.OK if is_so else HTTPStatus.SERVICE_UNAVAILABLE
    return status, _TEXT, f"{yes if is_so else no}\n{more}".encode()


def _metrics(registry: CollectorRegistry, accept: str) -> Page:
    encode, media_type = choose_encoder(accept)
    return HTTPStatus.OK, media_type, encode(registry)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
