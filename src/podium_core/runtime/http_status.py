"""The HTTP status of every error code: one table for every HTTP edge, beside gRPC's in `grpc_errors`."""

from typing import Final

from podium_core.domain.errors import Code

HTTP_STATUS_OF_CODE: Final = {
    Code.INVALID_REQUEST: 400,
    Code.UNAUTHENTICATED: 401,
    Code.POLICY_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.CONFLICT: 409,
    Code.TOO_LARGE: 413,
    Code.BUDGET_EXHAUSTED: 429,
    Code.RATE_LIMITED: 429,
    Code.PLAN_INVALID: 500,
    Code.PROVIDER_FAILED: 502,
    Code.DEADLINE: 504,
    Code.CANCELLED: 499,
    Code.AUDIT_UNAVAILABLE: 503,
    Code.UNAVAILABLE: 503,
    Code.INTERNAL: 500,
}
