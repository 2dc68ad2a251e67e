"""Every error of the vocabulary crosses gRPC and comes back the same."""

import asyncio
from typing import Any, NoReturn

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import (
    MAX_MESSAGE_CHARS,
    STATUS_OF_CODE,
    abort_with,
    from_rpc_error,
    rpc_errors,
    status_errors,
)

Metadata = tuple[tuple[str, str | bytes], ...]


class RecordingContext:
    """The part of a servicer's context that ends calls."""

    def __init__(self, *, is_cancelled: bool = False) -> None:
        self.ended: tuple[grpc.StatusCode, str, Metadata] | None = None
        self._is_cancelled = is_cancelled

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Metadata = ()
    ) -> NoReturn:
        self.ended = (code, details, trailing_metadata)
        raise grpc.aio.AbortError

    def cancelled(self) -> bool:
        return self._is_cancelled


async def _sent(error: PodiumError) -> grpc.aio.AioRpcError:
    """Return what the other side's call raises."""
    context: Any = RecordingContext()
    with pytest.raises(grpc.aio.AbortError):
        await abort_with(context, error)
    assert context.ended is not None
    code, details, trailing = context.ended
    return _rpc_error(code, details, trailing)


def _rpc_error(code: grpc.StatusCode, details: str = "", trailing: Metadata = ()) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)


# Lone surrogates cannot be sent; `code` and `param` are the wire's own keys.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
facts = st.dictionaries(
    st.from_regex(r"[a-z][a-z_]{0,30}", fullmatch=True).filter(lambda key: key not in ("code", "param")),
    texts,
    max_size=16,
)


@given(
    code=st.sampled_from(Code),
    message=texts,
    reason=st.from_regex(r"[A-Z][A-Z_]{0,40}", fullmatch=True),
    param=st.none() | texts,
    metadata=facts,
    retry_after_ms=st.none() | st.integers(0, 10_000_000),
)
async def test_every_error_survives_the_wire(
    code: Code,
    message: str,
    reason: str,
    param: str | None,
    metadata: dict[str, str],
    retry_after_ms: int | None,
) -> None:
    delay_s = None if retry_after_ms is None else retry_after_ms / 1_000
    error = PodiumError(code, message, reason=reason, param=param, metadata=metadata, retry_after_s=delay_s)
    received = from_rpc_error(await _sent(error), "router")
    assert (received.code, received.message, received.reason) == (code, message, reason)
    assert (received.param, received.metadata) == (param, metadata)
    assert received.retry_after_s == (None if delay_s is None else pytest.approx(delay_s))


@pytest.mark.parametrize("code", Code)
async def test_every_code_has_a_status_and_comes_back_as_itself(code: Code) -> None:
    assert set(STATUS_OF_CODE) == set(Code)
    sent = await _sent(PodiumError(code, "why"))
    assert sent.code() is STATUS_OF_CODE[code]
    assert sent.code() not in (grpc.StatusCode.OK, grpc.StatusCode.UNKNOWN)
    assert from_rpc_error(sent, "router").code is code


async def test_long_texts_are_cut_to_fit_the_headers() -> None:
    error = PodiumError(
        Code.INVALID_REQUEST,
        "\N{SNOWMAN}" * 100_000,
        param="p" * 100_000,
        metadata={f"{n}{'k' * 10_000}": "v" * 10_000 for n in range(1_000)},
    )
    sent = await _sent(error)
    received = from_rpc_error(sent, "router")
    assert received.message == "\N{SNOWMAN}" * MAX_MESSAGE_CHARS
    assert sum(len(value) for _, value in sent.trailing_metadata()) < 16_000


@pytest.mark.parametrize(
    ("status", "service", "code"),
    [
        (grpc.StatusCode.UNAVAILABLE, "router", Code.UNAVAILABLE),
        (grpc.StatusCode.UNAVAILABLE, "audit", Code.AUDIT_UNAVAILABLE),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "audit", Code.AUDIT_UNAVAILABLE),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "audit", Code.DEADLINE),
        (grpc.StatusCode.CANCELLED, "router", Code.CANCELLED),
        (grpc.StatusCode.UNIMPLEMENTED, "router", Code.INTERNAL),
        (grpc.StatusCode.UNKNOWN, "router", Code.INTERNAL),
        (grpc.StatusCode.DATA_LOSS, "router", Code.INTERNAL),
    ],
)
def test_what_the_transport_says_is_translated_without_its_text(
    status: grpc.StatusCode, service: str, code: Code
) -> None:
    error = from_rpc_error(_rpc_error(status, "connect to 10.0.0.7:7053 failed"), service)
    assert error.code is code
    assert "10.0.0.7" not in error.message
    assert service in error.message


@pytest.mark.parametrize(
    "details",
    [
        b"\xff\xff\xff",
        Status(code=13, message="x").SerializeToString(),
        b"\x1a\x08\n\x02ab\x12\x02\xff\xff",
    ],
)
def test_foreign_or_broken_details_are_ignored(details: bytes) -> None:
    error = _rpc_error(grpc.StatusCode.INTERNAL, "secret", (("grpc-status-details-bin", details),))
    assert from_rpc_error(error, "router").message == "the router service failed"


@pytest.mark.parametrize(
    "info",
    [
        ErrorInfo(reason="X", domain="example.com", metadata={"code": "INTERNAL"}),
        ErrorInfo(reason="X", domain="podium", metadata={"code": "FROM_THE_FUTURE"}),
        ErrorInfo(reason="X", domain="podium"),
    ],
)
def test_details_of_another_domain_or_version_fall_back_to_the_status(info: Any) -> None:
    status = Status(code=14, message="secret")
    status.details.add().Pack(info)
    trailing = (("grpc-status-details-bin", status.SerializeToString()),)
    error = from_rpc_error(_rpc_error(grpc.StatusCode.UNAVAILABLE, "secret", trailing), "router")
    assert error.code is Code.UNAVAILABLE
    assert "secret" not in error.message


def test_the_client_block_leaves_other_exceptions_alone() -> None:
    with pytest.raises(KeyError), rpc_errors("router"):
        raise KeyError("mine")
    with pytest.raises(PodiumError) as failed, rpc_errors("router"):
        raise PodiumError(Code.CONFLICT, "mine")
    assert failed.value.code is Code.CONFLICT


async def test_a_cancelled_call_is_not_answered_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    context: Any = RecordingContext(is_cancelled=True)
    with pytest.raises(asyncio.CancelledError):  # gRPC itself would log any other exception
        async with status_errors(context, "/m"):
            raise ValueError("late")
    assert context.ended is None
    assert caplog.records == []
