"""Audit's calls over one stream: what is asked at the same moment travels in the same message.

A unary call costs both sides several times what a message costs, and a run makes four of them
(docs/adr/0011). The stream is opened on first use, moves on now and then, and is opened again after it broke;
whatever waited on a broken one is told so and may be repeated, since every operation carries its event id.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

import grpc

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import audit_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import from_rpc_error, unpacked_error
from podium_core.runtime.shared_stream import SharedStream, SharedStreams, stream_age_s, taken_from

_SERVICE: Final = "audit"
_TRACE_FIELD: Final = "traceparent"
_BROKEN: Final = frozenset({Code.UNAVAILABLE, Code.CANCELLED, Code.DEADLINE, Code.INTERNAL})

Metadata = tuple[tuple[str, str], ...]


class AuditStream:
    """The operations of `AuditService`, called as on its stub. Use it from one event loop.

    Each method sends at once and returns what to await. Awaiting raises PodiumError: what audit refuses the
    operation for, DEADLINE after `timeout` seconds, AUDIT_UNAVAILABLE when the stream broke.
    """

    def __init__(self, channel: grpc.aio.Channel, age_s: Callable[[], float] = stream_age_s) -> None:
        stub: audit_service_pb2_grpc.AuditServiceAsyncStub = audit_service_pb2_grpc.AuditServiceStub(channel)
        self._streams = SharedStreams(lambda age_s: _Stream(stub, self._again, age_s), age_s)
        self._last_id = 0

    def OpenRun(  # noqa: N802
        self,
        request: pb.OpenRunRequest,
        *,
        timeout: float,
        metadata: Metadata = (),
    ) -> Awaitable[pb.OpenRunResponse]:
        """Open a run."""
        return self._send(self._operation(metadata, open_run=request), timeout)

    def Append(  # noqa: N802
        self,
        request: pb.AppendRequest,
        *,
        timeout: float,
        metadata: Metadata = (),
    ) -> Awaitable[pb.AppendResponse]:
        """Add a record to an open run."""
        return self._send(self._operation(metadata, append=request), timeout)

    def BeginAttempt(  # noqa: N802
        self,
        request: pb.BeginAttemptRequest,
        *,
        timeout: float,
        metadata: Metadata = (),
    ) -> Awaitable[pb.BeginAttemptResponse]:
        """Ask for the permit of an attempt."""
        return self._send(self._operation(metadata, begin_attempt=request), timeout)

    def EndAttempt(  # noqa: N802
        self,
        request: pb.EndAttemptRequest,
        *,
        timeout: float,
        metadata: Metadata = (),
    ) -> Awaitable[pb.EndAttemptResponse]:
        """End an attempt."""
        return self._send(self._operation(metadata, end_attempt=request), timeout)

    def Seal(  # noqa: N802
        self,
        request: pb.SealRequest,
        *,
        timeout: float,
        metadata: Metadata = (),
    ) -> Awaitable[pb.SealResponse]:
        """Close a run."""
        return self._send(self._operation(metadata, seal=request), timeout)

    async def close(self) -> None:
        """End the stream; what still waits hears AUDIT_UNAVAILABLE."""
        await self._streams.close()

    def _operation(self, metadata: Metadata, **call: Any) -> pb.Operation:
        self._last_id += 1
        parent = next((value for key, value in metadata if key == _TRACE_FIELD), "")
        return pb.Operation(operation_id=self._last_id, traceparent=parent, **call)

    def _send(self, operation: pb.Operation, timeout_s: float) -> Awaitable[Any]:
        asked = _Asked(operation)
        self._ask(asked)
        return asked.answered(timeout_s)

    def _ask(self, asked: "_Asked") -> None:
        if not asked.answer.done():
            self._streams.current().ask(asked)

    def _again(self, asked: "_Asked") -> None:
        self._streams.again(partial(self._ask, asked), asked.times_late)
        asked.times_late += 1


class _Asked:
    """One operation and whoever waits for its answer."""

    __slots__ = ("answer", "operation", "stream", "times_late")

    def __init__(self, operation: pb.Operation) -> None:
        self.operation = operation
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.times_late = 0
        self.stream: _Stream | None = None

    async def answered(self, timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                return await self.answer
        except TimeoutError:
            raise PodiumError(Code.DEADLINE, "the audit service did not answer in time") from None
        finally:
            if self.stream is not None:
                self.stream.forget(self.operation.operation_id)

    def fail(self, failure: PodiumError) -> None:
        if not self.answer.done():
            self.answer.set_exception(PodiumError(failure.code, failure.message, reason=failure.reason))


class _Stream(SharedStream):
    """One stream; what it comes too late for is asked `again`, elsewhere."""

    def __init__(
        self,
        stub: "audit_service_pb2_grpc.AuditServiceAsyncStub",
        again: Callable[[_Asked], None],
        age_s: float,
    ) -> None:
        self._stub = stub
        self._again = again
        self._queue: dict[int, pb.Operation] = {}
        self._cancelled: list[int] = []
        self._waiting: dict[int, _Asked] = {}
        super().__init__(age_s)

    def ask(self, asked: _Asked) -> None:
        operation_id = asked.operation.operation_id
        asked.stream = self
        self._waiting[operation_id] = asked
        self._queue[operation_id] = asked.operation
        self.wake.set()

    def forget(self, operation_id: int) -> None:
        # What was not answered, nobody will look at any more: audit must not do it once it has time.
        is_given_up = self._waiting.pop(operation_id, None) is not None
        if is_given_up:
            if self._queue.pop(operation_id, None) is None:
                self._cancelled.append(operation_id)
            self.wake.set()

    def open(self) -> Any:
        return self._stub.Perform()

    def is_idle(self) -> bool:
        return not self._waiting

    def ended(self, error: BaseException | None) -> None:
        failure = _meaning(error) or PodiumError(
            Code.AUDIT_UNAVAILABLE, "the audit service closed the stream"
        )
        waiting, self._waiting = self._waiting, {}
        for asked in waiting.values():
            asked.fail(failure)

    def next_message(self) -> pb.PerformRequest | None:
        if not (self._queue or self._cancelled):
            return None
        message = pb.PerformRequest(cancelled_ids=self._cancelled)
        self._cancelled.clear()
        message.operations.extend(taken_from(self._queue))
        return message

    def take(self, message: pb.PerformResponse) -> None:
        if message.is_closing:
            self.retire()
            self._move((*message.untaken_ids, *self._queue))
        for result in message.results:
            asked = self._waiting.pop(result.operation_id, None)
            if asked is None or asked.answer.done():
                continue
            kind = result.WhichOneof("answer")
            if kind == "status":
                asked.answer.set_exception(unpacked_error(result.status, _SERVICE))
            else:
                asked.answer.set_result(getattr(result, kind))

    def _move(self, operation_ids: Iterable[int]) -> None:
        for operation_id in operation_ids:
            self._queue.pop(operation_id, None)
            if (asked := self._waiting.pop(operation_id, None)) is not None:
                asked.stream = None
                self._again(asked)


def _meaning(error: BaseException | None) -> PodiumError | None:
    """Return what a broken stream means for what waits on it: audit is away, unless it said more."""
    if not isinstance(error, grpc.aio.AioRpcError):
        return None
    told = from_rpc_error(error, _SERVICE)
    if told.code in _BROKEN:
        return PodiumError(Code.AUDIT_UNAVAILABLE, "the audit service cannot be reached")
    return told
