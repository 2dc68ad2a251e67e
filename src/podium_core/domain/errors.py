"""The one error vocabulary: a coarse `Code`, a stable `reason`, and a message that says what to change.

A `PodiumError` survives gRPC (`podium_core.runtime.grpc_errors`) and is rendered at the public edge by
each HTTP front. Its message may reach a client, so it never holds content, keys, paths or exception text.
"""

from collections.abc import Mapping
from enum import StrEnum


class Code(StrEnum):
    """What kind of thing went wrong. Coarse on purpose: details live in `reason` and `metadata`."""

    INVALID_REQUEST = "INVALID_REQUEST"
    """The request can never succeed as it is; change it."""
    UNAUTHENTICATED = "UNAUTHENTICATED"
    """No valid credential came with the request."""
    POLICY_DENIED = "POLICY_DENIED"
    """The caller is known, and a rule forbids this."""
    NOT_FOUND = "NOT_FOUND"
    """The named thing does not exist, or not for this tenant."""
    CONFLICT = "CONFLICT"
    """The same id came with other content, or the caller's view of the pool is stale."""
    TOO_LARGE = "TOO_LARGE"
    """The body is over the stated limit."""
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    """A cap on money, calls, tokens or attempts is used up."""
    RATE_LIMITED = "RATE_LIMITED"
    """Too many requests now; retry after `retry_after_s`."""
    PLAN_INVALID = "PLAN_INVALID"
    """The Conductor gave no valid plan."""
    PROVIDER_FAILED = "PROVIDER_FAILED"
    """A worker's provider failed or could not be reached."""
    DEADLINE = "DEADLINE"
    """Time ran out."""
    CANCELLED = "CANCELLED"
    """The caller went away or somebody stopped the run."""
    AUDIT_UNAVAILABLE = "AUDIT_UNAVAILABLE"
    """The log cannot commit, so nothing may be dispatched."""
    UNAVAILABLE = "UNAVAILABLE"
    """A service of Podium is not there at the moment."""
    INTERNAL = "INTERNAL"
    """A defect of Podium. Its text stays inside."""


class PodiumError(Exception):
    """A failure that a caller may see and act on.

    `reason` is a stable UPPER_SNAKE word, finer than the code (docs/errors.md lists them all).
    `param` names the offending request field, if one is to blame. `metadata` holds short facts.
    `retry_after_s` is set only where trying again later can help.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        reason: str | None = None,
        param: str | None = None,
        metadata: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason if reason is not None else code.value
        self.param = param
        self.metadata: dict[str, str] = dict(metadata or {})
        self.retry_after_s = retry_after_s

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code.value}/{self.reason}: {self.message})"


def invalid(message: str, *, reason: str | None = None, param: str | None = None) -> PodiumError:
    """Return the error for a request that must be changed before it can succeed."""
    return PodiumError(Code.INVALID_REQUEST, message, reason=reason, param=param)
