"""Conductor, router and audit as the gateway meets them: real gRPC with mTLS, scripted behaviour."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from podium.audit.v1 import audit_service_pb2 as audit_pb
from podium.audit.v1 import audit_service_pb2_grpc
from podium.conductor.v1 import conductor_service_pb2 as conductor_pb
from podium.conductor.v1 import conductor_service_pb2_grpc
from podium.router.v1 import router_service_pb2 as router_pb
from podium.router.v1 import router_service_pb2_grpc
from podium_audit.servicers.performing import OPERATIONS, Performing, handlers_of
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Plan
from podium_core.domain.pool import Pool
from podium_core.domain.usage import Usage
from podium_core.orchestration.ports import PlanReply
from podium_core.runtime.grpc_errors import packed_error
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.wire.plan_query import plan_reply_to_proto
from podium_core.wire.pool import pool_to_proto
from podium_core.wire.usage import usage_to_proto
from tests.fakes.planner import plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.tls import tls_of

_Context = Any


async def _elsewhere(*_: object) -> None:
    raise PodiumError(Code.INTERNAL, "the gateway does not call this")


@dataclass(slots=True)
class ScriptedConductor(conductor_service_pb2_grpc.ConductorServiceServicer):
    """Answers with one plan, or one error."""

    plan: Plan = field(default_factory=lambda: plan_of(("alpha", "compute", ()), ("beta", "say it", (0,))))
    error: PodiumError | None = None
    requests: list[conductor_pb.PlanRequest] = field(default_factory=list)
    Describe: ClassVar[Any] = _elsewhere

    async def Plan(  # noqa: N802 - named by the contract
        self, request: conductor_pb.PlanRequest, context: _Context
    ) -> conductor_pb.PlanResponse:
        """Return the plan."""
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        return plan_reply_to_proto(PlanReply(self.plan, raw_text="because", usage=Usage(50, 9)))


@dataclass(slots=True)
class ScriptedRouter(router_service_pb2_grpc.RouterServiceServicer):
    """Lists a pool; answers each attempt with a text in pieces. `gate` holds the first piece back."""

    pool: Pool = field(default_factory=lambda: pool(worker("alpha"), worker("beta")))
    pieces: tuple[str, ...] = ("forty", "-two")
    error: PodiumError | None = None
    gate: asyncio.Event | None = None
    requests: list[router_pb.CompleteRequest] = field(default_factory=list)
    list_calls: int = 0
    cancelled: int = 0

    async def Complete(  # noqa: N802 - named by the contract
        self, request: router_pb.CompleteRequest, context: _Context
    ) -> AsyncGenerator[router_pb.CompleteResponse, None]:
        """Play the script."""
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        yield router_pb.CompleteResponse(permitted=router_pb.Permitted(leaf_index=len(self.requests)))
        try:
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        for piece in self.pieces if request.stream else ():
            yield router_pb.CompleteResponse(delta=router_pb.Delta(text=piece))
        whole = router_pb.Delta(text="" if request.stream else "".join(self.pieces))
        yield router_pb.CompleteResponse(
            completed=router_pb.Completed(
                finish_reason="stop", usage=usage_to_proto(Usage(7, 3)), cost_usd_micros=11, message=whole
            )
        )

    async def Perform(  # noqa: N802 - named by the contract
        self, request_iterator: AsyncIterator[router_pb.PerformRequest], context: _Context
    ) -> AsyncGenerator[router_pb.PerformResponse, None]:
        """Play the script for each attempt of a stream."""
        events: asyncio.Queue[router_pb.OperationEvent] = asyncio.Queue()
        tasks: dict[int, asyncio.Task[None]] = {}

        async def play(asked: router_pb.Operation) -> None:
            try:
                async for event in self.Complete(asked.complete, context):
                    events.put_nowait(router_pb.OperationEvent(operation_id=asked.operation_id, event=event))
            except PodiumError as error:
                status = packed_error(error)
                events.put_nowait(router_pb.OperationEvent(operation_id=asked.operation_id, status=status))

        async def read() -> None:
            async for request in request_iterator:
                for operation_id in request.cancelled_ids:
                    tasks[operation_id].cancel()
                for asked in request.operations:
                    tasks[asked.operation_id] = asyncio.create_task(play(asked))

        reading = asyncio.create_task(read())
        try:
            while True:
                yield router_pb.PerformResponse(events=[await events.get()])
        finally:
            for task in (reading, *tasks.values()):
                task.cancel()

    async def ListWorkers(  # noqa: N802 - named by the contract
        self, request: router_pb.ListWorkersRequest, context: _Context
    ) -> router_pb.ListWorkersResponse:
        """Return the pool."""
        self.list_calls += 1
        return pool_to_proto(self.pool)


@dataclass(slots=True)
class ScriptedAudit(audit_service_pb2_grpc.AuditServiceServicer):
    """Keeps what the gateway records. `errors` maps a method to what its next calls raise, in order."""

    opened: dict[str, audit_pb.OpenRunRequest] = field(default_factory=dict)
    appended: list[audit_pb.AppendRequest] = field(default_factory=list)
    contents: dict[tuple[str, str], bytes] = field(default_factory=dict)
    sealed: dict[str, audit_pb.SealRequest] = field(default_factory=dict)
    renewals: list[list[str]] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    stopped: set[str] = field(default_factory=set)
    budget: audit_pb.BudgetState | None = None
    errors: dict[str, list[PodiumError]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    BeginAttempt: ClassVar[Any] = _elsewhere
    EndAttempt: ClassVar[Any] = _elsewhere

    @property
    def only_seal(self) -> audit_pb.SealRequest:
        """The one seal there is."""
        (sealed,) = self.sealed.values()
        return sealed

    async def OpenRun(  # noqa: N802 - named by the contract
        self, request: audit_pb.OpenRunRequest, context: _Context
    ) -> audit_pb.OpenRunResponse:
        """Open the run."""
        self._count("OpenRun", request.event_id)
        self.opened[request.run_id] = request
        self._keep(request.run_id, request.contents)
        refused = bool(request.refusal_reason)
        return audit_pb.OpenRunResponse(
            leaf_indices=[0], receipt=_receipt(request.run_id) if refused else None
        )

    async def Append(  # noqa: N802 - named by the contract
        self, request: audit_pb.AppendRequest, context: _Context
    ) -> audit_pb.AppendResponse:
        """Keep a record."""
        self._count("Append", request.event_id)
        self.appended.append(request)
        self._keep(request.run_id, request.contents)
        return audit_pb.AppendResponse(leaf_index=1)

    async def Perform(  # noqa: N802 - named by the contract
        self, request_iterator: AsyncIterator[audit_pb.PerformRequest], context: _Context
    ) -> AsyncGenerator[audit_pb.PerformResponse, None]:
        """Take the same calls as a stream of operations, the way the real service does."""
        performing = Performing(handlers_of(self, context, OPERATIONS.values()), asyncio.Event())
        async with aclosing(performing.results(request_iterator)) as responses:
            async for response in responses:
                yield response

    async def PutContent(  # noqa: N802 - named by the contract
        self, request_iterator: AsyncIterator[audit_pb.PutContentRequest], context: _Context
    ) -> audit_pb.PutContentResponse:
        """Keep one content part."""
        header, data = audit_pb.PutContentHeader(), b""
        async for message in request_iterator:
            if message.HasField("header"):
                header = message.header
            data += message.chunk
        self._count("PutContent", header.event_id)
        if len(data) != header.size_bytes:
            raise PodiumError(Code.INVALID_REQUEST, "the size differs")
        self.contents[header.run_id, header.part_id] = data
        return audit_pb.PutContentResponse(leaf_index=2)

    async def Seal(  # noqa: N802 - named by the contract
        self, request: audit_pb.SealRequest, context: _Context
    ) -> audit_pb.SealResponse:
        """Close the run."""
        self._count("Seal", request.event_id)
        self.sealed[request.run_id] = request
        self._keep(request.run_id, request.contents)
        return audit_pb.SealResponse(receipt=_receipt(request.run_id), cost_usd_micros=22, budget=self.budget)

    async def RenewLease(  # noqa: N802 - named by the contract
        self, request: audit_pb.RenewLeaseRequest, context: _Context
    ) -> audit_pb.RenewLeaseResponse:
        """Say which runs are lost or stopped."""
        asked = set(request.run_ids)
        self.renewals.append(sorted(asked))
        return audit_pb.RenewLeaseResponse(
            lost_run_ids=sorted(asked & self.lost), cancelled_run_ids=sorted(asked & self.stopped)
        )

    def _count(self, method: str, event_id: str) -> None:
        self.calls.append((method, event_id))
        if self.errors.get(method):
            raise self.errors[method].pop(0)

    def _keep(self, run_id: str, contents: Any) -> None:
        self.contents.update({(run_id, content.part_id): content.data for content in contents})


@dataclass(slots=True)
class Services:
    """All three, and where they listen."""

    tls_dir: Path
    conductor: ScriptedConductor = field(default_factory=ScriptedConductor)
    router: ScriptedRouter = field(default_factory=ScriptedRouter)
    audit: ScriptedAudit = field(default_factory=ScriptedAudit)
    callers: frozenset[str] = frozenset({"gateway"})
    ports: dict[str, int] = field(default_factory=dict)
    servers: dict[str, GrpcServer] = field(default_factory=dict)

    async def start(self) -> None:
        """Start every service on a free port."""
        for name, package, methods in (
            ("conductor", "Conductor", ("Plan",)),
            ("router", "Router", ("Complete", "Perform", "ListWorkers")),
            ("audit", "Audit", ("OpenRun", "Append", "PutContent", "Perform", "Seal", "RenewLease")),
        ):
            permissions = {f"/podium.{name}.v1.{package}Service/{m}": self.callers for m in methods}
            server = GrpcServer(listen="127.0.0.1:0", tls=tls_of(self.tls_dir, name), permissions=permissions)
            self.servers[name] = server
        conductor_service_pb2_grpc.add_ConductorServiceServicer_to_server(
            self.conductor, self.servers["conductor"].server
        )
        router_service_pb2_grpc.add_RouterServiceServicer_to_server(
            self.router, self.servers["router"].server
        )
        audit_service_pb2_grpc.add_AuditServiceServicer_to_server(self.audit, self.servers["audit"].server)
        for name, server in self.servers.items():
            self.ports[name] = await server.start()

    async def stop(self, *names: str) -> None:
        """Stop some services, or all."""
        for name in names or tuple(self.servers):
            await self.servers.pop(name).stop(0)


@asynccontextmanager
async def running_services(tls_dir: Path, **scripted: Any) -> AsyncGenerator[Services, None]:
    """Run all three inside the block."""
    services = Services(tls_dir, **scripted)
    await services.start()
    try:
        yield services
    finally:
        await services.stop()


def _receipt(run_id: str) -> audit_pb.Receipt:
    return audit_pb.Receipt(run_id=run_id, leaf_indices=[0, 1, 2], checkpoint="note")


def unavailable() -> PodiumError:
    """Return the error of an audit that cannot commit just now."""
    return PodiumError(Code.AUDIT_UNAVAILABLE, "cannot commit")
