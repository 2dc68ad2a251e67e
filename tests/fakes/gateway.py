"""A gateway's HTTP edge on loopback, over whatever ports a test gives it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from aiohttp import web

from podium_audit.slices import Slices
from podium_core.config.tenants import AUDITOR, CLIENT, GRADER, Key, Tenant, Tenants, new_key
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_core.domain.gate import GateTable
from podium_core.domain.ids import RandomIds
from podium_core.domain.limits import Limits
from podium_core.domain.pool import Pool
from podium_core.orchestration.ports import EmbedPort, NoEmbeddings, PlannerPort, RecorderPort, WorkerPort
from podium_core.runtime.telemetry import Telemetry, configure_telemetry
from podium_gateway.assembly import Backing, build_edge
from podium_gateway.budgets import Budgets
from podium_gateway.http import Edge, build_app, serve
from podium_gateway.named_models import NamedModels
from podium_gateway.ports import MonthMoney, Readiness, UsageRow, Used
from podium_gateway.settings import GatewaySettings
from tests.fakes.conversations import FakeConversations
from tests.fakes.grades import FakeGrades
from tests.fakes.limits import FakeLimits, slices_of
from tests.fakes.planner import FakePlanner
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers

NO_LIMITS = Limits()
TOKEN, _DIGEST = new_key("key-1")
AUDITOR_TOKEN, _AUDITOR_DIGEST = new_key("key-2")
GRADER_TOKEN, _GRADER_DIGEST = new_key("key-3")
COLLEAGUE_TOKEN, _COLLEAGUE_DIGEST = new_key("key-4")


def tenants(
    tenant: Tenant | None = None, key_limits: Limits = NO_LIMITS, key_budget_usd_micros: int | None = None
) -> Tenants:
    """Return one tenant with a client's, an auditor's, a grader's and another client's key."""
    made = tenant or Tenant("acme")
    keys = (
        Key(
            "key-1",
            _DIGEST,
            frozenset({CLIENT}),
            limits=key_limits,
            budget_usd_micros=key_budget_usd_micros,
        ),
        Key("key-2", _AUDITOR_DIGEST, frozenset({AUDITOR})),
        Key("key-3", _GRADER_DIGEST, frozenset({GRADER})),
        Key("key-4", _COLLEAGUE_DIGEST, frozenset({CLIENT})),
    )
    return Tenants((replace(made, keys=keys),))


def gateway_settings(**changes: object) -> GatewaySettings:
    """Return settings that read no file."""
    nowhere = Path("unused")
    files: dict[str, object] = dict.fromkeys(
        ("tls_cert_file", "tls_key_file", "tls_ca_file", "tenants_file"), nowhere
    )
    return GatewaySettings.model_validate({**files, **changes})


@dataclass(slots=True)
class FakePool:
    """A pool that tests may swap or take away."""

    pool: Pool | PodiumError

    def current(self) -> Pool:
        """Return the pool, or raise what is set."""
        if isinstance(self.pool, PodiumError):
            raise self.pool
        return self.pool

    async def newer(self, pool_digest: str, timeout_s: float) -> Pool | None:
        """Return the pool if it was swapped."""
        del timeout_s
        pool = self.current()
        return pool if pool.pool_digest != pool_digest else None


@dataclass(slots=True)
class FakeLeases:
    """Knows the live runs; `stops` lets a test stop one."""

    stops: dict[str, Callable[[PodiumError], None]] = field(default_factory=dict)

    def track(self, run_id: str, stop: Callable[[PodiumError], None]) -> None:
        """Keep how to stop the run."""
        self.stops[run_id] = stop

    def forget(self, run_id: str) -> None:
        """Drop it."""
        self.stops.pop(run_id, None)


@dataclass(slots=True)
class FakeUsage:
    """Answers with set sums, and keeps who asked for what."""

    rows: list[UsageRow] = field(default_factory=list)
    money: MonthMoney = MonthMoney("2026-11", None, 0, 0)
    key_money: MonthMoney | None = None
    asked: list[tuple[str, str, str, str]] = field(default_factory=list)

    async def read(self, tenant_id: str, principal_id: str, first_day: str, last_day: str) -> Used:
        """Return them."""
        self.asked.append((tenant_id, principal_id, first_day, last_day))
        return Used(self.rows, self.money, self.key_money)


@dataclass(slots=True)
class FakeReadiness:
    """Says what it is told to."""

    found: Readiness = field(default_factory=lambda: Readiness(is_ready=True, checks={"audit": "up"}))

    async def check(self) -> Readiness:
        """Return it."""
        return self.found


@dataclass(slots=True)
class EdgeServer:
    """A running edge and its fakes."""

    url: str
    edge: Edge
    server: web.AppRunner
    pool: FakePool
    leases: FakeLeases
    readiness: FakeReadiness
    conversations: FakeConversations
    limits: FakeLimits
    usage: FakeUsage

    @property
    def auth(self) -> dict[str, str]:
        """The headers of a client that may call."""
        return {"Authorization": f"Bearer {TOKEN}"}


def two_workers() -> Pool:
    """Return a pool of two plain workers."""
    return pool(worker("alpha"), worker("beta"))


@asynccontextmanager
async def running_edge(
    *,
    planner: PlannerPort | None = None,
    workers: WorkerPort | None = None,
    recorder: RecorderPort | None = None,
    workers_of: Pool | None = None,
    tenant: Tenant | None = None,
    telemetry: Telemetry | None = None,
    gate: GateTable | None = None,
    conversations: FakeConversations | None = None,
    key_limits: Limits = NO_LIMITS,
    key_budget_usd_micros: int | None = None,
    slices: Slices | None = None,
    holder_id: str = "gateway_1",
    embedder: EmbedPort | None = None,
    named: NamedModels | None = None,
    grades: FakeGrades | None = None,
    **settings: object,
) -> AsyncGenerator[EdgeServer, None]:
    """Serve an edge on a free loopback port."""
    configured = gateway_settings(**settings)
    fake_pool, leases, readiness = FakePool(workers_of or two_workers()), FakeLeases(), FakeReadiness()
    known, kept = tenants(tenant, key_limits, key_budget_usd_micros), conversations or FakeConversations()
    clock, usage = SystemClock(), FakeUsage()
    limits = FakeLimits(slices or slices_of(lambda: known, clock), holder_id)
    backing = Backing(
        planner=planner or FakePlanner(),
        workers=workers or FakeWorkers(),
        recorder=recorder or FakeRecorder(),
        pool=fake_pool,
        leases=leases,
        conversations=kept,
        stops=kept,
        limits=limits,
        budgets=Budgets(clock),
        usage=usage,
        grades=grades or FakeGrades(),
        readiness=readiness,
        tenants=lambda: known,
        gate=lambda: gate or GateTable(),
        embedder=embedder or NoEmbeddings(),
        named=named or NamedModels(),
    )
    edge = build_edge(
        backing, configured, telemetry or configure_telemetry("gateway", configured), clock, RandomIds(clock)
    )
    server, port = await serve(build_app(edge, configured.max_body_bytes), "127.0.0.1", 0)
    try:
        yield EdgeServer(
            f"http://127.0.0.1:{port}", edge, server, fake_pool, leases, readiness, kept, limits, usage
        )
    finally:
        edge.handler.runs.cancel_all()
        await edge.admission.empty(5)
        await server.cleanup()
        await edge.handler.checker.close()
