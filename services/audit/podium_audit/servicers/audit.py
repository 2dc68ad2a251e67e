"""The audit service over gRPC: translates, submits, answers. The decisions are the log's."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

import grpc

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import audit_service_pb2_grpc
from podium_audit.leases import Leases
from podium_audit.log.budget_warnings import BudgetWarnings
from podium_audit.log.group_commit import GroupCommit, unavailable
from podium_audit.log.sealing import Sealer
from podium_audit.pseudonyms import Pseudonyms
from podium_audit.records.commands import AppendPlan
from podium_audit.servicers import wire
from podium_audit.servicers.performing import OPERATIONS, Performing, handlers_of
from podium_audit.telemetry import RecordSpans
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.runtime.identity import caller_of

_PREFIX: Final = "/podium.audit.v1.AuditService/"
_MAX_RENEWED: Final = 10_000

_ROUTER: Final = "router"

PERMISSIONS: Final[Mapping[str, frozenset[str]]] = {
    f"{_PREFIX}OpenRun": frozenset({"gateway", "cli"}),
    f"{_PREFIX}Append": frozenset({"gateway", "cli", "conductor"}),
    f"{_PREFIX}PutContent": frozenset({"gateway", "router"}),
    f"{_PREFIX}BeginAttempt": frozenset({_ROUTER}),
    f"{_PREFIX}EndAttempt": frozenset({_ROUTER}),
    f"{_PREFIX}Seal": frozenset({"gateway", "cli"}),
    f"{_PREFIX}Perform": frozenset({"gateway", _ROUTER}),
    f"{_PREFIX}RenewLease": frozenset({"gateway", "cli"}),
}
"""Who may call what. Which kinds of run a caller may touch is checked with the command itself."""

_Context = grpc.aio.ServicerContext[Any, Any]


class AuditServicer(audit_service_pb2_grpc.AuditServiceServicer):
    """One instance serves every call."""

    def __init__(
        self,
        commit: GroupCommit,
        sealer: Sealer,
        leases: Leases,
        spans: RecordSpans,
        warnings: BudgetWarnings,
        pseudonyms: Pseudonyms,
        *,
        cancelled: Callable[[Iterable[str]], list[str]],
        max_content_bytes: int,
        max_buffered_bytes: int,
    ) -> None:
        self._commit = commit
        self._sealer = sealer
        self._leases = leases
        self._spans = spans
        self._warnings = warnings
        self._pseudonyms = pseudonyms
        self._cancelled = cancelled
        self._max_content_bytes = max_content_bytes
        self._max_buffered_bytes = max_buffered_bytes
        self._buffered_bytes = 0
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Take no more operations on open streams; each ends once its last one is answered."""
        self._closing.set()

    def send_away(self) -> None:
        """End the streams that are open as `close` does: their callers open others, where somebody serves."""
        self._closing.set()
        self._closing = asyncio.Event()

    async def OpenRun(self, request: pb.OpenRunRequest, context: _Context) -> pb.OpenRunResponse:  # noqa: N802
        """Open a run; the answer holds a receipt when it was refused."""
        if request.subject_id:
            request.subject_id = await self._pseudonyms.of(request.tenant_id, request.subject_id)
        with self._spans.record("open", request.run_id) as span:
            applied = await self._commit.submit(wire.open_run(request, caller_of(context)))
            span.committed(applied)
        response = pb.OpenRunResponse(leaf_indices=applied.leaf_indices)
        if request.refusal_reason:
            response.receipt.CopyFrom(wire.receipt(request.run_id, applied))
        return response

    async def Append(self, request: pb.AppendRequest, context: _Context) -> pb.AppendResponse:  # noqa: N802
        """Record a later plan or a note."""
        caller = caller_of(context)
        command = wire.append(request, caller)
        if caller == "conductor" and isinstance(command, AppendPlan):
            raise PodiumError(
                Code.POLICY_DENIED, "the conductor may append notes only", reason="CALLER_NOT_ALLOWED"
            )
        with self._spans.record("append", request.run_id) as span:
            applied = await self._commit.submit(command)
            span.committed(applied)
        return pb.AppendResponse(leaf_index=applied.leaf_indices[0])

    async def PutContent(  # noqa: N802
        self, request_iterator: AsyncIterator[pb.PutContentRequest], context: _Context
    ) -> pb.PutContentResponse:
        """Take one content part in, in chunks, and record it."""
        try:
            return await self._put_content(request_iterator, caller_of(context))
        except PodiumError:
            await _drain(request_iterator, self._max_content_bytes)
            raise

    async def BeginAttempt(  # noqa: N802
        self,
        request: pb.BeginAttemptRequest,
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.BeginAttemptResponse:
        """Answer with the permit, or not at all."""
        with self._spans.record("begin", request.run_id, request.attempt_id) as span:
            applied = await self._commit.submit(wire.begin_attempt(request, _ROUTER))
            span.committed(applied)
        return pb.BeginAttemptResponse(leaf_index=applied.leaf_indices[0])

    async def EndAttempt(  # noqa: N802
        self,
        request: pb.EndAttemptRequest,
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.EndAttemptResponse:
        """Record an attempt's end and settle its money."""
        with self._spans.record("end", request.run_id, request.attempt_id) as span:
            applied = await self._commit.submit(wire.end_attempt(request, _ROUTER))
            span.committed(applied)
        self._sealer.attempt_ended(request.run_id, applied.open_attempts)
        return pb.EndAttemptResponse(leaf_index=applied.leaf_indices[0], late=applied.late)

    async def Seal(self, request: pb.SealRequest, context: _Context) -> pb.SealResponse:  # noqa: N802
        """Close a run and answer with its receipt."""
        with self._spans.record("seal", request.run_id) as span:
            applied = await self._sealer.seal(wire.seal(request, caller_of(context)))
            span.committed(applied)
        budgets = {
            bool(money.key_id): wire.budget_state(money, self._warnings.after(request.run_id, money))
            for money in applied.money
        }
        return pb.SealResponse(
            receipt=wire.receipt(request.run_id, applied),
            cost_usd_micros=applied.cost_usd_micros,
            budget=budgets.get(False),
            key_budget=budgets.get(True),
        )

    async def Perform(  # noqa: N802
        self, request_iterator: AsyncIterator[pb.PerformRequest], context: _Context
    ) -> AsyncGenerator[pb.PerformResponse, None]:
        """Perform a stream of operations, each as its own call would be."""
        caller = caller_of(context)
        allowed = [call for call in OPERATIONS.values() if caller in PERMISSIONS[_PREFIX + call]]
        performing = Performing(handlers_of(self, context, allowed), self._closing)
        async with aclosing(performing.results(request_iterator)) as responses:
            async for response in responses:
                yield response

    async def RenewLease(  # noqa: N802
        self,
        request: pb.RenewLeaseRequest,
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.RenewLeaseResponse:
        """Keep runs alive; nothing is written."""
        if len(request.run_ids) > _MAX_RENEWED:
            raise invalid(f"renew at most {_MAX_RENEWED} leases at once", param="run_ids")
        lost = await self._leases.renew(request.run_ids, request.lease_ms)
        cancelled = self._cancelled(request.run_ids)
        return pb.RenewLeaseResponse(lost_run_ids=lost, cancelled_run_ids=cancelled)

    async def _put_content(
        self, requests: AsyncIterator[pb.PutContentRequest], caller: str
    ) -> pb.PutContentResponse:
        header = await self._header(requests)
        size = header.size_bytes
        if self._buffered_bytes + size > self._max_buffered_bytes:
            raise unavailable()
        self._buffered_bytes += size
        try:
            data = await _collect(requests, size)
            with self._spans.record("content", header.run_id) as span:
                applied = await self._commit.submit(wire.put_content(header, data, caller))
                span.committed(applied)
        finally:
            self._buffered_bytes -= size
        return pb.PutContentResponse(leaf_index=applied.leaf_indices[0])

    async def _header(self, requests: AsyncIterator[pb.PutContentRequest]) -> pb.PutContentHeader:
        async for request in requests:
            header = request.header
            if not request.HasField("header") or request.chunk:
                break
            if header.size_bytes > self._max_content_bytes:
                raise PodiumError(
                    Code.TOO_LARGE,
                    f"content may have {self._max_content_bytes} bytes, not {header.size_bytes}",
                    reason="CONTENT_TOO_LARGE",
                    param="size_bytes",
                )
            return header
        raise invalid("the first message must hold the header and nothing else", param="header")


async def _collect(requests: AsyncIterator[pb.PutContentRequest], size: int) -> bytes:
    """Join the chunks; raise PodiumError as soon as they cannot make up `size` bytes."""
    chunks: list[bytes] = []
    left = size
    async for request in requests:
        if request.HasField("header"):
            raise invalid("only the first message holds a header", param="header")
        left -= len(request.chunk)
        if left < 0:
            break
        chunks.append(request.chunk)
    if left:
        raise invalid(
            f"the header says {size} bytes, the stream has {'more' if left < 0 else f'only {size - left}'}",
            param="size_bytes",
        )
    return b"".join(chunks)


async def _drain(requests: AsyncIterator[pb.PutContentRequest], limit: int) -> None:
    """Read the rest of a refused stream: a caller that is cut off while it sends never hears why."""
    async for request in requests:
        limit -= len(request.chunk)
        if limit < 0:
            return
