"""Puts the edge together over whatever stands behind it: gRPC adapters in service, fakes in tests."""

from collections.abc import Callable
from dataclasses import dataclass

from podium_core.config.tenants import Tenants
from podium_core.domain.clock import Clock
from podium_core.domain.gate import GateTable
from podium_core.domain.ids import IdFactory
from podium_core.orchestration.limits import RunnerLimits
from podium_core.orchestration.ports import EmbedPort, NoEmbeddings, PlannerPort, RecorderPort, WorkerPort
from podium_core.orchestration.runner import Runner
from podium_core.runtime.telemetry import Telemetry
from podium_gateway.adapters.contents import rendered
from podium_gateway.admission import Admission
from podium_gateway.auth import Authenticator
from podium_gateway.background import Background
from podium_gateway.budgets import Budgets
from podium_gateway.caps import MaxTier
from podium_gateway.completions import StoredCompletions
from podium_gateway.completions_routes import CompletionsRoutes
from podium_gateway.continuations import Continuations, PausingRunner
from podium_gateway.dry_run import DryRuns
from podium_gateway.handler import RunHandler, StreamLimits
from podium_gateway.http import Edge
from podium_gateway.intake import Intake
from podium_gateway.limiter import Limiter
from podium_gateway.named_models import NamedModels
from podium_gateway.own_usage import OwnUsage
from podium_gateway.ports import (
    ConversationPort,
    GradePort,
    LeasePort,
    LimitPort,
    PoolPort,
    ReadinessPort,
    StopPort,
    UsagePort,
)
from podium_gateway.repeats import Repeats
from podium_gateway.responses_routes import ResponsesRoutes
from podium_gateway.runs import Runs
from podium_gateway.schemas.checker import SchemaChecker
from podium_gateway.settings import GatewaySettings
from podium_gateway.stored import StoredResponses
from podium_gateway.telemetry import RunTelemetry


@dataclass(frozen=True, slots=True)
class Backing:
    """What stands behind the edge."""

    planner: PlannerPort
    workers: WorkerPort
    recorder: RecorderPort
    pool: PoolPort
    leases: LeasePort
    conversations: ConversationPort
    stops: StopPort
    limits: LimitPort
    budgets: Budgets
    usage: UsagePort
    grades: GradePort
    readiness: ReadinessPort
    tenants: Callable[[], Tenants]
    gate: Callable[[], GateTable] = GateTable
    embedder: EmbedPort = NoEmbeddings()
    named: NamedModels = NamedModels()


def build_edge(
    backing: Backing, settings: GatewaySettings, telemetry: Telemetry, clock: Clock, ids: IdFactory
) -> Edge:
    """Return the edge with its handlers."""
    observer = RunTelemetry(telemetry, clock, frozenset(settings.trusted_trace_tenants))
    limits = settings.runner_limits

    runner_over = _runners(backing, limits, observer, clock, ids)
    intake = _intake(backing, settings, observer, clock)
    continuations = _continuations(backing, settings)
    runs = Runs(
        runner=PausingRunner(runner_over(backing.workers, backing.recorder), continuations),
        leases=backing.leases,
        budgets=backing.budgets,
        telemetry=observer,
        clock=clock,
        ids=ids,
        caps=settings.caps,
        max_tier=_max_tier(settings),
        gate=backing.gate,
        grades=backing.grades,
        named=backing.named,
    )
    kept, ttl_s = backing.conversations, settings.response_ttl_s
    stored, completions = StoredResponses(kept, clock, ttl_s), StoredCompletions(kept, clock, ttl_s)
    background = Background(
        stored, backing.stops, keep_alive_s=settings.keep_alive_s, write_stall_s=settings.write_stall_s
    )
    handler = RunHandler(
        intake=intake,
        runs=runs,
        dry_runs=DryRuns(runner_over, backing.recorder, limits),
        background=background,
        continuations=continuations,
        repeats=_repeats(backing.conversations, settings),
        pool=backing.pool,
        clock=clock,
        checker=SchemaChecker(),
        limits=StreamLimits(settings.first_byte_s, settings.keep_alive_s, settings.write_stall_s),
    )
    return Edge(
        handler=handler,
        responses=ResponsesRoutes(intake, stored, background),
        completions=CompletionsRoutes(intake, completions),
        own_usage=OwnUsage(backing.usage, clock),
        readiness=backing.readiness,
        telemetry=observer,
        clock=clock,
        inner_step_output_tokens=settings.inner_step_output_tokens,
    )


def _max_tier(settings: GatewaySettings) -> MaxTier:
    return MaxTier(
        settings.podium_max_rounds, settings.podium_max_quorum, settings.podium_max_straggler_wait_s
    )


def _runners(
    backing: Backing, limits: RunnerLimits, observer: RunTelemetry, clock: Clock, ids: IdFactory
) -> Callable[[WorkerPort, RecorderPort], Runner]:
    """Return what makes runners: those that perform, and those that only plan."""

    def runner_over(workers: WorkerPort, recorder: RecorderPort) -> Runner:
        return Runner(
            backing.planner,
            workers,
            recorder,
            clock,
            ids,
            limits,
            observer,
            backing.embedder,
            pools=backing.pool,
        )

    return runner_over


def _intake(backing: Backing, settings: GatewaySettings, observer: RunTelemetry, clock: Clock) -> Intake:
    admission = Admission(
        settings.max_concurrent_runs,
        settings.max_concurrent_bytes,
        lambda: settings.max_tenant_share if len(backing.tenants().tenants) > 1 else 1.0,
    )
    return Intake(
        Authenticator(backing.tenants, clock),
        admission,
        Limiter(backing.limits, clock, observer.limited),
        max_body_bytes=settings.max_body_bytes,
        body_timeout_s=settings.body_timeout_s,
    )


def _continuations(backing: Backing, settings: GatewaySettings) -> Continuations:
    return Continuations(
        backing.conversations,
        rendered,
        settings.continuation_ttl_s,
        keeps_content=lambda tenant_id: backing.tenants().keep_content(tenant_id),
    )


def _repeats(kept: ConversationPort, settings: GatewaySettings) -> Repeats:
    return Repeats(
        kept,
        ttl_s=settings.idempotency_ttl_s,
        linger_s=settings.idempotency_linger_s,
        first_byte_s=settings.first_byte_s,
        keep_alive_s=settings.keep_alive_s,
        write_stall_s=settings.write_stall_s,
    )
