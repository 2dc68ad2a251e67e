"""The public edge of the error vocabulary: one table from `Code` to HTTP, one error body.

The official clients branch on the status alone and retry 408, 409, 429 and 5xx by themselves, so every
row that a retry cannot help says `x-should-retry: false`: else one bad run is paid for three times.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError

_FIRST_RETRIED_STATUS = 408


@dataclass(frozen=True, slots=True)
class HttpRow:
    """How one kind of error leaves: status, OpenAI error type, and whether trying again can help."""

    status: int
    type: str
    is_retryable: bool = False


HTTP_TABLE: Mapping[Code, HttpRow] = {
    Code.INVALID_REQUEST: HttpRow(400, "invalid_request_error"),
    Code.UNAUTHENTICATED: HttpRow(401, "authentication_error"),
    Code.POLICY_DENIED: HttpRow(403, "permission_error"),
    Code.NOT_FOUND: HttpRow(404, "invalid_request_error"),
    Code.CONFLICT: HttpRow(409, "invalid_request_error"),
    Code.TOO_LARGE: HttpRow(413, "invalid_request_error"),
    Code.BUDGET_EXHAUSTED: HttpRow(429, "insufficient_quota"),
    Code.RATE_LIMITED: HttpRow(429, "rate_limit_error", is_retryable=True),
    Code.PLAN_INVALID: HttpRow(500, "server_error"),
    Code.PROVIDER_FAILED: HttpRow(502, "server_error", is_retryable=True),
    Code.DEADLINE: HttpRow(504, "server_error"),
    Code.CANCELLED: HttpRow(499, "server_error"),
    Code.AUDIT_UNAVAILABLE: HttpRow(503, "server_error", is_retryable=True),
    Code.UNAVAILABLE: HttpRow(503, "server_error", is_retryable=True),
    Code.INTERNAL: HttpRow(500, "server_error"),
}

# Reasons that behave unlike their code. A plan made on a pool that has just changed was never performed,
# so the same request on the fresh pool is the right next move.
_ROW_OF_REASON: Mapping[str, HttpRow] = {
    "STALE_POOL": HttpRow(503, "server_error", is_retryable=True),
    "METHOD_NOT_ALLOWED": HttpRow(405, "invalid_request_error"),
    "SEAL_FAILED": HttpRow(503, "server_error"),
}

INTERNAL_MESSAGE = "internal error of Podium; quote the run id of this response to the operator"


def http_row(error: PodiumError) -> HttpRow:
    """Return the row for an error: by its reason where that is special, else by its code."""
    return _ROW_OF_REASON.get(error.reason) or HTTP_TABLE[error.code]


def error_body(error: PodiumError) -> dict[str, object]:
    """Return the body that OpenAI's clients parse. An INTERNAL error's own text stays inside."""
    message = INTERNAL_MESSAGE if error.code is Code.INTERNAL else error.message
    return {
        "error": {
            "message": message,
            "type": http_row(error).type,
            "code": error.reason.lower(),
            "param": error.param,
        }
    }


def error_headers(error: PodiumError) -> dict[str, str]:
    """Return the headers that tell a client whether and when to try again."""
    row = http_row(error)
    headers: dict[str, str] = {}
    if row.is_retryable:
        if error.retry_after_s is not None:
            headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    elif row.status >= _FIRST_RETRIED_STATUS:
        headers["x-should-retry"] = "false"
    if row.status == HTTP_TABLE[Code.UNAUTHENTICATED].status:
        headers["www-authenticate"] = "Bearer"
    if "run_id" in error.metadata:
        headers["x-podium-run-id"] = error.metadata["run_id"]
    return headers
