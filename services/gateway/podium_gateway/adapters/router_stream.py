"""The router's attempts over one stream: what is asked at the same moment travels in the same message.

A call of its own costs both sides several times what a message costs, and an answer that comes in many
pieces is many messages (docs/adr/0013). The stream is opened on first use, and again after it broke or its
router began to stop; what was under way on a broken one fails.
"""

import asyncio
import logging
from collections import deque
from typing import Final

import grpc

from podium.router.v1 import router_service_pb2 as pb
from podium.router.v1 import router_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import from_rpc_error, unpacked_error
from podium_core.runtime.shared_stream import exchange
from podium_gateway.adapters.inside import public_error

_SERVICE: Final = "router"
_MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""A message takes no further operation once it is this long."""
_TOLD_EVERY: Final = 16
"""After so many events the router hears that they were taken; it sends at most four times as many ahead."""

_log = logging.getLogger(__name__)


class AttemptEvents:
    """What happens to one attempt; iterate over it. Raises the PodiumError that the attempt ended with."""

    __slots__ = ("_connection", "_error", "_events", "_is_over", "_operation_id", "_taken", "_waiter")

    def __init__(self, connection: "_Connection", operation_id: int) -> None:
        self._connection = connection
        self._operation_id = operation_id
        self._events: deque[pb.CompleteResponse] = deque()
        self._error: PodiumError | None = None
        self._is_over = False
        self._taken = 0
        self._waiter: asyncio.Future[None] | None = None

    def __aiter__(self) -> "AttemptEvents":
        return self

    async def __anext__(self) -> pb.CompleteResponse:
        while not self._events:
            if self._is_over:
                raise self._error or StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        event = self._events.popleft()
        self._taken += 1
        if self._taken == _TOLD_EVERY and not self._is_over:
            self._connection.taken(self._operation_id, self._taken)
            self._taken = 0
        return event

    def cancel(self) -> None:
        """Stop the attempt if it is not over."""
        if not self._is_over:
            self._is_over = True
            self._connection.cancel(self._operation_id)

    def put(self, event: pb.CompleteResponse) -> bool:
        """Take an event in; return whether it is the last."""
        self._events.append(event)
        self._is_over = event.HasField("completed")
        self._wake()
        return self._is_over

    def fail(self, error: PodiumError) -> None:
        """End the attempt; what came before is still told."""
        self._error = error
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class RouterStream:
    """Asks for attempts. Use it from one event loop."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub: router_service_pb2_grpc.RouterServiceAsyncStub = (
            router_service_pb2_grpc.RouterServiceStub(channel)
        )
        self._connection: _Connection | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def complete(self, request: pb.CompleteRequest, timeout_s: float, traceparent: str) -> AttemptEvents:
        """Ask for an attempt and return what happens to it."""
        connection = self._connection
        if connection is None or not connection.takes_more:
            connection = self._connection = _Connection(self._stub)
            self._closing.add(connection.task)
            connection.task.add_done_callback(self._closing.discard)
        return connection.ask(request, timeout_s, traceparent)

    async def close(self) -> None:
        """End every stream; attempts that are under way are stopped."""
        for task in self._closing:
            task.cancel()
        if self._closing:
            await asyncio.wait(self._closing)


class _Connection:
    """One stream, from its opening to its end."""

    def __init__(self, stub: "router_service_pb2_grpc.RouterServiceAsyncStub") -> None:
        self._stub = stub
        self._last_id = 0
        self._queue: dict[int, pb.Operation] = {}
        self._cancelled: list[int] = []
        self._taken: list[pb.Taken] = []
        self._attempts: dict[int, AttemptEvents] = {}
        self._wake = asyncio.Event()
        self.takes_more = True
        self.task = asyncio.create_task(self._serve(), name="router-stream")

    def ask(self, request: pb.CompleteRequest, timeout_s: float, traceparent: str) -> AttemptEvents:
        self._last_id += 1
        operation_id = self._last_id
        self._queue[operation_id] = pb.Operation(
            operation_id=operation_id,
            traceparent=traceparent,
            timeout_ms=max(1, int(timeout_s * 1_000)),
            complete=request,
        )
        attempt = self._attempts[operation_id] = AttemptEvents(self, operation_id)
        self._wake.set()
        return attempt

    def cancel(self, operation_id: int) -> None:
        if self._attempts.pop(operation_id, None) is None:
            return
        if self._queue.pop(operation_id, None) is None:
            self._cancelled.append(operation_id)
            self._wake.set()

    def taken(self, operation_id: int, count: int) -> None:
        if operation_id in self._attempts:
            self._taken.append(pb.Taken(operation_id=operation_id, event_count=count))
            self._wake.set()

    async def _serve(self) -> None:
        failure = PodiumError(Code.UNAVAILABLE, "the router service closed the stream")
        try:
            ended = await exchange(self._stub.Perform(), self._wake, self._next_message, self._take)
            failure = _meaning(ended) or failure
        finally:
            self.takes_more = False
            attempts, self._attempts = self._attempts, {}
            for attempt in attempts.values():
                attempt.fail(PodiumError(failure.code, failure.message, reason=failure.reason))

    def _next_message(self) -> pb.PerformRequest | None:
        if not (self._queue or self._cancelled or self._taken):
            return None
        message = pb.PerformRequest(cancelled_ids=self._cancelled, taken=self._taken)
        self._cancelled.clear()
        self._taken.clear()
        size = 0
        sent: list[int] = []
        for operation_id, operation in self._queue.items():
            size += operation.ByteSize()
            if sent and size > _MAX_MESSAGE_BYTES:
                break
            message.operations.append(operation)
            sent.append(operation_id)
        for operation_id in sent:
            del self._queue[operation_id]
        return message

    def _take(self, message: pb.PerformResponse) -> None:
        if message.is_closing:
            self.takes_more = False
        for told in message.events:
            operation_id = told.operation_id
            attempt = self._attempts.get(operation_id)
            if attempt is None:
                continue
            if told.status:
                del self._attempts[operation_id]
                attempt.fail(public_error(unpacked_error(told.status, _SERVICE), _SERVICE))
            elif attempt.put(told.event):
                del self._attempts[operation_id]


def _meaning(error: BaseException | None) -> PodiumError | None:
    """Return what a broken stream means for the attempts on it; None where the router just closed it."""
    if isinstance(error, grpc.aio.AioRpcError):
        return public_error(from_rpc_error(error, _SERVICE), _SERVICE)
    if error is not None:
        _log.error("the stream to the router failed unexpectedly", exc_info=error)
        return PodiumError(Code.INTERNAL, "the router's answer cannot be read")
    return None
