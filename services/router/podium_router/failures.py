"""What went wrong at a provider, in Podium's words. No text of the provider's is ever passed on."""

import math
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, cast

from podium_core.domain.errors import Code, PodiumError
from podium_router.breaker import Sign

_MAX_RETRY_AFTER_S: Final = 3_600.0
_MS: Final = 1_000.0
_NS: Final = 1_000_000_000

_QUOTA_GONE: Final = "insufficient_quota"
_KNOWN_PROVIDER_CODES: Final = frozenset(
    {"context_length_exceeded", "content_policy_violation", "content_filter", _QUOTA_GONE}
)
"""Words of the provider's that callers act on; they are repeated from here, not from the answer."""

_KEY_REFUSED: Final = frozenset({"401", "403"})
_PASSING: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY})


def unreachable() -> PodiumError:
    """No connection to the provider could be made; nothing was sent."""
    return _failed("the worker's provider cannot be reached", "PROVIDER_UNREACHABLE", retryable=True)


def no_connection_in_time() -> PodiumError:
    """The provider did not take a connection in time; nothing was sent."""
    return _failed(
        "the worker's provider did not take a connection in time",
        "PROVIDER_CONNECT_TIMEOUT",
        retryable=True,
    )


def connection_lost() -> PodiumError:
    """The connection broke after the request may have been sent."""
    return _failed(
        "the connection to the worker's provider broke", "PROVIDER_CONNECTION_LOST", retryable=True
    )


def stream_cut() -> PodiumError:
    """The stream ended without the provider saying that the answer is complete."""
    return _failed("the worker's answer was cut off", "PROVIDER_STREAM_CUT", retryable=True)


def stream_error() -> PodiumError:
    """The provider reported an error inside its answer."""
    return _failed("the worker's provider reported an error in its answer", "PROVIDER_ERROR", retryable=True)


def bad_answer() -> PodiumError:
    """The answer is no chat completion."""
    return _failed(
        "the worker's provider gave an answer that cannot be read", "PROVIDER_BAD_ANSWER", retryable=True
    )


def answer_too_large(limit_bytes: int) -> PodiumError:
    """The answer is larger than this router takes."""
    return _failed(
        f"the worker's answer is larger than {limit_bytes} bytes",
        "PROVIDER_ANSWER_TOO_LARGE",
        retryable=False,
    )


def no_first_token() -> PodiumError:
    """A stream's first output did not come in time."""
    return PodiumError(
        Code.DEADLINE,
        "the worker's answer did not begin in time; limits.first_token_timeout_s in pool.yaml allows more",
        reason="PROVIDER_FIRST_TOKEN_TIMEOUT",
    )


def silent() -> PodiumError:
    """A stream paused for too long."""
    return PodiumError(
        Code.DEADLINE,
        "the worker's answer paused for too long; limits.idle_timeout_s in pool.yaml allows more",
        reason="PROVIDER_IDLE_TIMEOUT",
    )


def too_slow() -> PodiumError:
    """The answer was not complete when the time for it was over."""
    return PodiumError(Code.DEADLINE, "the worker did not answer in time", reason="WORKER_TIMEOUT")


def refused(status: int, headers: Mapping[str, str], body: object, now_ns: int) -> PodiumError:
    """Return the error for an HTTP answer other than success. Of `body` only known code words are used."""
    metadata = {"status": str(status)}
    known = _known_code(body)
    if known:
        metadata["provider_code"] = known
    retry_after_s = _retry_after_s(headers, now_ns)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return PodiumError(
            Code.RATE_LIMITED,
            "the worker's provider takes no more requests for now",
            reason="PROVIDER_RATE_LIMITED",
            metadata={**metadata, "retryable": "false" if known == _QUOTA_GONE else "true"},
            retry_after_s=retry_after_s,
        )
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING:
        return PodiumError(
            Code.PROVIDER_FAILED,
            f"the worker's provider failed with status {status}",
            reason="PROVIDER_FAILED",
            metadata={**metadata, "retryable": "true"},
            retry_after_s=retry_after_s,
        )
    return PodiumError(
        Code.PROVIDER_FAILED,
        f"the worker's provider refused the call with status {status}",
        reason="PROVIDER_REFUSED",
        metadata={**metadata, "retryable": "false"},
    )


def sign_of(error: PodiumError) -> Sign:
    """Say what a provider's failure tells about the worker's health.

    A refused request or a rate limit comes from a living provider; a refused key makes every call fail.
    """
    if error.code is Code.RATE_LIMITED:
        return Sign.ALIVE
    if error.reason == "PROVIDER_REFUSED":
        return Sign.FAILED if error.metadata["status"] in _KEY_REFUSED else Sign.ALIVE
    if error.reason == "PROVIDER_ANSWER_TOO_LARGE":
        return Sign.ALIVE
    return Sign.FAILED


def _failed(message: str, reason: str, *, retryable: bool) -> PodiumError:
    return PodiumError(
        Code.PROVIDER_FAILED, message, reason=reason, metadata={"retryable": "true" if retryable else "false"}
    )


def _known_code(body: object) -> str:
    error = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str):
        return next((known for known in _KNOWN_PROVIDER_CODES if known == code), "")
    return ""


def _retry_after_s(headers: Mapping[str, str], now_ns: int) -> float | None:
    """Return the wait the provider asks for, in seconds: a number, or a date against our clock."""
    delay_s = _number(headers.get("retry-after-ms", ""))
    if delay_s is not None:
        delay_s /= _MS
    else:
        text = headers.get("retry-after", "")
        delay_s = _number(text)
        if delay_s is None:
            delay_s = _until(text, now_ns)
    return None if delay_s is None else min(max(delay_s, 0.0), _MAX_RETRY_AFTER_S)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(text: str, now_ns: int) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return date.timestamp() - now_ns / _NS
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
