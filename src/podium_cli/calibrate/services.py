"""Asks workers in runs of kind calibrate, straight at router and log, with the command's own certificate.

Each item is a run of its own: opened in the log, one step at one worker through the router, sealed.
"""

import asyncio
from types import TracebackType
from typing import Self

import grpc

from podium.audit.v1 import audit_service_pb2 as audit_pb
from podium.audit.v1 import audit_service_pb2_grpc
from podium.router.v1 import router_service_pb2 as router_pb
from podium.router.v1 import router_service_pb2_grpc
from podium_cli.calibrate.measure import Asked
from podium_cli.calibrate.plan import PlannedCall
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.policy import Verdict
from podium_core.domain.pool import Pool
from podium_core.domain.run import AttemptKind, Caps, RunKind, RunOutcome
from podium_core.domain.usage import Usage
from podium_core.runtime.grpc_client import open_channel, retry_unary
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.runtime.identity import TlsFiles
from podium_core.wire.pool import pool_from_proto
from podium_core.wire.run import ATTEMPT_KIND, RUN_KIND, RUN_OUTCOME, caps_to_proto, verdicts_to_proto
from podium_core.wire.usage import usage_from_proto

_AUDIT_WAIT_S = 10.0
_SEAL_WAIT_S = 20.0
_LIST_WAIT_S = 10.0
_LEASE_MS = 120_000
_RENEW_S = 30.0
_MAX_TRIES = 3
_FIRST_PAUSE_S = 0.5
_PASSING = frozenset({Code.RATE_LIMITED, Code.UNAVAILABLE})
_PRINCIPAL = "calibrate"
_RULE_ID = "calibrate.selected"
_PART_ID = "question"


class Services:
    """The router and the log, as the command line may use them. An async context manager."""

    def __init__(
        self,
        router_address: str,
        audit_address: str,
        tls: TlsFiles,
        clock: Clock,
        *,
        tenant_id: str,
        budget_usd_micros: int | None,
    ) -> None:
        self._channels = (
            open_channel(router_address, "router", tls),
            open_channel(audit_address, "audit", tls),
        )
        self._router: router_service_pb2_grpc.RouterServiceAsyncStub = (
            router_service_pb2_grpc.RouterServiceStub(self._channels[0])
        )
        self._audit: audit_service_pb2_grpc.AuditServiceAsyncStub = audit_service_pb2_grpc.AuditServiceStub(
            self._channels[1]
        )
        self._clock = clock
        self._tenant_id = tenant_id
        self._budget_usd_micros = budget_usd_micros
        self._open_runs: set[str] = set()
        self._pool: Pool | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
        for channel in self._channels:
            await channel.close()

    async def pool(self) -> Pool:
        """Return the pool as the router has it now. Raises PodiumError."""
        request = router_pb.ListWorkersRequest()
        answer = await retry_unary(
            lambda timeout: self._router.ListWorkers(request, timeout=timeout),
            service="router",
            budget_s=_LIST_WAIT_S,
            clock=self._clock,
        )
        self._pool = pool_from_proto(answer)
        return self._pool

    async def ask(self, run_id: str, call: PlannedCall) -> Asked:
        """Ask once, as the port says; what passes by itself is tried again within the same run."""
        pool = self._pool or await self.pool()
        await self._open(run_id, call, pool)
        outcome, completed, text = RunOutcome.FAILED, None, ""
        error: PodiumError | None = None
        try:
            completed, text = await self._complete(run_id, call, pool)
            outcome = RunOutcome.ANSWERED
        except PodiumError as caught:
            error = caught
        except asyncio.CancelledError:
            await asyncio.shield(self._seal(run_id, RunOutcome.CANCELLED, "CANCELLED", otherwise=0))
            raise
        known = call.max_cost_usd_micros if completed is None else completed.cost_usd_micros
        cost = await self._seal(run_id, outcome, error.reason if error else "", otherwise=known)
        if completed is None:
            return Asked("", Usage(), cost, 0, "", error)
        usage = usage_from_proto(completed.usage)
        return Asked(text, usage, cost, completed.latency_us, completed.finish_reason)

    async def _open(self, run_id: str, call: PlannedCall, pool: Pool) -> None:
        cap = call.max_cost_usd_micros if call.worker.price is not None else None
        caps = Caps(
            max_steps=1, max_calls=_MAX_TRIES, max_cost_usd_micros=cap, max_attempts_per_step=_MAX_TRIES
        )
        question = audit_pb.Content(
            part_id=_PART_ID, name="question", media_type="application/json", data=call.item.messages
        )
        request = audit_pb.OpenRunRequest(
            event_id=f"{run_id}-open",
            run_id=run_id,
            kind=RUN_KIND.to_proto(RunKind.CALIBRATE),
            tenant_id=self._tenant_id,
            principal_id=_PRINCIPAL,
            requested_model=f"worker/{call.worker.worker_id}",
            verdicts=verdicts_to_proto([Verdict(call.worker.worker_id, allowed=True, rule_id=_RULE_ID)]),
            caps=caps_to_proto(caps),
            contents=[question],
            pool_digest=pool.pool_digest,
            price_digest=pool.price_digest,
            lease_ms=_LEASE_MS,
            tenant_budget_usd_micros=self._budget_usd_micros or 0,
            has_tenant_budget=self._budget_usd_micros is not None,
        )
        await retry_unary(
            lambda timeout: self._audit.OpenRun(request, timeout=timeout),
            service="audit",
            budget_s=_AUDIT_WAIT_S,
            clock=self._clock,
        )
        self._open_runs.add(run_id)

    async def _complete(self, run_id: str, call: PlannedCall, pool: Pool) -> tuple[router_pb.Completed, str]:
        pause_s = _FIRST_PAUSE_S
        for number in range(_MAX_TRIES):
            try:
                return await self._attempt(f"{run_id}-a{number}", run_id, call, pool)
            except PodiumError as error:
                if error.code not in _PASSING or number + 1 == _MAX_TRIES:
                    raise
                await asyncio.sleep(max(pause_s, error.retry_after_s or 0.0))
                pause_s *= 2
        raise AssertionError("unreachable")  # the last try returns or raises

    async def _attempt(
        self, attempt_id: str, run_id: str, call: PlannedCall, pool: Pool
    ) -> tuple[router_pb.Completed, str]:
        request = router_pb.CompleteRequest(
            attempt_id=attempt_id,
            run_id=run_id,
            tenant_id=self._tenant_id,
            kind=ATTEMPT_KIND.to_proto(AttemptKind.STEP),
            worker_id=call.worker.worker_id,
            pool_digest=pool.pool_digest,
            messages=[router_pb.Segment(part_id=_PART_ID, data=call.item.messages)],
            max_output_tokens=call.max_output_tokens,
        )
        completed: router_pb.Completed | None = None
        with rpc_errors("router"):
            async for event in self._router.Complete(request, timeout=call.timeout_s + _AUDIT_WAIT_S):
                if event.WhichOneof("event") == "completed":
                    completed = event.completed
        if completed is None:
            raise PodiumError(Code.PROVIDER_FAILED, "the router ended the call without its last event")
        return completed, completed.message.text

    async def _seal(self, run_id: str, outcome: RunOutcome, reason: str, *, otherwise: int) -> int:
        """Close the run; return what the log says it cost, or `otherwise` when it does not answer.

        A run that is not sealed here lapses: then the log settles what was open at its reserved maximum.
        """
        request = audit_pb.SealRequest(
            event_id=f"{run_id}-seal",
            run_id=run_id,
            outcome=RUN_OUTCOME.to_proto(outcome),
            error_reason=reason,
        )
        try:
            answer = await retry_unary(
                lambda timeout: self._audit.Seal(request, timeout=timeout),
                service="audit",
                budget_s=_SEAL_WAIT_S,
                clock=self._clock,
            )
        except PodiumError:
            return otherwise
        finally:
            self._open_runs.discard(run_id)
        return int(answer.cost_usd_micros)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_S)
            if not self._open_runs:
                continue
            request = audit_pb.RenewLeaseRequest(run_ids=sorted(self._open_runs), lease_ms=_LEASE_MS)
            try:
                await self._audit.RenewLease(request, timeout=_AUDIT_WAIT_S)
            except grpc.aio.AioRpcError:
                continue  # the next call or seal says what is wrong
