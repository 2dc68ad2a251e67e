"""One stream of operations: each runs on its own, and answers that are ready together leave together."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Container, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from podium.audit.v1 import audit_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.runtime.grpc_errors import INTERNAL_MESSAGE, packed_error

_MAX_RUNNING: Final = 4096
"""Operations of one stream under way at once: more are refused, not queued."""
_PARTING_S: Final = 1.0
"""How long a caller may take to end its side of a stream that closes; by then it has heard of it."""

OPERATIONS: Final[Mapping[str, str]] = {
    "open_run": "OpenRun",
    "append": "Append",
    "begin_attempt": "BeginAttempt",
    "end_attempt": "EndAttempt",
    "seal": "Seal",
}
"""The calls that also come as operations of a stream: field of `Operation.call` to the call's name."""

_trace_context = TraceContextTextMapPropagator()
_log = logging.getLogger(__name__)

Handler = Callable[[Any], Awaitable[Any]]


def handlers_of(servicer: object, context: Any, allowed: Container[str]) -> dict[str, Handler]:
    """Return the servicer's own methods for those operations whose call is `allowed`, by field."""
    return {
        field: partial(getattr(servicer, method), context=context)
        for field, method in OPERATIONS.items()
        if method in allowed
    }


class Performing:
    """The operations of one stream. `handlers`: what this caller may use, by the field of the call."""

    def __init__(self, handlers: Mapping[str, Handler], closing: asyncio.Event) -> None:
        self._handlers = handlers
        self._closing = closing
        self._running: dict[int, asyncio.Task[None]] = {}
        self._ready: list[pb.OperationResult] = []
        self._untaken: list[int] = []
        self._wake = asyncio.Event()

    async def results(
        self, requests: AsyncIterator[pb.PerformRequest]
    ) -> AsyncGenerator[pb.PerformResponse, None]:
        """Perform what comes until the caller, or this service, wants no more and everything is answered."""
        reading = asyncio.create_task(self._read(requests))
        closing = asyncio.create_task(self._closing.wait())
        reading.add_done_callback(self._ended)
        closing.add_done_callback(self._ended)
        is_closing = False
        try:
            while True:
                if self._ready or self._untaken or (closing.done() and not is_closing):
                    is_closing = closing.done()
                    results, self._ready = self._ready, []
                    untaken, self._untaken = self._untaken, []
                    yield pb.PerformResponse(results=results, is_closing=is_closing, untaken_ids=untaken)
                elif reading.done() and not self._running:
                    return
                else:
                    self._wake.clear()
                    async with asyncio.timeout(_PARTING_S if is_closing and not self._running else None):
                        await self._wake.wait()
        except TimeoutError:
            return
        finally:
            # The caller is gone, or all is answered: what has not been committed is dropped.
            for task in (reading, closing, *self._running.values()):
                task.cancel()

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled():
            task.exception()  # a caller that is gone is nobody's mistake
        self._wake.set()

    async def _read(self, requests: AsyncIterator[pb.PerformRequest]) -> None:
        async for request in requests:
            for operation_id in request.cancelled_ids:
                task = self._running.get(operation_id)
                if task is not None:
                    task.cancel()
            for operation in request.operations:
                self._start(operation)

    def _start(self, operation: pb.Operation) -> None:
        operation_id = operation.operation_id
        if self._closing.is_set():
            self._untaken.append(operation_id)
            self._wake.set()
            return
        if len(self._running) >= _MAX_RUNNING:
            self._refuse(operation_id, _overloaded())
            return
        if operation_id in self._running:
            self._refuse(operation_id, invalid("the operation id is in use", param="operation_id"))
            return
        self._running[operation_id] = asyncio.create_task(self._perform(operation))

    async def _perform(self, operation: pb.Operation) -> None:
        operation_id = operation.operation_id
        result = pb.OperationResult(operation_id=operation_id)
        try:
            with _Refusal(result):
                if operation.traceparent:
                    otel_context.attach(_trace_context.extract({"traceparent": operation.traceparent}))
                kind = operation.WhichOneof("call")
                handler = self._handlers.get(kind or "")
                if kind is None or handler is None:
                    raise _not_allowed(kind)
                answer = await handler(getattr(operation, kind))
                getattr(result, kind).CopyFrom(answer)
        finally:
            self._running.pop(operation_id, None)
            self._wake.set()
        self._ready.append(result)

    def _refuse(self, operation_id: int, error: PodiumError) -> None:
        self._ready.append(pb.OperationResult(operation_id=operation_id, status=packed_error(error)))
        self._wake.set()


class _Refusal:
    """Turns what its block raises into the result's status; cancellation passes."""

    __slots__ = ("_result",)

    def __init__(self, result: pb.OperationResult) -> None:
        self._result = result

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        if not isinstance(error, PodiumError):
            _log.error("an operation failed unexpectedly", exc_info=error)
            error = PodiumError(Code.INTERNAL, INTERNAL_MESSAGE)
        self._result.status = packed_error(error)
        return True


def _overloaded() -> PodiumError:
    return PodiumError(
        Code.AUDIT_UNAVAILABLE,
        "the log takes no more now, so nothing was permitted: try again",
        retry_after_s=0.1,
    )


def _not_allowed(kind: str | None) -> PodiumError:
    if kind is None:
        return invalid("an operation must hold a call", param="operations")
    return PodiumError(Code.POLICY_DENIED, f"this caller may not call {kind}", reason="CALLER_NOT_ALLOWED")
