"""The router's attempts over one stream: what is asked at the same moment travels in the same message.

A call of its own costs both sides several times what a message costs, and an answer that comes in many
pieces is many messages (docs/adr/0013). The stream is opened on first use, moves on now and then, and is
opened again after it broke; what was under way on a broken one fails. What came too late for a router that
stops is asked of another.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import grpc

from podium.router.v1 import router_service_pb2 as pb
from podium.router.v1 import router_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import from_rpc_error, unpacked_error
from podium_core.runtime.shared_stream import SharedStream, SharedStreams, stream_age_s, taken_from
from podium_gateway.adapters.inside import public_error

_SERVICE: Final = "router"
_TOLD_EVERY: Final = 16
"""After so many events the router hears that they were taken; it sends at most four times as many ahead."""
_TIMES_LATE: Final = 8
"""So often an attempt is asked for elsewhere, over some four seconds, before the runner hears of it."""
_MS_PER_S: Final = 1_000

_log = logging.getLogger(__name__)


class AttemptEvents:
    """What happens to one attempt; iterate over it. Raises the PodiumError that the attempt ended with."""

    __slots__ = ("_error", "_events", "_is_over", "_taken", "_waiter", "operation", "stream", "times_late")

    def __init__(self, operation: pb.Operation) -> None:
        self.operation = operation
        self.stream: _Stream | None = None
        self.times_late = 0
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
        if self._taken == _TOLD_EVERY and not self._is_over and self.stream is not None:
            self.stream.taken(self.operation.operation_id, self._taken)
            self._taken = 0
        return event

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self._is_over

    def cancel(self) -> None:
        """Stop the attempt if it is not over."""
        if not self._is_over:
            self._is_over = True
            if self.stream is not None:
                self.stream.cancel(self.operation.operation_id)

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

    def __init__(self, channel: grpc.aio.Channel, age_s: Callable[[], float] = stream_age_s) -> None:
        stub: router_service_pb2_grpc.RouterServiceAsyncStub = router_service_pb2_grpc.RouterServiceStub(
            channel
        )
        self._streams = SharedStreams(lambda age_s: _Stream(stub, self._again, age_s), age_s)
        self._last_id = 0

    def complete(self, request: pb.CompleteRequest, timeout_s: float, traceparent: str) -> AttemptEvents:
        """Ask for an attempt and return what happens to it."""
        self._last_id += 1
        attempt = AttemptEvents(
            pb.Operation(
                operation_id=self._last_id,
                traceparent=traceparent,
                timeout_ms=max(1, int(timeout_s * _MS_PER_S)),
                complete=request,
            )
        )
        self._ask(attempt)
        return attempt

    async def close(self) -> None:
        """End every stream; attempts that are under way are stopped."""
        await self._streams.close()

    def _ask(self, attempt: AttemptEvents) -> None:
        if not attempt.is_over:
            self._streams.current().ask(attempt)

    def _again(self, attempt: AttemptEvents) -> None:
        if attempt.times_late == _TIMES_LATE:
            attempt.fail(PodiumError(Code.UNAVAILABLE, "every router is stopping", reason="ROUTER_STOPPING"))
            return
        self._streams.again(partial(self._ask, attempt), attempt.times_late)
        attempt.times_late += 1


class _Stream(SharedStream):
    """One stream; what it comes too late for is asked `again`, elsewhere."""

    def __init__(
        self,
        stub: "router_service_pb2_grpc.RouterServiceAsyncStub",
        again: Callable[[AttemptEvents], None],
        age_s: float,
    ) -> None:
        self._stub = stub
        self._again = again
        self._queue: dict[int, pb.Operation] = {}
        self._cancelled: list[int] = []
        self._taken: list[pb.Taken] = []
        self._attempts: dict[int, AttemptEvents] = {}
        super().__init__(age_s)

    def ask(self, attempt: AttemptEvents) -> None:
        operation_id = attempt.operation.operation_id
        attempt.stream = self
        self._queue[operation_id] = attempt.operation
        self._attempts[operation_id] = attempt
        self.wake.set()

    def cancel(self, operation_id: int) -> None:
        if self._attempts.pop(operation_id, None) is None:
            return
        if self._queue.pop(operation_id, None) is None:
            self._cancelled.append(operation_id)
        self.wake.set()

    def taken(self, operation_id: int, count: int) -> None:
        if operation_id in self._attempts:
            self._taken.append(pb.Taken(operation_id=operation_id, event_count=count))
            self.wake.set()

    def open(self) -> Any:
        return self._stub.Perform()

    def is_idle(self) -> bool:
        return not self._attempts

    def ended(self, error: BaseException | None) -> None:
        failure = _meaning(error) or PodiumError(Code.UNAVAILABLE, "the router service closed the stream")
        attempts, self._attempts = self._attempts, {}
        for attempt in attempts.values():
            attempt.fail(PodiumError(failure.code, failure.message, reason=failure.reason))

    def next_message(self) -> pb.PerformRequest | None:
        if not (self._queue or self._cancelled or self._taken):
            return None
        message = pb.PerformRequest(cancelled_ids=self._cancelled, taken=self._taken)
        self._cancelled.clear()
        self._taken.clear()
        message.operations.extend(taken_from(self._queue))
        return message

    def take(self, message: pb.PerformResponse) -> None:
        if message.is_closing:
            self.retire()
            self._move((*message.untaken_ids, *self._queue))
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

    def _move(self, operation_ids: Iterable[int]) -> None:
        for operation_id in operation_ids:
            self._queue.pop(operation_id, None)
            if (attempt := self._attempts.pop(operation_id, None)) is not None:
                attempt.stream = None
                self._again(attempt)


def _meaning(error: BaseException | None) -> PodiumError | None:
    """Return what a broken stream means for the attempts on it; None where the router just closed it."""
    if isinstance(error, grpc.aio.AioRpcError):
        return public_error(from_rpc_error(error, _SERVICE), _SERVICE)
    if error is not None:
        _log.error("the stream to the router failed unexpectedly", exc_info=error)
        return PodiumError(Code.INTERNAL, "the router's answer cannot be read")
    return None
