"""The attempts of one stream: each runs on its own, and events that are there together leave together."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.runtime.grpc_errors import INTERNAL_MESSAGE, packed_error
from podium_router.dispatch import Running
from podium_router.outbox import Completed
from podium_router.wire import event_to_proto

_MAX_RUNNING: Final = 4096
"""Attempts of one stream under way at once: more are refused, not queued."""
_MAX_AHEAD: Final = 64
"""Events of an attempt that its reader has not taken yet: then its text gathers, and its provider waits."""
_MAX_EVENTS: Final = 1024
_PARTING_S: Final = 1.0
"""How long a caller may take to end its side of a stream that closes; by then it has heard of it."""
_MS_PER_S: Final = 1_000

_trace_context = TraceContextTextMapPropagator()
_log = logging.getLogger(__name__)

Start = Callable[[pb.CompleteRequest, float], Running]


@dataclass(slots=True)
class _Operation:
    """One attempt, and how many of its events its reader has not taken."""

    operation_id: int
    running: Running
    ahead: int = 0


class Performing:
    """The attempts of one stream. `start` begins one that must be over in so many seconds."""

    def __init__(self, start: Start, closing: asyncio.Event) -> None:
        self._start = start
        self._closing = closing
        self._operations: dict[int, _Operation] = {}
        self._ready: dict[int, None] = {}
        self._refused: list[pb.OperationEvent] = []
        self._untaken: list[int] = []
        self._wake = asyncio.Event()

    async def responses(
        self, requests: AsyncIterator[pb.PerformRequest]
    ) -> AsyncGenerator[pb.PerformResponse, None]:
        """Perform what comes until the caller, or this service, wants no more and everything is told."""
        reading = asyncio.create_task(self._read(requests))
        closing = asyncio.create_task(self._closing.wait())
        reading.add_done_callback(self._ended)
        closing.add_done_callback(self._ended)
        is_closing = False
        try:
            while not reading.done():
                events = self._events()
                if events or self._untaken or (closing.done() and not is_closing):
                    is_closing = closing.done()
                    untaken, self._untaken = self._untaken, []
                    yield pb.PerformResponse(events=events, is_closing=is_closing, untaken_ids=untaken)
                else:
                    self._wake.clear()
                    async with asyncio.timeout(_PARTING_S if is_closing and not self._operations else None):
                        await self._wake.wait()
        except TimeoutError:
            return
        finally:
            reading.cancel()
            closing.cancel()
            for operation in self._operations.values():
                operation.running.abandon()

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled():
            task.exception()  # a caller that is gone is nobody's mistake
        self._wake.set()

    async def _read(self, requests: AsyncIterator[pb.PerformRequest]) -> None:
        async for request in requests:
            for operation_id in request.cancelled_ids:
                operation = self._operations.pop(operation_id, None)
                if operation is not None:
                    operation.running.abandon()
            for taken in request.taken:
                operation = self._operations.get(taken.operation_id)
                if operation is not None:
                    operation.ahead = max(0, operation.ahead - taken.event_count)
                    self._is_ready(operation.operation_id)
            for asked in request.operations:
                self._begin(asked)

    def _begin(self, asked: pb.Operation) -> None:
        operation_id = asked.operation_id
        if self._closing.is_set():
            self._untaken.append(operation_id)
            self._wake.set()
            return
        try:
            running = self._started(asked)
        except PodiumError as error:
            self._refused.append(_failed(operation_id, error))
            self._wake.set()
            return
        self._operations[operation_id] = _Operation(operation_id, running)
        running.outbox.listen(lambda: self._is_ready(operation_id))
        self._is_ready(operation_id)

    def _started(self, asked: pb.Operation) -> Running:
        if len(self._operations) >= _MAX_RUNNING:
            raise PodiumError(
                Code.UNAVAILABLE,
                "the router has as many attempts under way as it takes; retry",
                retry_after_s=0.1,
            )
        if asked.operation_id in self._operations:
            raise invalid("the operation id is in use", param="operation_id")
        timeout_s = asked.timeout_ms / _MS_PER_S
        if not asked.traceparent:
            return self._start(asked.complete, timeout_s)
        # The attempt's task keeps the context in which it is made.
        token = otel_context.attach(_trace_context.extract({"traceparent": asked.traceparent}))
        try:
            return self._start(asked.complete, timeout_s)
        finally:
            otel_context.detach(token)

    def _is_ready(self, operation_id: int) -> None:
        self._ready[operation_id] = None
        self._wake.set()

    def _events(self) -> list[pb.OperationEvent]:
        """Return what can be told now, of at most so many events that nobody waits behind them."""
        events, self._refused = self._refused, []
        while self._ready and len(events) < _MAX_EVENTS:
            operation_id = next(iter(self._ready))
            del self._ready[operation_id]
            if (operation := self._operations.get(operation_id)) is not None:
                self._tell(operation, events)
        return events

    def _tell(self, operation: _Operation, events: list[pb.OperationEvent]) -> None:
        outbox, operation_id = operation.running.outbox, operation.operation_id
        while operation.ahead < _MAX_AHEAD:
            event = outbox.poll()
            if event is None:
                return
            if isinstance(event, BaseException):
                del self._operations[operation_id]
                events.append(_failed(operation_id, event))
                return
            operation.ahead += 1
            events.append(pb.OperationEvent(operation_id=operation_id, event=event_to_proto(event)))
            if isinstance(event, Completed):
                del self._operations[operation_id]
                return


def _failed(operation_id: int, error: BaseException) -> pb.OperationEvent:
    if not isinstance(error, PodiumError):
        _log.error("an attempt failed unexpectedly", exc_info=error)
        error = PodiumError(Code.INTERNAL, INTERNAL_MESSAGE)
    return pb.OperationEvent(operation_id=operation_id, status=packed_error(error))
