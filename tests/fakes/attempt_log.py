"""The audit service's attempt calls in memory, over real gRPC, as strict as the real ones."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, ClassVar

import grpc

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import audit_service_pb2_grpc
from podium_audit.servicers.performing import OPERATIONS, Performing, handlers_of
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.identity import TlsFiles
from tests.fakes.waiting import until

_PREFIX = "/podium.audit.v1.AuditService/"
PERMISSIONS = {
    f"{_PREFIX}{name}": frozenset({"router"}) for name in ("BeginAttempt", "EndAttempt", "Perform")
}


async def _elsewhere(*_: object) -> None:
    raise PodiumError(Code.INTERNAL, "this fake takes attempts only")


@dataclass(slots=True)
class FakeAudit(audit_service_pb2_grpc.AuditServiceServicer):
    """Permits every attempt it can record. Runs need no opening here.

    `parts` is content the log holds, by part id. `refusal` is raised instead of the next permits;
    `begin_gate` and `end_gate` hold calls back until they are set. `is_strict` refuses an attempt that sees
    a step whose attempt has not ended.
    """

    parts: dict[str, bytes] = field(default_factory=dict)
    begun: dict[str, pb.BeginAttemptRequest] = field(default_factory=dict)
    ended: dict[str, pb.EndAttemptRequest] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    begun_s: dict[str, float] = field(default_factory=dict)
    refusal: PodiumError | None = None
    begin_gate: asyncio.Event | None = None
    end_gate: asyncio.Event | None = None
    is_strict: bool = False
    begin_calls: int = 0
    end_calls: int = 0
    ids_by_order: list[str] = field(default_factory=list)

    OpenRun: ClassVar[Any] = _elsewhere
    Append: ClassVar[Any] = _elsewhere
    PutContent: ClassVar[Any] = _elsewhere
    Seal: ClassVar[Any] = _elsewhere
    RenewLease: ClassVar[Any] = _elsewhere

    async def BeginAttempt(  # noqa: N802 - named by the contract
        self, request: pb.BeginAttemptRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> pb.BeginAttemptResponse:
        """Record the attempt; the same request again gets the same answer."""
        self.begin_calls += 1
        if self.begin_gate is not None:
            await self.begin_gate.wait()
        if self.refusal is not None:
            raise self.refusal
        known = self.begun.get(request.attempt_id)
        if known is not None and known != request:
            raise PodiumError(
                Code.CONFLICT, "this attempt was begun with other content", reason="EVENT_CONFLICT"
            )
        if known is None:
            self._check_seen(request)
            self.bodies[request.attempt_id] = self._join(request)
            self.begun[request.attempt_id] = request
            self.begun_s[request.attempt_id] = asyncio.get_running_loop().time()
            self.ids_by_order.append(request.attempt_id)
        return pb.BeginAttemptResponse(leaf_index=self.ids_by_order.index(request.attempt_id))

    async def EndAttempt(  # noqa: N802 - named by the contract
        self, request: pb.EndAttemptRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> pb.EndAttemptResponse:
        """Record the end of an attempt that was begun."""
        self.end_calls += 1
        if self.end_gate is not None:
            await self.end_gate.wait()
        if request.attempt_id not in self.begun:
            raise PodiumError(Code.NOT_FOUND, "no such attempt", reason="ATTEMPT_UNKNOWN")
        known = self.ended.get(request.attempt_id)
        if known is not None and known != request:
            raise PodiumError(Code.CONFLICT, "the attempt has ended already", reason="ATTEMPT_ENDED")
        self.ended[request.attempt_id] = request
        self.parts.update({content.part_id: content.data for content in request.contents})
        return pb.EndAttemptResponse(leaf_index=len(self.begun) + len(self.ended))

    async def Perform(  # noqa: N802 - named by the contract
        self,
        request_iterator: AsyncIterator[pb.PerformRequest],
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> AsyncGenerator[pb.PerformResponse, None]:
        """Take the same calls as a stream of operations, the way the real service does."""
        performing = Performing(handlers_of(self, context, OPERATIONS.values()), asyncio.Event())
        async with aclosing(performing.results(request_iterator)) as responses:
            async for response in responses:
                yield response

    async def all_ended(self, count: int) -> dict[str, pb.EndAttemptRequest]:
        """Wait until that many attempts have ended."""
        await until(lambda: len(self.ended) >= count)
        return self.ended

    async def end_of(self, attempt_id: str) -> pb.EndAttemptRequest:
        """Wait for the end of one attempt."""
        await until(lambda: attempt_id in self.ended)
        return self.ended[attempt_id]

    def _check_seen(self, request: pb.BeginAttemptRequest) -> None:
        running = {self.begun[attempt_id].step_index for attempt_id in self.begun.keys() - self.ended.keys()}
        if self.is_strict and running & set(request.seen_steps):
            raise PodiumError(Code.POLICY_DENIED, "a seen step has not ended", reason="SEEN_STEP_RUNNING")

    def _join(self, request: pb.BeginAttemptRequest) -> bytes:
        pieces: list[bytes] = []
        for part in request.body:
            if part.part_id and (part.inline or part.part_id not in self.parts):
                raise PodiumError(Code.INVALID_REQUEST, "the run has no such content", param="body")
            pieces.append(self.parts[part.part_id] if part.part_id else part.inline)
        body = b"".join(pieces)
        if request.body_sha256 and hashlib.sha256(body).digest() != request.body_sha256:
            raise PodiumError(Code.CONFLICT, "the body parts do not join to the body", reason="BODY_MISMATCH")
        return body


def audit_server(tls: TlsFiles, audit: FakeAudit, listen: str = "127.0.0.1:0") -> GrpcServer:
    """Return a server for `audit`; start it to get its port."""
    server = GrpcServer(listen=listen, tls=tls, permissions=PERMISSIONS)
    audit_service_pb2_grpc.add_AuditServiceServicer_to_server(audit, server.server)
    return server
