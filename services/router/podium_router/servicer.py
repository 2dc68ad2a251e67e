"""RouterService over gRPC: translates and delegates."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import grpc

from podium.router.v1 import router_service_pb2 as pb
from podium.router.v1 import router_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import AttemptKind
from podium_core.runtime.identity import caller_of
from podium_core.wire.pool import pool_to_proto
from podium_router.catalog import Catalog
from podium_router.dispatch import Dispatcher, Running
from podium_router.outbox import Completed, Permitted
from podium_router.performing import Performing
from podium_router.wire import call_of, embedded_to_proto, embedding_call_of, event_to_proto

_COMPLETE = "/podium.router.v1.RouterService/Complete"
_PERFORM = "/podium.router.v1.RouterService/Perform"
_EMBED = "/podium.router.v1.RouterService/Embed"
_LIST_WORKERS = "/podium.router.v1.RouterService/ListWorkers"
_CALLERS = frozenset({"gateway", "conductor", "cli"})
_GATEWAY = frozenset({"gateway"})

PERMISSIONS = {_COMPLETE: _CALLERS, _PERFORM: _GATEWAY, _EMBED: _GATEWAY, _LIST_WORKERS: _CALLERS}
"""Who may call what; what kind of attempt a caller may make is the servicer's own check."""

if TYPE_CHECKING:  # at run time gRPC's context is no generic class
    _Context = grpc.aio.ServicerContext[Any, Any]


class RouterServicer(router_service_pb2_grpc.RouterServiceServicer):
    """Serves attempts and the list of workers. `allow_cli` lets the command line make attempts."""

    def __init__(self, dispatcher: Dispatcher, catalog: Catalog, *, allow_cli: bool) -> None:
        self._dispatcher = dispatcher
        self._catalog = catalog
        self._allow_cli = allow_cli
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Take no more attempts on open streams; each ends once its last one is over."""
        self._closing.set()

    async def Complete(  # noqa: N802 - named by the contract
        self, request: pb.CompleteRequest, context: "_Context"
    ) -> AsyncGenerator[pb.CompleteResponse, None]:
        """Perform one attempt and send its events."""
        call = call_of(request)
        self._check_caller(caller_of(context), call.kind)
        running = self._dispatcher.start(call, context.time_remaining())
        try:
            while True:
                event = await running.outbox.take()
                yield event_to_proto(event)
                if isinstance(event, Completed):
                    return
        finally:
            running.abandon()

    async def Perform(  # noqa: N802 - named by the contract
        self,
        request_iterator: AsyncIterator[pb.PerformRequest],
        context: "_Context",  # noqa: ARG002
    ) -> AsyncGenerator[pb.PerformResponse, None]:
        """Perform a stream of attempts, each as its own call would be."""

        def start(request: pb.CompleteRequest, timeout_s: float) -> Running:
            return self._dispatcher.start(call_of(request), timeout_s)

        performing = Performing(start, self._closing)
        async with aclosing(performing.responses(request_iterator)) as responses:
            async for response in responses:
                yield response

    async def Embed(  # noqa: N802 - named by the contract
        self, request: pb.EmbedRequest, context: "_Context"
    ) -> pb.EmbedResponse:
        """Perform one attempt for vectors."""
        running = self._dispatcher.start(embedding_call_of(request), context.time_remaining())
        leaf_index = 0
        try:
            while True:
                event = await running.outbox.take()
                if isinstance(event, Permitted):
                    leaf_index = event.leaf_index
                elif isinstance(event, Completed):
                    return embedded_to_proto(event, leaf_index)
        finally:
            running.abandon()

    async def ListWorkers(  # noqa: N802 - named by the contract
        self,
        request: pb.ListWorkersRequest,  # noqa: ARG002
        context: "_Context",  # noqa: ARG002
    ) -> pb.ListWorkersResponse:
        """Return the pool as it is now."""
        return pool_to_proto(self._catalog.pool())

    def _check_caller(self, caller: str, kind: AttemptKind) -> None:
        if caller == "gateway":
            return
        if caller == "conductor" and kind is AttemptKind.PLAN:
            return
        if caller == "cli" and self._allow_cli:
            return
        raise PodiumError(
            Code.POLICY_DENIED,
            f"{caller} may not make attempts of kind {kind.value}",
            reason="CALLER_NOT_ALLOWED",
        )
