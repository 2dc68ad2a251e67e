"""Errors of calls inside the house: a misconfigured certificate must never look like the client's fault."""

import logging
from types import TracebackType

import grpc

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import from_rpc_error

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
