"""The port for those who keep a service running: live, ready, and what a probe may not do."""

import asyncio
import signal
import socket
import threading
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.ops import Ops, OpsServer
from tests.fakes.audit_process import audit_process
from tests.fakes.audit_service import open_request
from tests.fakes.ports import free_ports
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S, STALL_S


def ask(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(method, path)
        answer: HTTPResponse = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


async def test_ready_follows_the_server_and_ends_before_it_does(tls_dir: Path) -> None:
    ops = Ops()
    server = GrpcServer(
        listen="127.0.0.1:0", tls=tls_of(tls_dir, "router"), permissions={}, on_ready=ops.set_ready
    )
    with OpsServer("127.0.0.1:0", ops, CollectorRegistry()) as probes:
        assert await asyncio.to_thread(ask, probes.port, "/readyz") == (
            503,
            b"not ready: starting, or going\n",
        )
        await server.start()
        assert await asyncio.to_thread(ask, probes.port, "/readyz") == (200, b"ready\n")
        server.set_serving(False)  # the database is away, say: what all replicas share takes none of them out
        assert (await asyncio.to_thread(ask, probes.port, "/readyz"))[0] == 200
        await server.leave()
        assert (await asyncio.to_thread(ask, probes.port, "/readyz"))[0] == 503
        assert (await asyncio.to_thread(ask, probes.port, "/livez"))[0] == 200
        await server.stop(0)


async def test_a_loop_that_hangs_is_not_live() -> None:
    ops = Ops()
    with OpsServer("127.0.0.1:0", ops, CollectorRegistry()) as probes:
        assert await asyncio.to_thread(ask, probes.port, "/livez") == (200, b"live\n")
        found: list[int] = []
        prober = threading.Thread(target=lambda: found.append(ask(probes.port, "/livez")[0]))
        prober.start()
        prober.join()  # which keeps the loop from answering meanwhile
        assert found == [503]
        assert (await asyncio.to_thread(ask, probes.port, "/livez"))[0] == 200


async def test_a_part_that_is_gone_for_good_asks_for_a_restart() -> None:
    ops = Ops()
    ops.set_ready(True)
    ops.set_broken(True)
    with OpsServer("127.0.0.1:0", ops, CollectorRegistry()) as probes:
        for path in ("/livez", "/readyz"):
            assert (await asyncio.to_thread(ask, probes.port, path))[0] == 503


@pytest.mark.parametrize(
    ("method", "path", "status"), [("POST", "/livez", 501), ("GET", "/", 404), ("GET", "/../x", 404)]
)
async def test_nothing_else_is_there(method: str, path: str, status: int) -> None:
    with OpsServer("127.0.0.1:0", Ops(), CollectorRegistry()) as probes:
        assert (await asyncio.to_thread(ask, probes.port, path, method))[0] == status


async def test_idle_connections_do_not_keep_a_probe_out_for_ever() -> None:
    with OpsServer("127.0.0.1:0", Ops(), CollectorRegistry()) as probes:
        idle = [socket.create_connection(("127.0.0.1", probes.port)) for _ in range(20)]

        async def answered() -> bool:
            try:
                return (await asyncio.to_thread(ask, probes.port, "/livez"))[0] == 200
            except OSError:
                return False

        async with asyncio.timeout(PATIENCE_S):
            while not await answered():
                await asyncio.sleep(0.1)
        for each in idle:
            each.close()


async def test_a_service_told_to_stop_is_not_ready_and_still_takes_calls(
    tmp_path: Path, tls_dir: Path
) -> None:
    [port] = free_ports(1)
    leaving = {"ops_listen": f"127.0.0.1:{port}", "drain_delay_s": STALL_S}
    async with audit_process(tmp_path, tls_dir, **leaving) as audit:
        assert (await asyncio.to_thread(ask, port, "/readyz"))[0] == 200
        assert audit.process is not None
        audit.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            while (await asyncio.to_thread(ask, port, "/readyz"))[0] != 503:
                await asyncio.sleep(0.02)
        channel, stub = audit.stub("gateway")
        opened = await stub.OpenRun(open_request("run_1"), timeout=PATIENCE_S)
        assert list(opened.leaf_indices) == [0, 1]
        assert (await asyncio.to_thread(ask, port, "/livez"))[0] == 200
        await channel.close()
        assert audit.kill(signal.SIGTERM) == -signal.SIGTERM, "a second signal does not wait"
