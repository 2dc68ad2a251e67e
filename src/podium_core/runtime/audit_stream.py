"""Audit's calls over one stream: what is asked at the same moment travels in the same message.

A unary call costs both sides several times what a message costs, and a run makes four of them
(docs/adr/0011). The stream is opened on first use and again after it broke; whatever waited on a broken one
is told so and may be repeated, since every operation carries its event id.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

import grpc

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import audit_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import from_rpc_error, unpacked_error
from podium_core.runtime.shared_stream import exchange

_SERVICE: Final = "audit"
_MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""A message takes no further operation once it is this long; a single long one travels alone."""

_TRACE_FIELD: Final = "traceparent"
_BROKEN: Final = frozenset({Code.UNAVAILABLE, Code.CANCELLED, Code.DEADLINE, Code.INTERNAL})

Metadata = tuple[tuple[str, str], ...]


class AuditStream:
    """The operations of `AuditService`, called as on its stub. Use it from one event loop.

    Each method sends at once and returns what to await. Awaiting raises PodiumError: what audit refuses the
    operation for, DEADLINE after `timeout` seconds, AUDIT_UNAVAILABLE when the stream broke.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub: audit_service_pb2_grpc.AuditServiceAsyncStub = audit_service_pb2_grpc.AuditServiceStub(
            channel
        )
        self._queue: dict[int, pb.Operation] = {}
        self._cancelled: list[int] = []
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._wake = asyncio.Event()
        self._stream: asyncio.Task[None] | None = None
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
        if self._stream is not None:
            self._stream.cancel()
            await asyncio.wait([self._stream])

    def _operation(self, metadata: Metadata, **call: Any) -> pb.Operation:
        self._last_id += 1
        parent = next((value for key, value in metadata if key == _TRACE_FIELD), "")
        return pb.Operation(operation_id=self._last_id, traceparent=parent, **call)

    def _send(self, operation: pb.Operation, timeout_s: float) -> Awaitable[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[operation.operation_id] = answer
        self._queue[operation.operation_id] = operation
        if self._stream is None:
            self._stream = asyncio.create_task(self._serve(), name="audit-stream")
        self._wake.set()
        return self._answer(operation.operation_id, answer, timeout_s)

    async def _answer(self, operation_id: int, answer: "asyncio.Future[Any]", timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            raise PodiumError(Code.DEADLINE, "the audit service did not answer in time") from None
        finally:
            # What was not answered, nobody will look at any more: audit must not do it once it has time.
            is_given_up = self._waiting.pop(operation_id, None) is not None
            if is_given_up and self._queue.pop(operation_id, None) is None:
                self._cancelled.append(operation_id)
                self._wake.set()

    async def _serve(self) -> None:
        """Live as long as one stream does."""
        failure = PodiumError(Code.AUDIT_UNAVAILABLE, "the audit service closed the stream")
        try:
            ended = await exchange(self._stub.Perform(), self._wake, self._next_message, self._take)
            failure = _meaning(ended) or failure
        finally:
            self._fail_all(failure)

    def _fail_all(self, failure: PodiumError) -> None:
        self._stream = None
        self._queue.clear()
        self._cancelled.clear()
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(PodiumError(failure.code, failure.message, reason=failure.reason))

    def _next_message(self) -> pb.PerformRequest | None:
        if not (self._queue or self._cancelled):
            return None
        message = pb.PerformRequest(cancelled_ids=self._cancelled)
        self._cancelled.clear()
        size = 0
        taken: list[pb.Operation] = []
        for operation in self._queue.values():
            size += operation.ByteSize()
            if taken and size > _MAX_MESSAGE_BYTES:
                break
            taken.append(operation)
        for operation in taken:
            del self._queue[operation.operation_id]
        message.operations.extend(taken)
        return message

    def _take(self, message: pb.PerformResponse) -> None:
        for result in message.results:
            answer = self._waiting.pop(result.operation_id, None)
            if answer is None or answer.done():
                continue
            kind = result.WhichOneof("answer")
            if kind == "status":
                answer.set_exception(unpacked_error(result.status, _SERVICE))
            else:
                answer.set_result(getattr(result, kind))


def _meaning(error: BaseException | None) -> PodiumError | None:
    """Return what a broken stream means for what waits on it: audit is away, unless it said more."""
    if not isinstance(error, grpc.aio.AioRpcError):
        return None
    told = from_rpc_error(error, _SERVICE)
    if told.code in _BROKEN:
        return PodiumError(Code.AUDIT_UNAVAILABLE, "the audit service cannot be reached")
    return told
