"""The public error table: every code has a row, and no row invites a retry that pays twice."""

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_gateway.errors import HTTP_TABLE, error_body, error_headers, http_row


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_a_row_and_a_body(code: Code) -> None:
    error = PodiumError(code, "say what to change", param="x")
    row = http_row(error)
    assert 400 <= row.status < 600
    body = error_body(error)["error"]
    assert isinstance(body, dict)
    assert set(body) == {"message", "type", "code", "param"}
    assert body["code"] == code.value.lower()


@pytest.mark.parametrize("code", list(Code))
def test_clients_retry_only_what_helps(code: Code) -> None:
    row = HTTP_TABLE[code]
    headers = error_headers(PodiumError(code, "x"))
    would_retry = row.status in (408, 409, 429) or row.status >= 500
    if would_retry and not row.is_retryable:
        assert headers["x-should-retry"] == "false"
    if row.is_retryable:
        assert "x-should-retry" not in headers


def test_retry_after_is_whole_seconds_and_only_where_it_helps() -> None:
    limited = PodiumError(Code.RATE_LIMITED, "x", retry_after_s=1.2)
    assert error_headers(limited)["retry-after"] == "2"
    exhausted = PodiumError(Code.BUDGET_EXHAUSTED, "x", retry_after_s=1.2)
    assert "retry-after" not in error_headers(exhausted)


def test_the_text_of_a_defect_stays_inside() -> None:
    body = error_body(PodiumError(Code.INTERNAL, "secret-dsn"))
    assert "secret-dsn" not in str(body)


def test_a_refused_run_names_itself_in_the_header() -> None:
    error = PodiumError(Code.POLICY_DENIED, "x", metadata={"run_id": "run_1"})
    assert error_headers(error)["x-podium-run-id"] == "run_1"


def test_a_stale_pool_is_tried_again_and_a_missing_seal_is_not() -> None:
    assert http_row(PodiumError(Code.CONFLICT, "x", reason="STALE_POOL")).is_retryable
    unsealed = PodiumError(Code.AUDIT_UNAVAILABLE, "x", reason="SEAL_FAILED")
    assert error_headers(unsealed)["x-should-retry"] == "false"
