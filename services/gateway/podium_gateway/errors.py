"""The public edge of the error vocabulary: one table from `Code` to OpenAI's errors, one error body.

The official clients branch on the status alone and retry 408, 409, 429 and 5xx by themselves, so every
row that a retry cannot help says `x-should-retry: false`: else one bad run is paid for three times.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.http_status import HTTP_STATUS_OF_CODE

_FIRST_RETRIED_STATUS = 408


@dataclass(frozen=True, slots=True)
class HttpRow:
    """How one kind of error leaves: status, OpenAI error type, and whether trying again can help."""

    status: int
    type: str
    is_retryable: bool = False


_TYPE_OF_CODE: Mapping[Code, str] = {
    Code.INVALID_REQUEST: "invalid_request_error",
    Code.UNAUTHENTICATED: "authentication_error",
    Code.POLICY_DENIED: "permission_error",
    Code.NOT_FOUND: "invalid_request_error",
    Code.CONFLICT: "invalid_request_error",
    Code.TOO_LARGE: "invalid_request_error",
    Code.BUDGET_EXHAUSTED: "insufficient_quota",
    Code.RATE_LIMITED: "rate_limit_error",
    Code.PLAN_INVALID: "server_error",
    Code.PROVIDER_FAILED: "server_error",
    Code.DEADLINE: "server_error",
    Code.CANCELLED: "server_error",
    Code.AUDIT_UNAVAILABLE: "server_error",
    Code.UNAVAILABLE: "server_error",
    Code.INTERNAL: "server_error",
}
_RETRY_AFTER_S: Mapping[Code, float] = {Code.AUDIT_UNAVAILABLE: 2.0}
"""For who cannot say it himself: the log was waited for already, and replicas find back within seconds."""
_RETRYABLE = frozenset({Code.RATE_LIMITED, Code.PROVIDER_FAILED, Code.AUDIT_UNAVAILABLE, Code.UNAVAILABLE})

HTTP_TABLE: Mapping[Code, HttpRow] = {
    code: HttpRow(HTTP_STATUS_OF_CODE[code], _TYPE_OF_CODE[code], is_retryable=code in _RETRYABLE)
    for code in Code
}

# Reasons that behave unlike their code. A plan made on a pool that has just changed was never performed,
# so the same request on the fresh pool is the right next move.
ROW_OF_REASON: Mapping[str, HttpRow] = {
    "STALE_POOL": HttpRow(503, "server_error", is_retryable=True),
    "METHOD_NOT_ALLOWED": HttpRow(405, "invalid_request_error"),
    "SEAL_FAILED": HttpRow(503, "server_error"),
    # It would be paid for again.
    "ANSWER_NOT_HELD": HttpRow(429, "rate_limit_error"),
    # Asked twice already, and paid for twice.
    "SCHEMA_NOT_MET": HttpRow(502, "server_error"),
    "TOOL_CHOICE_NOT_MET": HttpRow(502, "server_error"),
    "REQUEST_OVER_LIMIT": HttpRow(429, "rate_limit_error"),
}

INTERNAL_MESSAGE = "internal error of Podium; quote the run id of this response to the operator"


def http_row(error: PodiumError) -> HttpRow:
    """Return the row for an error: by its reason where that is special, else by its code."""
    return ROW_OF_REASON.get(error.reason) or HTTP_TABLE[error.code]


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


_ANTHROPIC_TYPE_OF_STATUS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def anthropic_error_body(error: PodiumError) -> dict[str, object]:
    """Return the body that Anthropic's clients parse; `code` and `param` are Podium's own additions."""
    described = cast("dict[str, object]", error_body(error)["error"])
    kind = _ANTHROPIC_TYPE_OF_STATUS.get(http_row(error).status, "api_error")
    if error.code is Code.BUDGET_EXHAUSTED:
        kind = "billing_error"
    return {
        "type": "error",
        "error": {**described, "type": kind},
        "request_id": error.metadata.get("run_id"),
    }


def error_headers(error: PodiumError) -> dict[str, str]:
    """Return the headers that tell a client whether and when to try again."""
    row = http_row(error)
    headers: dict[str, str] = {}
    if row.is_retryable:
        wait_s = _RETRY_AFTER_S.get(error.code) if error.retry_after_s is None else error.retry_after_s
        if wait_s is not None:
            headers["retry-after"] = str(max(1, math.ceil(wait_s)))
            headers["retry-after-ms"] = str(math.ceil(wait_s * 1_000))
    elif row.status >= _FIRST_RETRIED_STATUS:
        headers["x-should-retry"] = "false"
    if row.status == HTTP_TABLE[Code.UNAUTHENTICATED].status:
        headers["www-authenticate"] = "Bearer"
    if "run_id" in error.metadata:
        headers["x-podium-run-id"] = error.metadata["run_id"]
    return headers
