"""The standard gRPC health service, for the server as a whole."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from podium_core.domain.errors import Code, PodiumError

METHODS = frozenset({"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"})
_Response = health_pb2.HealthCheckResponse


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Says whether the server takes calls; watchers hear of every change."""

    def __init__(self) -> None:
        self._serving = False
        self._leaving = False
        self._closed = False
        self._watchers = 0
        self._changed = asyncio.Event()

    def set_serving(self, serving: bool) -> None:  # noqa: FBT001 - a setter's one argument
        """Change the state and wake everybody who watches; nothing serves again that is leaving."""
        serving = serving and not self._leaving
        if serving != self._serving:
            self._serving = serving
            self._wake()

    @property
    def is_watched(self) -> bool:
        """Whether somebody would hear of a change."""
        return self._watchers > 0

    def leave(self) -> None:
        """Say from now on that the server does not serve."""
        self._leaving = True
        self.set_serving(False)

    def close(self) -> None:
        """Say that the server no longer serves and send every watcher home, so that none delays the stop."""
        self._leaving = True
        self._serving = False
        self._closed = True
        self._wake()

    async def Check(  # noqa: N802 - generated name
        self,
        request: health_pb2.HealthCheckRequest,
        context: Any,  # noqa: ARG002 - gRPC gives it
    ) -> health_pb2.HealthCheckResponse:
        """Return the state now; only the whole server (empty name) has one."""
        _whole_server(request)
        return self._response()

    async def Watch(  # noqa: N802 - generated name
        self,
        request: health_pb2.HealthCheckRequest,
        context: Any,  # noqa: ARG002 - gRPC gives it
    ) -> AsyncGenerator[health_pb2.HealthCheckResponse, None]:
        """Yield the state now and after every change, until watcher or server leave."""
        _whole_server(request)
        self._watchers += 1
        try:
            while True:
                changed = self._changed
                yield self._response()
                if self._closed:
                    return
                await changed.wait()
        finally:
            self._watchers -= 1

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _response(self) -> health_pb2.HealthCheckResponse:
        return _Response(status=_Response.SERVING if self._serving else _Response.NOT_SERVING)


def add_health(health: Health, server: grpc.aio.Server) -> None:
    """Register the health service."""
    health_pb2_grpc.add_HealthServicer_to_server(health, server)


def _whole_server(request: health_pb2.HealthCheckRequest) -> None:
    if request.service:
        raise PodiumError(Code.NOT_FOUND, "only the whole server has a health: leave the service name empty")
