"""The conductor over real gRPC with mutual TLS: plans, identity, deadlines, cancellation."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider

from podium.conductor.v1 import conductor_service_pb2 as pb
from podium.conductor.v1.conductor_service_pb2_grpc import (
    ConductorServiceStub,
    add_ConductorServiceServicer_to_server,
)
from podium_conductor.engines.embedded.engine import load_engine
from podium_conductor.engines.embedded.weights import shipped_folder
from podium_conductor.planning import Planning, PlanningLimits
from podium_conductor.ports import Engine
from podium_conductor.servicer import PERMISSIONS, ConductorServicer
from podium_conductor.telemetry import PlanTelemetry
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import PlanSource
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery, PlanReply
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.wire.plan_query import plan_query_to_proto, plan_reply_from_proto
from podium_gateway.adapters.conductor import ConductorPlanner
from tests.fakes.engine import FakeEngine
from tests.fakes.pools import question, worker
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S, until

if TYPE_CHECKING:  # only the type stub knows it
    from podium.conductor.v1.conductor_service_pb2_grpc import ConductorServiceAsyncStub

WORKERS = (
    worker("alpha", skills={"arithmetic": 900_000, "text": 0}),
    worker("beta", skills={"arithmetic": 0, "text": 900_000}),
)
QUERY = PlanQuery(
    "run_1", question("Multiply 17 by 23, then reverse it."), WORKERS, Caps(), "podium", 11, 5.0
)


@asynccontextmanager
async def serving(tls_dir: Path, engine: Engine) -> AsyncIterator[int]:
    clock = SystemClock()
    telemetry = PlanTelemetry(NoOpTracerProvider().get_tracer("t"), NoOpMeterProvider().get_meter("t"), clock)
    server = GrpcServer(listen="127.0.0.1:0", tls=tls_of(tls_dir, "conductor"), permissions=PERMISSIONS)
    servicer = ConductorServicer(Planning(engine, telemetry, clock, PlanningLimits()), 5.0)
    add_ConductorServiceServicer_to_server(servicer, server.server)
    port = await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


@asynccontextmanager
async def calling(
    tls_dir: Path, port: int, caller: str = "gateway"
) -> AsyncIterator["ConductorServiceAsyncStub"]:
    channel = open_channel(f"127.0.0.1:{port}", "conductor", tls_of(tls_dir, caller))
    try:
        yield ConductorServiceStub(channel)
    finally:
        await channel.close()


async def planned(
    stub: "ConductorServiceAsyncStub", query: PlanQuery = QUERY, timeout_s: float = 5.0
) -> PlanReply:
    with rpc_errors("conductor"):
        return plan_reply_from_proto(
            await stub.Plan(plan_query_to_proto(query), timeout=timeout_s), query.seed
        )


async def test_a_plan_travels_whole(tls_dir: Path) -> None:
    async with serving(tls_dir, load_engine(shipped_folder())) as port, calling(tls_dir, port) as stub:
        reply = await planned(stub)
        described = await stub.Describe(pb.DescribeRequest(), timeout=60)
    assert [(s.worker_id, s.subtask, s.access.steps) for s in reply.plan.steps] == [
        ("alpha", "Multiply 17 by 23.", ()),
        ("beta", "Reverse it.", (0,)),
    ]
    assert reply.plan.source is PlanSource.EMBEDDED
    assert "model_id = [" in reply.raw_text
    assert len(reply.chances) == 2
    assert (described.engine, described.max_steps, list(described.tiers)) == (
        "embedded",
        5,
        ["podium", "podium-fast", "podium-max"],
    )
    assert described.model_digest == reply.model_digest != ""


@pytest.mark.parametrize("caller", ["router", "audit"])
async def test_only_gateway_and_cli_may_call(tls_dir: Path, caller: str) -> None:
    async with serving(tls_dir, load_engine(shipped_folder())) as port:
        async with calling(tls_dir, port, caller) as stub:
            with pytest.raises(PodiumError) as failed:
                await planned(stub)
            assert failed.value.code is Code.POLICY_DENIED
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.Describe(pb.DescribeRequest(), timeout=60)
        async with calling(tls_dir, port, "cli") as stub:
            assert (await planned(stub)).plan.steps


async def test_requests_that_are_not_well_formed_say_what_to_change(tls_dir: Path) -> None:
    async with serving(tls_dir, load_engine(shipped_folder())) as port, calling(tls_dir, port) as stub:
        for broken, param in (
            (pb.PlanRequest(), "messages"),
            (pb.PlanRequest(messages=[pb.Message()]), "cards"),
        ):
            with pytest.raises(PodiumError) as failed, rpc_errors("conductor"):
                await stub.Plan(broken, timeout=60)
            assert (failed.value.code, failed.value.param) == (Code.INVALID_REQUEST, param)


async def test_the_callers_deadline_and_departure_stop_the_engine(tls_dir: Path) -> None:
    started = asyncio.Event()

    async def hang(_: PlanQuery, __: int) -> None:
        started.set()
        await asyncio.Event().wait()

    engine = FakeEngine(hang)
    async with serving(tls_dir, engine) as port, calling(tls_dir, port) as stub:
        with pytest.raises(PodiumError) as failed:
            await planned(stub, timeout_s=0.1)
        assert failed.value.code is Code.DEADLINE
        started.clear()
        leaving = asyncio.create_task(planned(stub))
        await started.wait()
        leaving.cancel()
        await until(lambda: engine.cancelled >= 2)


async def test_a_plan_whose_conductor_breaks_off_is_written_by_another(tls_dir: Path) -> None:
    hang, started = asyncio.Event(), asyncio.Event()

    async def hanging(_: PlanQuery, __: int) -> None:
        started.set()
        await hang.wait()

    engines = FakeEngine(hanging), FakeEngine()
    async with serving(tls_dir, engines[1]) as good, AsyncExitStack() as stack:
        breaking = await stack.enter_async_context(serving(tls_dir, engines[0]))
        address = f"127.0.0.1:{breaking},127.0.0.1:{good}"
        async with open_channel(address, "conductor", tls_of(tls_dir, "gateway")) as channel:
            planner = ConductorPlanner(channel)
            asking: list[asyncio.Task[PlanReply]] = []
            while not started.is_set():
                asking.append(asyncio.create_task(planner.plan(QUERY)))
                await asyncio.sleep(0.01)
            await stack.aclose()
            replies = await asyncio.gather(*asking)
    assert {reply.plan.source for reply in replies} == {PlanSource.MODEL}
    assert len(engines[1].queries) == len(asking)


async def test_only_the_first_run_waits_for_a_conductor_that_is_away(tls_dir: Path) -> None:
    async with serving(tls_dir, FakeEngine()) as port:
        pass
    async with open_channel(f"127.0.0.1:{port}", "conductor", tls_of(tls_dir, "gateway")) as channel:
        planner, took_s = ConductorPlanner(channel), []
        for _ in range(4):
            began_s = asyncio.get_running_loop().time()
            with pytest.raises(PodiumError) as failed:
                await planner.plan(QUERY)
            took_s.append(asyncio.get_running_loop().time() - began_s)
            assert failed.value.code is Code.UNAVAILABLE
    assert max(took_s) == took_s[0]


async def test_the_command_serves_and_stops(tls_dir: Path) -> None:
    tls = tls_of(tls_dir, "conductor")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    environment = {
        "PATH": os.environ["PATH"],
        "PODIUM_CONDUCTOR_LISTEN": f"127.0.0.1:{port}",
        "PODIUM_CONDUCTOR_TLS_CERT_FILE": str(tls.cert_file),
        "PODIUM_CONDUCTOR_TLS_KEY_FILE": str(tls.key_file),
        "PODIUM_CONDUCTOR_TLS_CA_FILE": str(tls.ca_file),
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "podium_conductor", env=environment)
    try:
        async with calling(tls_dir, port) as stub:
            described = await stub.Describe(pb.DescribeRequest(), timeout=60, wait_for_ready=True)
        assert described.engine == "embedded"
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
