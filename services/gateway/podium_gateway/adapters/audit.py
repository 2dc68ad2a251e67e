"""The recorder port over the audit service. Every call has an event id, so every call may be repeated."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TypeVar

import grpc
from opentelemetry import trace

from podium.audit.v1 import audit_service_pb2, audit_service_pb2_grpc
from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError
from podium_core.domain.run import RunOutcome
from podium_core.orchestration.ports import OpenedRun, PlanReply, Receipt, RecorderPort, SealedRun
from podium_core.runtime.audit_stream import AuditStream
from podium_core.runtime.grpc_client import call_metadata
from podium_core.runtime.side_thread import aside
from podium_core.wire.plan_record import plan_contents, plan_record
from podium_core.wire.run import RUN_KIND, RUN_OUTCOME, caps_to_proto, verdicts_to_proto
from podium_gateway.adapters.contents import ContentShelf, HeldContents
from podium_gateway.adapters.inside import asked_of_audit
from podium_gateway.adapters.leases import Leases
from podium_gateway.budgets import Budget, Budgets

T = TypeVar("T")

_MAX_INLINE_BYTES = 256 * 1024
_CHUNK_BYTES = 256 * 1024
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
Content = audit_service_pb2.Content


class AuditRecorder(RecorderPort):
    """Records runs in audit. Waits `audit_wait_s` for an answer, `seal_wait_s` for a seal."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        shelf: ContentShelf,
        leases: Leases,
        budgets: Budgets,
        clock: Clock,
        *,
        audit_wait_s: float,
        seal_wait_s: float,
    ) -> None:
        self._stub: audit_service_pb2_grpc.AuditServiceAsyncStub = audit_service_pb2_grpc.AuditServiceStub(
            channel
        )
        self._stream = AuditStream(channel)
        self._shelf = shelf
        self._leases = leases
        self._budgets = budgets
        self._clock = clock
        self._audit_wait_s = audit_wait_s
        self._seal_wait_s = seal_wait_s
        self._sealing = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def open_run(self, opened: OpenedRun) -> Receipt | None:
        """Record the opening; long contents are streamed in right after it, before any attempt.

        Raises PodiumError: AUDIT_UNAVAILABLE when audit did not commit in time.
        """
        held = await aside(opened.question.size_chars, HeldContents.of, opened.question)
        is_refused = bool(opened.refusal_reason)
        is_inline = is_refused or sum(len(data) for _, data in held.parts) <= _MAX_INLINE_BYTES
        request = self._open_request(opened, held if is_inline else None)
        metadata = call_metadata()
        answer = await self._retried(
            lambda timeout: self._stream.OpenRun(request, timeout=timeout, metadata=metadata),
            self._audit_wait_s,
        )
        if is_refused:
            return _receipt(answer.receipt)
        self._leases.opened(opened.run_id)
        if not is_inline:
            await self._put_all(opened, held)
        self._shelf.put(opened.run_id, held)
        return None

    async def append_plan(self, run_id: str, event_id: str, reply: PlanReply) -> None:
        """Record a later round's plan."""
        request = audit_service_pb2.AppendRequest(
            event_id=event_id, run_id=run_id, plan=plan_record(reply), contents=plan_contents(reply)
        )
        metadata = call_metadata()
        await self._retried(
            lambda timeout: self._stream.Append(request, timeout=timeout, metadata=metadata),
            self._audit_wait_s,
        )

    async def note(self, run_id: str, event_id: str, kind: str, facts: Mapping[str, str]) -> None:
        """Record short facts about an open run."""
        note = audit_service_pb2.Note(kind=kind, facts=facts)
        request = audit_service_pb2.AppendRequest(event_id=event_id, run_id=run_id, note=note)
        metadata = call_metadata()
        await self._retried(
            lambda timeout: self._stream.Append(request, timeout=timeout, metadata=metadata),
            self._audit_wait_s,
        )

    async def seal(self, sealed: SealedRun) -> Receipt:
        """Close the run and return its receipt."""
        answer_bytes = sealed.answer.encode(errors="replace")
        contents = [Content(part_id="answer", name="answer", media_type=_TEXT, data=answer_bytes)]
        request = audit_service_pb2.SealRequest(
            event_id=sealed.event_id,
            run_id=sealed.run_id,
            outcome=RUN_OUTCOME.to_proto(sealed.outcome),
            error_reason=sealed.error_reason,
            contents=contents if sealed.answer else [],
        )
        metadata = call_metadata()
        self._sealing += 1
        self._quiet.clear()
        self._leases.sealing(sealed.run_id)
        try:
            answer = await self._retried(
                lambda timeout: self._stream.Seal(request, timeout=timeout, metadata=metadata),
                self._seal_wait_s,
            )
        finally:
            self._shelf.drop(sealed.run_id)
            self._leases.closed(sealed.run_id)
            self._sealing -= 1
            if not self._sealing:
                self._quiet.set()
        for name in ("budget", "key_budget"):
            if answer.HasField(name):
                state = getattr(answer, name)
                self._budgets.heard(state.tenant_id, state.principal_id, _budget(state))
        return _receipt(answer.receipt)

    async def close(self) -> None:
        """Let go of the stream."""
        await self._stream.close()

    async def quiet(self, timeout_s: float) -> None:
        """Wait until no seal is under way, at most `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            return

    async def _retried(self, call: Callable[[float], Awaitable[T]], budget_s: float) -> T:
        return await asked_of_audit(call, budget_s=budget_s, clock=self._clock)

    async def _put_all(self, opened: OpenedRun, held: HeldContents) -> None:
        try:
            for part_id, data in held.parts:
                await self._put(opened, part_id, data)
        except PodiumError:
            # The run is open and the runner will never hear of it: close it rather than let it lapse.
            failed = SealedRun(f"{opened.event_id}-unused", opened.run_id, RunOutcome.FAILED)
            await self.seal(failed)
            raise

    async def _put(self, opened: OpenedRun, part_id: str, data: bytes) -> None:
        header = audit_service_pb2.PutContentHeader(
            event_id=f"{opened.event_id}-{part_id}",
            run_id=opened.run_id,
            part_id=part_id,
            name=part_id,
            media_type=_JSON,
            size_bytes=len(data),
        )

        async def messages() -> AsyncGenerator[audit_service_pb2.PutContentRequest, None]:
            yield audit_service_pb2.PutContentRequest(header=header)
            for start in range(0, len(data), _CHUNK_BYTES):
                yield audit_service_pb2.PutContentRequest(chunk=data[start : start + _CHUNK_BYTES])

        metadata = call_metadata()
        await self._retried(
            lambda timeout: self._stub.PutContent(messages(), timeout=timeout, metadata=metadata),
            self._audit_wait_s,
        )

    def _open_request(self, opened: OpenedRun, held: HeldContents | None) -> audit_service_pb2.OpenRunRequest:
        contents = [] if held is None else [_conversation(part_id, data) for part_id, data in held.parts]
        if opened.plan is not None:
            contents += plan_contents(opened.plan)
        return audit_service_pb2.OpenRunRequest(
            event_id=opened.event_id,
            run_id=opened.run_id,
            kind=RUN_KIND.to_proto(opened.kind),
            tenant_id=opened.tenant_id,
            principal_id=opened.principal_id,
            requested_model=opened.requested_model,
            verdicts=verdicts_to_proto(opened.verdicts),
            caps=caps_to_proto(opened.caps),
            plan=None if opened.plan is None else plan_record(opened.plan),
            contents=contents,
            pool_digest=opened.pool_digest,
            price_digest=opened.price_digest,
            policy_digest=opened.policy_digest,
            trace_id=_trace_id(),
            lease_ms=self._leases.lease_ms,
            refusal_reason=opened.refusal_reason,
            continues_run_id=opened.continues_run_id,
            subject_id=opened.subject_id,
            tenant_budget_usd_micros=opened.tenant_budget_usd_micros or 0,
            has_tenant_budget=opened.tenant_budget_usd_micros is not None,
            key_budget_usd_micros=opened.key_budget_usd_micros,
        )


def _conversation(part_id: str, data: bytes) -> audit_service_pb2.Content:
    return Content(part_id=part_id, name=part_id, media_type=_JSON, data=data)


def _budget(message: audit_service_pb2.BudgetState) -> Budget:
    return Budget(
        message.month,
        message.budget_usd_micros,
        message.settled_usd_micros,
        message.reserved_usd_micros,
        message.warn_percent,
    )


def _receipt(message: audit_service_pb2.Receipt) -> Receipt:
    return Receipt(message.run_id, tuple(message.leaf_indices), message.checkpoint)


def _trace_id() -> str:
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else ""
