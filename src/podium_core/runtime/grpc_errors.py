"""`PodiumError` over gRPC: packed into a status with ErrorInfo and RetryInfo, and unpacked again.

The only place that knows how codes and statuses relate. What a server did not mean to say never leaves
it: any other exception becomes INTERNAL with a fixed text, and its trace goes to the log.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, Final, NoReturn, TypeVar

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from podium_core.domain.errors import Code, PodiumError

STATUS_OF_CODE: Final = {
    Code.INVALID_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    Code.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    Code.POLICY_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    Code.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Code.CONFLICT: grpc.StatusCode.ABORTED,
    Code.TOO_LARGE: grpc.StatusCode.OUT_OF_RANGE,
    Code.BUDGET_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.RATE_LIMITED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.PLAN_INVALID: grpc.StatusCode.INTERNAL,
    Code.PROVIDER_FAILED: grpc.StatusCode.UNAVAILABLE,
    Code.DEADLINE: grpc.StatusCode.DEADLINE_EXCEEDED,
    Code.CANCELLED: grpc.StatusCode.CANCELLED,
    Code.AUDIT_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Code.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Code.INTERNAL: grpc.StatusCode.INTERNAL,
}
"""Every code has exactly one status; the way back is the ErrorInfo, since codes share statuses."""

_log = logging.getLogger(__name__)

_TRANSPORT: Final[dict[grpc.StatusCode, tuple[Code, str | None, str]]] = {
    grpc.StatusCode.UNAVAILABLE: (Code.UNAVAILABLE, None, "the {} service cannot be reached"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (Code.UNAVAILABLE, "OVERLOADED", "the {} service is overloaded"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (Code.DEADLINE, None, "the {} service did not answer in time"),
    grpc.StatusCode.CANCELLED: (Code.CANCELLED, None, "the call to the {} service was cancelled"),
    grpc.StatusCode.UNIMPLEMENTED: (Code.INTERNAL, "CALL_UNKNOWN", "the {} service does not know this call"),
}
"""What a status means that no servicer of ours chose, but gRPC itself."""

INTERNAL_MESSAGE: Final = "internal error"
MAX_MESSAGE_CHARS: Final = 1_000
"""Longer messages are cut: a status travels in HTTP/2 headers, which are bounded."""

_DOMAIN: Final = "podium"
_CODE_KEY: Final = "code"
_PARAM_KEY: Final = "param"
_DETAILS_KEY: Final = "grpc-status-details-bin"
_MAX_FACTS: Final = 16
_MAX_FACT_CHARS: Final = 200
_NANOS: Final = 1_000_000_000
_TOO_LARGE_TEXT: Final = "larger than max"
_Detail = TypeVar("_Detail", bound=Message)


async def abort_with(context: grpc.aio.ServicerContext[Any, Any], error: PodiumError) -> NoReturn:
    """End the call with the status that carries `error`."""
    status = STATUS_OF_CODE[error.code]
    message = error.message[:MAX_MESSAGE_CHARS]
    await context.abort(status, message, ((_DETAILS_KEY, _pack(error, status, message)),))
    raise AssertionError("abort returns never")


def from_rpc_error(error: grpc.aio.AioRpcError, service: str) -> PodiumError:
    """Return the PodiumError that `service` sent, or the nearest one for what the transport says.

    Text that did not come from a PodiumError of the other side is never passed on.
    """
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            unpacked = _unpack(value)
            if unpacked is not None:
                return unpacked
    return _from_transport(error, service)


def packed_error(error: PodiumError) -> bytes:
    """Return the serialized `google.rpc.Status` that carries `error`, for answers inside a stream."""
    return _pack(error, STATUS_OF_CODE[error.code], error.message[:MAX_MESSAGE_CHARS])


def unpacked_error(data: bytes, service: str) -> PodiumError:
    """Return the PodiumError that `service` packed; INTERNAL when it is none."""
    return _unpack(data) or PodiumError(Code.INTERNAL, f"the {service} service failed")


def rpc_errors(service: str) -> AbstractContextManager[None]:
    """Translate gRPC errors of calls to `service` inside the block into PodiumErrors."""
    return _Translation(service)


def status_errors(
    context: grpc.aio.ServicerContext[Any, Any], method: str
) -> AbstractAsyncContextManager[None]:
    """End the call of `method` with the right status when the block raises.

    Deliberate aborts and cancellation pass through. What is no PodiumError is a defect: it is logged, and
    the caller hears INTERNAL and nothing else.
    """
    return _StatusErrors(context, method)


class _StatusErrors:
    __slots__ = ("_context", "_method")

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any], method: str) -> None:
        self._context = context
        self._method = method

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, grpc.aio.AbortError):
            return
        if isinstance(error, PodiumError):
            await abort_with(self._context, error)
        if self._context.cancelled() or isinstance(error, grpc.aio.InternalError):
            # The caller left, at the latest while an answer was being written to it: nobody's mistake.
            raise asyncio.CancelledError from None
        _log.error("call failed unexpectedly", exc_info=error, extra={"method": self._method})
        await abort_with(self._context, PodiumError(Code.INTERNAL, INTERNAL_MESSAGE))


class _Translation:
    """A plain class, since a generator-based context manager costs more than the translation."""

    __slots__ = ("_service",)

    def __init__(self, service: str) -> None:
        self._service = service

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, grpc.aio.AioRpcError):
            raise from_rpc_error(error, self._service) from None


def _pack(error: PodiumError, status: grpc.StatusCode, message: str) -> bytes:
    info = ErrorInfo(reason=error.reason, domain=_DOMAIN)
    for key, value in list(error.metadata.items())[:_MAX_FACTS]:
        info.metadata[key[:_MAX_FACT_CHARS]] = value[:_MAX_FACT_CHARS]
    info.metadata[_CODE_KEY] = error.code.value
    if error.param is not None:
        info.metadata[_PARAM_KEY] = error.param[:_MAX_FACT_CHARS]
    number: int = status.value[0]
    packed = Status(code=number, message=message)
    packed.details.add().Pack(info)
    if error.retry_after_s is not None:
        nanos = max(0, round(error.retry_after_s * _NANOS))
        delay = Duration(seconds=nanos // _NANOS, nanos=nanos % _NANOS)
        packed.details.add().Pack(RetryInfo(retry_delay=delay))
    data: bytes = packed.SerializeToString()
    return data


def _unpack(data: bytes) -> PodiumError | None:
    try:
        status = Status.FromString(data)
        info = _detail(status.details, ErrorInfo())
        retry = _detail(status.details, RetryInfo())
    except DecodeError:
        return None
    if info is None or info.domain != _DOMAIN:
        return None
    metadata = dict(info.metadata)
    try:
        code = Code(metadata.pop(_CODE_KEY, ""))
    except ValueError:
        return None
    delay_s = None if retry is None else retry.retry_delay.seconds + retry.retry_delay.nanos / _NANOS
    return PodiumError(
        code,
        status.message,
        reason=info.reason,
        param=metadata.pop(_PARAM_KEY, None),
        metadata=metadata,
        retry_after_s=delay_s,
    )


def _detail(details: Sequence[AnyMessage], into: _Detail) -> _Detail | None:
    for detail in details:
        if detail.Unpack(into):
            return into
    return None


def _from_transport(error: grpc.aio.AioRpcError, service: str) -> PodiumError:
    status = error.code()
    if status is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE_TEXT in (error.details() or ""):
        return PodiumError(Code.TOO_LARGE, f"the message to or from the {service} service is too large")
    code, reason, text = _TRANSPORT.get(status, (Code.INTERNAL, None, "the {} service failed"))
    if code is Code.UNAVAILABLE and service == "audit":
        code = Code.AUDIT_UNAVAILABLE
    return PodiumError(code, text.format(service), reason=reason)
