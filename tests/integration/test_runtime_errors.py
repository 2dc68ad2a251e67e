"""What a caller hears when a servicer fails, over real gRPC."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_client import retry_unary
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.runtime.grpc_server import GrpcServer
from tests.fakes.echo_service import METHODS, Context, EchoService, Peer, echo_server
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S

SECRET = "postgres://user:hunter2@db"


@asynccontextmanager
async def serving(tls_dir: Path, service: EchoService, timeout_s: float = 5.0) -> AsyncIterator[Peer]:
    server = echo_server(tls_of(tls_dir, "router"), service)
    peer = Peer(await server.start(), tls_of(tls_dir, "gateway"), timeout_s=timeout_s)
    try:
        yield peer
    finally:
        await peer.channel.close()
        await server.stop(0)


async def _break(request: bytes, context: Context) -> bytes:
    raise RuntimeError(SECRET)


async def _break_after_two(request: bytes, context: Context) -> AsyncIterator[bytes]:
    yield b"1"
    yield b"2"
    raise RuntimeError(SECRET)


async def _break_joining(requests: AsyncIterator[bytes], context: Context) -> bytes:
    async for _ in requests:
        raise RuntimeError(SECRET)
    return b""


async def _break_passing(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request
        raise RuntimeError(SECRET)


async def test_all_four_kinds_of_method_answer(tls_dir: Path) -> None:
    async with serving(tls_dir, EchoService()) as peer:
        assert await peer.one_to_one(b"one") == b"one"
        assert [piece async for piece in peer.one_to_many(b"ab")] == [b"a", b"b"]
        assert await peer.many_to_one(b"a", b"b") == b"ab"
        assert [piece async for piece in peer.many_to_many(b"x", b"y")] == [b"x", b"y"]


async def test_a_defect_never_tells_its_text(tls_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = EchoService(_break, _break_after_two, _break_joining, _break_passing)
    async with serving(tls_dir, broken) as peer:
        calls = [
            peer.one_to_one(),
            anext(aiter(_all(peer.one_to_many()))),
            peer.many_to_one(b"x"),
            anext(aiter(_all(peer.many_to_many(b"x")))),
        ]
        for call in calls:
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await call
            said = f"{failed.value.details()} {failed.value.trailing_metadata()} {failed.value.debug_error_string()}"
            assert failed.value.code() is grpc.StatusCode.INTERNAL
            assert failed.value.details() == "internal error"
            assert "hunter2" not in said
            assert "RuntimeError" not in said
    defects = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(defects) == 4
    assert {record.__dict__["method"] for record in defects} == set(METHODS)


async def _all(stream: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    yield [message async for message in stream]


async def test_what_came_before_a_failing_stream_arrives_and_then_the_typed_error(tls_dir: Path) -> None:
    async def fail_after_two(request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"1"
        yield b"2"
        raise PodiumError(
            Code.PROVIDER_FAILED, "the provider hung up", reason="PROVIDER_CUT", retry_after_s=1.5
        )

    arrived: list[bytes] = []

    async def listen(peer: Peer) -> None:
        with rpc_errors("router"):
            async for piece in peer.one_to_many():
                arrived.append(piece)  # noqa: PERF401 - what came before the error must be kept

    async with serving(tls_dir, EchoService(one_to_many=fail_after_two)) as peer:
        with pytest.raises(PodiumError) as failed:
            await listen(peer)
    assert arrived == [b"1", b"2"]
    error = failed.value
    assert (error.code, error.reason, error.retry_after_s) == (Code.PROVIDER_FAILED, "PROVIDER_CUT", 1.5)


async def test_a_deliberate_abort_passes_unchanged(tls_dir: Path) -> None:
    async def abort(request: bytes, context: Context) -> bytes:
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "on purpose")

    async with serving(tls_dir, EchoService(one_to_one=abort)) as peer:
        with pytest.raises(grpc.aio.AioRpcError, match="on purpose") as failed:
            await peer.one_to_one()
    assert failed.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_the_deadline_is_an_error_of_its_own_and_cancels_the_servicer(tls_dir: Path) -> None:
    cancelled = asyncio.Event()

    async def hang(request: bytes, context: Context) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return b""

    async with serving(tls_dir, EchoService(one_to_one=hang), timeout_s=0.1) as peer:
        with pytest.raises(PodiumError) as failed, rpc_errors("router"):
            await peer.one_to_one()
        assert failed.value.code is Code.DEADLINE
        await asyncio.wait_for(cancelled.wait(), PATIENCE_S)


async def test_a_caller_that_leaves_closes_the_servicers_generator(
    tls_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed = asyncio.Event()

    async def endless(request: bytes, context: Context) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"more"
                await asyncio.sleep(0)
        finally:
            closed.set()

    async with serving(tls_dir, EchoService(one_to_many=endless)) as peer:
        stream = peer.one_to_many()
        assert await stream.read() == b"more"
        stream.cancel()
        await asyncio.wait_for(closed.wait(), PATIENCE_S)
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_servicer_that_fails_while_being_cancelled_disturbs_nobody(
    tls_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def fail_late(request: bytes, context: Context) -> bytes:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
            raise PodiumError(Code.CANCELLED, "the run was cancelled")

    async with serving(tls_dir, EchoService(one_to_one=fail_late)) as peer:
        call = asyncio.create_task(peer.one_to_one())
        await started.wait()
        call.cancel()
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
        await asyncio.sleep(0.05)
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_too_large_a_message_is_told_apart_from_overload(tls_dir: Path) -> None:
    server = GrpcServer(
        listen="127.0.0.1:0",
        tls=tls_of(tls_dir, "router"),
        permissions=dict.fromkeys(METHODS, frozenset({"gateway"})),
        max_message_bytes=1_000,
        max_concurrent_rpcs=1,
    )
    started = asyncio.Event()

    async def hang(request: bytes, context: Context) -> bytes:
        started.set()
        await asyncio.Event().wait()
        return b""

    EchoService(one_to_one=hang).add_to(server.server)
    peer = Peer(await server.start(), tls_of(tls_dir, "gateway"))
    with pytest.raises(PodiumError) as too_large, rpc_errors("router"):
        await peer.one_to_one(b"x" * 2_000)
    first = asyncio.create_task(peer.one_to_one())
    await started.wait()
    with pytest.raises(PodiumError) as overloaded, rpc_errors("router"):
        await peer.one_to_one()
    first.cancel()
    await peer.channel.close()
    await server.stop(0)
    assert too_large.value.code is Code.TOO_LARGE
    assert (overloaded.value.code, overloaded.value.reason) == (Code.UNAVAILABLE, "OVERLOADED")


async def test_an_unknown_method_is_a_defect_of_ours(tls_dir: Path) -> None:
    async with serving(tls_dir, EchoService()) as peer:
        with pytest.raises(PodiumError) as failed, rpc_errors("router"):
            await peer.channel.unary_unary("/podium.test.v1.EchoService/Nothing")(b"", timeout=60)
    assert (failed.value.code, failed.value.reason) == (Code.INTERNAL, "CALL_UNKNOWN")


async def test_an_idempotent_call_outlives_a_restart_of_its_service(tls_dir: Path) -> None:
    first = echo_server(tls_of(tls_dir, "router"))
    port = await first.start()
    peer = Peer(port, tls_of(tls_dir, "gateway"))
    assert await peer.one_to_one() == b"hello"
    await first.stop(0)
    retried = asyncio.create_task(
        retry_unary(lambda _: peer.one_to_one(), service="router", budget_s=PATIENCE_S, clock=SystemClock())
    )
    await asyncio.sleep(0.2)
    assert not retried.done()
    second = GrpcServer(
        listen=f"127.0.0.1:{port}",
        tls=tls_of(tls_dir, "router"),
        permissions=dict.fromkeys(METHODS, frozenset({"gateway"})),
    )
    EchoService().add_to(second.server)
    await second.start()
    assert await retried == b"hello"
    await peer.channel.close()
    await second.stop(0)


async def test_stopping_lets_a_running_call_end(tls_dir: Path) -> None:
    release, started = asyncio.Event(), asyncio.Event()

    async def slow(request: bytes, context: Context) -> bytes:
        started.set()
        await release.wait()
        return b"done"

    server = echo_server(tls_of(tls_dir, "router"), EchoService(one_to_one=slow))
    peer = Peer(await server.start(), tls_of(tls_dir, "gateway"))
    running = asyncio.create_task(peer.one_to_one())
    await started.wait()
    stopping = asyncio.create_task(server.stop(5))
    await asyncio.sleep(0.05)
    release.set()
    assert await running == b"done"
    await stopping
    await peer.channel.close()
