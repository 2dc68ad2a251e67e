"""Provider failures become Podium's own words, with the right advice."""

from email.utils import formatdate

import pytest

from podium_core.domain.errors import Code
from podium_router import failures
from podium_router.breaker import Sign

NOW_NS = 1_790_000_000_000_000_000
SECRET = {"error": {"message": "key sk-123 is wrong", "code": "sk-123", "type": "sk-123"}}


@pytest.mark.parametrize(
    ("status", "code", "reason", "retryable", "sign"),
    [
        (400, Code.PROVIDER_FAILED, "PROVIDER_REFUSED", "false", Sign.ALIVE),
        (401, Code.PROVIDER_FAILED, "PROVIDER_REFUSED", "false", Sign.FAILED),
        (403, Code.PROVIDER_FAILED, "PROVIDER_REFUSED", "false", Sign.FAILED),
        (404, Code.PROVIDER_FAILED, "PROVIDER_REFUSED", "false", Sign.ALIVE),
        (302, Code.PROVIDER_FAILED, "PROVIDER_REFUSED", "false", Sign.ALIVE),
        (204, Code.PROVIDER_FAILED, "PROVIDER_REFUSED", "false", Sign.ALIVE),
        (408, Code.PROVIDER_FAILED, "PROVIDER_FAILED", "true", Sign.FAILED),
        (429, Code.RATE_LIMITED, "PROVIDER_RATE_LIMITED", "true", Sign.ALIVE),
        (500, Code.PROVIDER_FAILED, "PROVIDER_FAILED", "true", Sign.FAILED),
        (529, Code.PROVIDER_FAILED, "PROVIDER_FAILED", "true", Sign.FAILED),
    ],
)
def test_statuses(status: int, code: Code, reason: str, retryable: str, sign: Sign) -> None:
    error = failures.refused(status, {}, SECRET, NOW_NS)
    assert (error.code, error.reason) == (code, reason)
    assert error.metadata == {"status": str(status), "retryable": retryable}
    assert "sk-123" not in f"{error.message} {error.metadata}"
    assert failures.sign_of(error) is sign


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": formatdate(NOW_NS / 1e9 + 30, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(NOW_NS / 1e9 - 30, usegmt=True)}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}, 3600.0),
        ({"retry-after": "99999999999"}, 3600.0),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert failures.refused(429, headers, None, NOW_NS).retry_after_s == seconds
    assert failures.refused(503, headers, None, NOW_NS).retry_after_s == seconds


def test_known_words_of_the_provider_are_passed_on_as_facts() -> None:
    error = failures.refused(400, {}, {"error": {"code": "context_length_exceeded"}}, NOW_NS)
    assert error.metadata["provider_code"] == "context_length_exceeded"


def test_an_empty_purse_is_not_worth_a_retry() -> None:
    error = failures.refused(429, {}, {"error": {"code": "insufficient_quota"}}, NOW_NS)
    assert (error.code, error.metadata["retryable"]) == (Code.RATE_LIMITED, "false")


@pytest.mark.parametrize("body", [None, [], "x", {"error": None}, {"error": "x"}, {"error": {"code": ["x"]}}])
def test_bodies_of_any_shape_are_survived(body: object) -> None:
    assert "provider_code" not in failures.refused(400, {}, body, NOW_NS).metadata


def test_silence_and_breakage_speak_against_the_worker() -> None:
    for error in (
        failures.unreachable(),
        failures.connection_lost(),
        failures.stream_cut(),
        failures.stream_error(),
        failures.bad_answer(),
        failures.silent(),
        failures.too_slow(),
    ):
        assert failures.sign_of(error) is Sign.FAILED
    assert failures.sign_of(failures.answer_too_large(1)) is Sign.ALIVE
