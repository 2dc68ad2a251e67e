"""Asks the conductor of a local Podium for a plan, with this command's own certificate.

An engine that makes attempts needs an open run: then one of kind probe is opened, recorded and sealed.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import grpc

from podium.audit.v1 import audit_service_pb2 as audit_pb
from podium.audit.v1 import audit_service_pb2_grpc
from podium.conductor.v1 import conductor_service_pb2 as conductor_pb
from podium.conductor.v1 import conductor_service_pb2_grpc
from podium.router.v1 import router_service_pb2 as router_pb
from podium.router.v1 import router_service_pb2_grpc
from podium_core.config.tenants import Tenant
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.domain.policy import Verdict
from podium_core.domain.pool import Pool
from podium_core.domain.run import RunKind, RunOutcome
from podium_core.orchestration.ports import PlanQuery, PlanReply
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.runtime.identity import TlsFiles
from podium_core.wire.plan_query import plan_query_to_proto, plan_reply_from_proto
from podium_core.wire.plan_record import plan_contents, plan_record
from podium_core.wire.pool import pool_from_proto
from podium_core.wire.run import RUN_KIND, RUN_OUTCOME, caps_to_proto, verdicts_to_proto

_CALL_S = 10.0
_LEASE_MARGIN_S = 60.0
_PRINCIPAL = "podium-plan"


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and where it came from. `run_id` is empty when nothing had to be recorded."""

    reply: PlanReply
    engine: str
    has_probabilities: bool
    run_id: str


class PlanningClient:
    """Speaks to router, conductor and audit."""

    def __init__(
        self,
        router: grpc.aio.Channel,
        conductor: grpc.aio.Channel,
        audit: grpc.aio.Channel,
        ids: IdFactory,
    ) -> None:
        self._router: router_service_pb2_grpc.RouterServiceAsyncStub = (
            router_service_pb2_grpc.RouterServiceStub(router)
        )
        self._conductor: conductor_service_pb2_grpc.ConductorServiceAsyncStub = (
            conductor_service_pb2_grpc.ConductorServiceStub(conductor)
        )
        self._audit: audit_service_pb2_grpc.AuditServiceAsyncStub = audit_service_pb2_grpc.AuditServiceStub(
            audit
        )
        self._ids = ids

    async def pool(self) -> Pool:
        """Return the pool as it is now; raise PodiumError."""
        with rpc_errors("router"):
            return pool_from_proto(
                await self._router.ListWorkers(router_pb.ListWorkersRequest(), timeout=_CALL_S)
            )

    async def model_digest(self) -> str:
        """Return the digest of the model that plans; raise PodiumError."""
        with rpc_errors("conductor"):
            described = await self._conductor.Describe(conductor_pb.DescribeRequest(), timeout=_CALL_S)
        return described.model_digest

    async def plan(
        self, query: PlanQuery, pool: Pool, verdicts: tuple[Verdict, ...], tenant: Tenant
    ) -> Planned:
        """Return the conductor's plan for `query` with its prompt; raise PodiumError."""
        with rpc_errors("conductor"):
            described = await self._conductor.Describe(conductor_pb.DescribeRequest(), timeout=_CALL_S)
        if not described.makes_attempts:
            reply = await self._ask(query)
            return Planned(reply, described.engine, described.has_probabilities, "")
        await self._open(query, pool, verdicts, tenant)
        outcome = RunOutcome.FAILED
        try:
            reply = await self._ask(replace(query, run_is_open=True))
            with rpc_errors("audit"):
                await self._audit.Append(
                    audit_pb.AppendRequest(
                        event_id=self._ids.new("evt"),
                        run_id=query.run_id,
                        plan=plan_record(reply),
                        contents=plan_contents(reply),
                    ),
                    timeout=_CALL_S,
                )
            outcome = RunOutcome.ANSWERED
        finally:
            await self._seal(query.run_id, outcome)
        return Planned(reply, described.engine, described.has_probabilities, query.run_id)

    async def _ask(self, query: PlanQuery) -> PlanReply:
        with rpc_errors("conductor"):
            message = await self._conductor.Plan(plan_query_to_proto(query), timeout=query.timeout_s)
        return plan_reply_from_proto(message, query.seed)

    async def _open(
        self, query: PlanQuery, pool: Pool, verdicts: tuple[Verdict, ...], tenant: Tenant
    ) -> None:
        question = query.question.last.text.encode(errors="replace")
        budget = tenant.budget_usd_micros
        request = audit_pb.OpenRunRequest(
            event_id=self._ids.new("evt"),
            run_id=query.run_id,
            kind=RUN_KIND.to_proto(RunKind.PROBE),
            tenant_id=tenant.tenant_id,
            principal_id=_PRINCIPAL,
            requested_model=query.tier,
            verdicts=verdicts_to_proto(verdicts),
            caps=caps_to_proto(query.caps),
            contents=[
                audit_pb.Content(
                    part_id="question",
                    name="question",
                    media_type="text/plain; charset=utf-8",
                    data=question,
                )
            ],
            pool_digest=pool.pool_digest,
            price_digest=pool.price_digest,
            lease_ms=int((query.timeout_s + _LEASE_MARGIN_S) * 1_000),
            tenant_budget_usd_micros=budget or 0,
            has_tenant_budget=budget is not None,
        )
        with rpc_errors("audit"):
            await self._audit.OpenRun(request, timeout=_CALL_S)

    async def _seal(self, run_id: str, outcome: RunOutcome) -> None:
        request = audit_pb.SealRequest(
            event_id=self._ids.new("evt"), run_id=run_id, outcome=RUN_OUTCOME.to_proto(outcome)
        )
        try:
            with rpc_errors("audit"):
                await self._audit.Seal(request, timeout=_CALL_S)
        except PodiumError:
            return  # the lease lapses and audit seals the run itself


@asynccontextmanager
async def planning_client(
    addresses: dict[str, str], tls: TlsFiles, ids: IdFactory
) -> AsyncGenerator[PlanningClient, None]:
    """Connect to the services at `addresses`."""
    async with (
        open_channel(addresses["router"], "router", tls) as router,
        open_channel(addresses["conductor"], "conductor", tls) as conductor,
        open_channel(addresses["audit"], "audit", tls) as audit,
    ):
        yield PlanningClient(router, conductor, audit, ids)
