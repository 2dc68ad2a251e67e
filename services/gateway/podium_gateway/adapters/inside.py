"""Errors of calls inside the house: a misconfigured certificate must never look like the client's fault."""

import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar

import grpc

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_client import retry_unary
from podium_core.runtime.grpc_errors import from_rpc_error

T = TypeVar("T")

_AUDIT = "audit"
_log = logging.getLogger(__name__)


class Inside:
    """Around a call to `service`: gRPC errors become PodiumErrors, refused identities become INTERNAL.

    A class, since it costs less than a generator-based context manager and is entered for every call.
    """

    __slots__ = ("_service",)

    def __init__(self, service: str) -> None:
        self._service = service

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, grpc.aio.AioRpcError):
            raise public_error(from_rpc_error(error, self._service), self._service) from None


def public_error(error: PodiumError, service: str) -> PodiumError:
    """Return what a client may hear of an error that `service` answered."""
    if error.code is Code.UNAUTHENTICATED or error.reason == "CALLER_NOT_ALLOWED":
        _log.error("refused by a service", extra={"peer": service, "reason": error.reason})
        return PodiumError(Code.INTERNAL, f"the {service} service does not know this gateway")
    return error


async def asked_of_audit(call: Callable[[float], Awaitable[T]], *, budget_s: float, clock: Clock) -> T:
    """Make a repeatable call to audit, waiting out a restart of it for `budget_s` seconds in all.

    Raises PodiumError: what a client may hear of audit's refusal; AUDIT_UNAVAILABLE without an answer.
    """
    try:
        return await retry_unary(call, service=_AUDIT, budget_s=budget_s, clock=clock)
    except PodiumError as error:
        if error.code is Code.DEADLINE:
            raise PodiumError(Code.AUDIT_UNAVAILABLE, "audit did not answer in time") from None
        raise public_error(error, _AUDIT) from None
