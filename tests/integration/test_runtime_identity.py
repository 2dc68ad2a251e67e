"""Who may talk to whom: real TLS handshakes on loopback."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from podium_cli.local_ca import create_local_ca, service_files
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.identity import TlsFiles, caller_of
from tests.fakes.echo_service import ONE_TO_ONE, Context, EchoService, Peer, echo_server
from tests.fakes.tls import tls_of
from tests.fakes.waiting import SOON_S, STALL_S


async def _say_caller(request: bytes, context: Context) -> bytes:
    return caller_of(context).encode()


@pytest.fixture
async def port(tls_dir: Path) -> AsyncIterator[int]:
    server = echo_server(tls_of(tls_dir, "router"), EchoService(one_to_one=_say_caller))
    yield await server.start()
    await server.stop(0)


async def _failure(peer: Peer, service: str = "router") -> PodiumError:
    with pytest.raises(PodiumError) as failed, rpc_errors(service):
        await peer.one_to_one()
    await peer.channel.close()
    return failed.value


async def _status_of(channel: Any) -> grpc.StatusCode:
    async with channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await channel.unary_unary(ONE_TO_ONE)(b"hello", timeout=60)
    return failed.value.code()


async def test_the_callers_name_comes_from_its_certificate(port: int, tls_dir: Path) -> None:
    peer = Peer(port, tls_of(tls_dir, "gateway"))
    assert await peer.one_to_one() == b"gateway"
    await peer.channel.close()


async def test_a_caller_without_permission_is_refused(port: int, tls_dir: Path) -> None:
    error = await _failure(Peer(port, tls_of(tls_dir, "conductor")))
    assert (error.code, error.reason) == (Code.POLICY_DENIED, "CALLER_NOT_ALLOWED")


async def test_a_method_nobody_listed_is_open_to_nobody(tls_dir: Path) -> None:
    server = GrpcServer(listen="127.0.0.1:0", tls=tls_of(tls_dir, "router"), permissions={})
    EchoService().add_to(server.server)
    error = await _failure(Peer(await server.start(), tls_of(tls_dir, "gateway")))
    await server.stop(0)
    assert error.code is Code.POLICY_DENIED


async def test_a_certificate_of_another_ca_is_refused(port: int, tls_dir: Path, tmp_path: Path) -> None:
    create_local_ca(tmp_path, ["gateway"])
    stranger = service_files(tmp_path, "gateway")
    trusting_us = TlsFiles(stranger.cert_file, stranger.key_file, tls_of(tls_dir, "gateway").ca_file)
    error = await _failure(Peer(port, trusting_us))
    assert error.code is Code.UNAVAILABLE


async def test_a_server_of_another_ca_is_refused(tls_dir: Path, tmp_path: Path) -> None:
    create_local_ca(tmp_path, ["router"])
    server = echo_server(service_files(tmp_path, "router"))
    error = await _failure(Peer(await server.start(), tls_of(tls_dir, "gateway")))
    await server.stop(0)
    assert error.code is Code.UNAVAILABLE


async def test_a_client_of_audit_refuses_the_routers_certificate(port: int, tls_dir: Path) -> None:
    error = await _failure(Peer(port, tls_of(tls_dir, "gateway"), service="audit"), "audit")
    assert error.code is Code.AUDIT_UNAVAILABLE


async def test_plain_text_is_refused(port: int) -> None:
    assert await _status_of(grpc.aio.insecure_channel(f"127.0.0.1:{port}")) is grpc.StatusCode.UNAVAILABLE


async def test_a_client_without_certificate_is_refused(port: int, tls_dir: Path) -> None:
    credentials = grpc.ssl_channel_credentials(tls_of(tls_dir, "gateway").ca_file.read_bytes())
    channel = grpc.aio.secure_channel(f"localhost:{port}", credentials)
    assert await _status_of(channel) is grpc.StatusCode.UNAVAILABLE


async def test_health_is_open_to_every_verified_peer_and_follows_the_server(tls_dir: Path) -> None:
    server = echo_server(tls_of(tls_dir, "router"))
    peer = Peer(await server.start(), tls_of(tls_dir, "cli"))
    stub = health_pb2_grpc.HealthStub(peer.channel)
    watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=60)
    assert (await stub.Check(health_pb2.HealthCheckRequest(), timeout=60)).status == 1
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    server.set_serving(False)
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    with pytest.raises(PodiumError) as failed, rpc_errors("router"):
        await stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=60)
    assert failed.value.code is Code.NOT_FOUND
    await peer.channel.close()
    await server.stop(0)


async def test_a_watcher_of_the_health_does_not_delay_the_stop(tls_dir: Path) -> None:
    server = echo_server(tls_of(tls_dir, "router"))
    peer = Peer(await server.start(), tls_of(tls_dir, "cli"))
    watch = health_pb2_grpc.HealthStub(peer.channel).Watch(health_pb2.HealthCheckRequest(), timeout=STALL_S)
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    await asyncio.wait_for(server.stop(STALL_S), SOON_S)
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    await peer.channel.close()


async def test_a_taken_port_is_named(port: int, tls_dir: Path) -> None:
    second = GrpcServer(listen=f"127.0.0.1:{port}", tls=tls_of(tls_dir, "router"), permissions={})
    with pytest.raises(PodiumError, match=f"cannot listen on 127.0.0.1:{port}"):
        await second.start()


async def test_a_missing_certificate_is_named(tls_dir: Path, tmp_path: Path) -> None:
    server = echo_server(TlsFiles(tmp_path / "none.pem", tmp_path / "none.pem", tmp_path / "none.pem"))
    with pytest.raises(PodiumError, match="the TLS certificate file"):
        await server.start()


async def test_a_key_of_another_certificate_is_named(tls_dir: Path) -> None:
    router, audit = tls_of(tls_dir, "router"), tls_of(tls_dir, "audit")
    server = echo_server(TlsFiles(router.cert_file, audit.key_file, router.ca_file))
    with pytest.raises(PodiumError, match="no matching pair"):
        await server.start()


async def test_a_ca_file_that_is_none_is_named(tls_dir: Path) -> None:
    router = tls_of(tls_dir, "router")
    server = echo_server(TlsFiles(router.cert_file, router.key_file, router.key_file))
    with pytest.raises(PodiumError, match="CA certificate is no PEM"):
        await server.start()
