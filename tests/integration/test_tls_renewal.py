"""Certificates renewed on disk, as cert-manager does: taken by new connections, and never by a half of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import ClientConnectionError, ClientSession, TCPConnector, web

from podium_cli.local_ca import create_local_ca
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.http_server import listen
from podium_core.runtime.identity import SERVICES, TlsFiles
from podium_core.runtime.live_tls import LiveTls, server_context
from podium_core.runtime.settings_base import ServiceSettings
from podium_core.runtime.telemetry import configure_telemetry
from tests.fakes.echo_service import ONE_TO_MANY, ONE_TO_ONE, Context, EchoService, Peer, echo_server
from tests.fakes.mounted import MountedTls
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S, until


@pytest.fixture
def other_ca(tmp_path: Path) -> Path:
    """Certificates that nobody who trusts `tls_dir` believes, and the other way round."""
    create_local_ca(tmp_path / "other", SERVICES)
    return tmp_path / "other"


async def asked(port: int, tls: TlsFiles) -> bytes | grpc.StatusCode:
    """One call on a connection of its own."""
    peer = Peer(port, tls)
    try:
        return await peer.one_to_one()
    except grpc.aio.AioRpcError as error:
        return error.code()
    finally:
        await peer.channel.close()


async def test_a_server_shows_the_renewed_certificate_to_new_connections(
    tls_dir: Path, other_ca: Path, tmp_path: Path
) -> None:
    secret = MountedTls(tmp_path / "secret", tls_of(tls_dir, "router"))
    server = echo_server(secret.tls)
    port = await server.start()
    old, new = tls_of(tls_dir, "gateway"), tls_of(other_ca, "gateway")
    assert await asked(port, old) == b"hello"
    assert await asked(port, new) == grpc.StatusCode.UNAVAILABLE
    secret.renew(tls_of(other_ca, "router"))
    assert await asked(port, new) == b"hello"
    assert await asked(port, old) == grpc.StatusCode.UNAVAILABLE
    await server.stop(0)


async def test_a_pair_that_does_not_match_changes_nothing_until_it_is_mended(
    tls_dir: Path, other_ca: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = MountedTls(tmp_path / "secret", tls_of(tls_dir, "router"))
    server = echo_server(secret.tls)
    port = await server.start()
    good, new = tls_of(tls_dir, "router"), tls_of(other_ca, "router")
    for broken in (
        TlsFiles(good.cert_file, new.key_file, good.ca_file),
        TlsFiles(good.cert_file, good.key_file, good.key_file),
        TlsFiles(good.ca_file, good.key_file, good.ca_file),
    ):
        secret.renew(broken)
        assert await asked(port, tls_of(tls_dir, "gateway")) == b"hello"
        assert await asked(port, tls_of(tls_dir, "gateway")) == b"hello"
    kept = [record for record in caplog.records if "kept the last good certificate" in record.message]
    assert len(kept) == 3
    secret.renew(new)
    assert await asked(port, tls_of(other_ca, "gateway")) == b"hello"
    await server.stop(0)


async def test_a_missing_file_changes_nothing(tls_dir: Path, tmp_path: Path) -> None:
    secret = MountedTls(tmp_path / "secret", tls_of(tls_dir, "router"))
    live = LiveTls(secret.tls)
    before = live.fresh()
    secret.write({"tls.crt": before.certificate})
    assert live.fresh() is before


async def test_a_client_moves_on_and_lets_running_calls_end_where_they_began(
    tls_dir: Path, other_ca: Path, tmp_path: Path
) -> None:
    release = asyncio.Event()

    async def slowly(request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"begun"
        await release.wait()
        yield b"ended"

    client = MountedTls(tmp_path / "client", tls_of(tls_dir, "gateway"))
    secret = MountedTls(tmp_path / "server", tls_of(tls_dir, "router"))
    server = echo_server(secret.tls, EchoService(one_to_many=slowly))
    port = await server.start()
    channel: Any = open_channel(f"127.0.0.1:{port}", "router", client.tls)
    one_to_one, one_to_many = channel.unary_unary(ONE_TO_ONE), channel.unary_stream(ONE_TO_MANY)
    assert await one_to_one(b"first", timeout=PATIENCE_S) == b"first"
    running = one_to_many(b"", timeout=PATIENCE_S)
    assert await running.read() == b"begun"
    first = channel.newest().channel

    secret.renew(tls_of(other_ca, "router"))
    client.renew(tls_of(other_ca, "gateway"))
    async with asyncio.timeout(PATIENCE_S):
        while channel.newest().channel is first:
            await asyncio.sleep(0.02)
    # The old connection proves nothing here: only a new one is believed by the server that was renewed.
    assert await one_to_one(b"second", timeout=PATIENCE_S) == b"second"
    release.set()
    assert await running.read() == b"ended"
    assert await running.read() is grpc.aio.EOF
    await channel.close()
    await server.stop(0)


async def test_no_call_fails_while_certificates_of_one_authority_are_renewed(
    tls_dir: Path, tmp_path: Path
) -> None:
    client = MountedTls(tmp_path / "client", tls_of(tls_dir, "gateway"))
    server = echo_server(tls_of(tls_dir, "router"))
    port = await server.start()
    channel: Any = open_channel(f"127.0.0.1:{port}", "router", client.tls)
    first = channel.newest().channel
    is_over = asyncio.Event()

    async def keep_asking() -> int:
        count = 0
        while not is_over.is_set():
            assert await channel.unary_unary(ONE_TO_ONE)(b"who?", timeout=PATIENCE_S) == b"who?"
            count += 1
        return count

    askers = [asyncio.create_task(keep_asking()) for _ in range(3)]
    client.renew(tls_of(tls_dir, "gateway"))
    async with asyncio.timeout(PATIENCE_S):
        while channel.newest().channel is first:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    is_over.set()
    assert all([await asker for asker in askers])
    await channel.close()
    await server.stop(0)


async def test_https_shows_the_renewed_certificate_too(tls_dir: Path, other_ca: Path, tmp_path: Path) -> None:
    secret = MountedTls(tmp_path / "secret", tls_of(tls_dir, "audit"))
    app = web.Application()

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="here")

    app.router.add_get("/", page)
    runner, port = await listen(
        app, "127.0.0.1", 0, refuse=lambda _: web.Response(status=400), tls=server_context(secret.tls)
    )
    old, new = tls_of(tls_dir, "router"), tls_of(other_ca, "router")
    assert await browsed(port, old) == "here"
    assert await browsed(port, new) == "refused"
    secret.renew(TlsFiles(new.cert_file, old.key_file, new.ca_file))
    assert await browsed(port, old) == "here"
    secret.renew(tls_of(other_ca, "audit"))
    assert await browsed(port, new) == "here"
    assert await browsed(port, old) == "refused"
    assert await browsed(port, TlsFiles(old.cert_file, old.key_file, new.ca_file)) == "refused"
    await runner.cleanup()


async def browsed(port: int, tls: TlsFiles) -> str:
    context = ssl.create_default_context(cafile=tls.ca_file)
    context.load_cert_chain(tls.cert_file, tls.key_file)
    async with ClientSession(connector=TCPConnector(ssl=context)) as session:
        try:
            async with session.get(f"https://localhost:{port}/") as answer:
                return await answer.text()
        except ClientConnectionError:
            return "refused"


async def test_spans_go_on_reaching_a_collector_whose_certificates_are_renewed(
    tls_dir: Path, other_ca: Path, tmp_path: Path
) -> None:
    exported: list[bytes] = []

    async def export(request: bytes, context: Context) -> bytes:
        exported.append(request)
        return b""

    def came(name: bytes) -> bool:
        return any(name in each for each in exported)

    export_method = "opentelemetry.proto.collector.trace.v1.TraceService", "Export"
    collector = MountedTls(tmp_path / "collector", tls_of(tls_dir, "audit"))
    server = GrpcServer(
        listen="127.0.0.1:0",
        tls=collector.tls,
        permissions={"/{}/{}".format(*export_method): {"router"}},
        max_connection_age_s=0.1,  # every connection is soon made anew, or no more
    )
    handlers: Any = {export_method[1]: grpc.unary_unary_rpc_method_handler(export)}
    server.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(export_method[0], handlers)])
    port = await server.start()
    secret = MountedTls(tmp_path / "secret", tls_of(tls_dir, "router"))
    settings = ServiceSettings(
        tls_cert_file=secret.tls.cert_file,
        tls_key_file=secret.tls.key_file,
        tls_ca_file=secret.tls.ca_file,
        otlp_endpoint=f"https://127.0.0.1:{port}",
        otlp_server_name="audit.podium.internal",
    )
    telemetry = configure_telemetry("router", settings)
    for number, authority in enumerate((tls_dir, other_ca)):
        collector.renew(tls_of(authority, "audit"))
        secret.renew(tls_of(authority, "router"))
        telemetry.tracer.start_span(f"span-{number}").end()
        await until(partial(came, f"span-{number}".encode()))
    await asyncio.to_thread(telemetry.shutdown)
    await server.stop(0)
