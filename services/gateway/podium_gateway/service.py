"""The gateway's life: connect, serve, drain."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
from aiohttp import web

from podium_core.config.gate import load_gate
from podium_core.config.pins import NO_PINS, Pins, load_pins
from podium_core.config.plans import NO_PLANS, StaticPlans, load_plans
from podium_core.config.tenants import Tenants
from podium_core.config.watched import Source, Watched
from podium_core.domain.clock import Clock
from podium_core.domain.gate import GateTable
from podium_core.domain.ids import IdFactory
from podium_core.resources.opening import open_callers
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.http_server import hang_up_idle, has_connections, stop_listening
from podium_core.runtime.ops import Ops
from podium_core.runtime.settings_base import parse_listen
from podium_core.runtime.telemetry import Telemetry, config_reloads
from podium_gateway.adapters.audit import AuditRecorder
from podium_gateway.adapters.conductor import ConductorPlanner
from podium_gateway.adapters.contents import ContentShelf
from podium_gateway.adapters.conversations import AuditConversations
from podium_gateway.adapters.grades import AuditGrades
from podium_gateway.adapters.leases import Leases
from podium_gateway.adapters.limits import AuditLimits
from podium_gateway.adapters.pool_cache import PoolCache
from podium_gateway.adapters.readiness import ServiceReadiness
from podium_gateway.adapters.router import RouterWorkers
from podium_gateway.adapters.usage import AuditUsage
from podium_gateway.assembly import Backing, build_edge
from podium_gateway.budgets import Budgets
from podium_gateway.http import Edge, build_app, serve
from podium_gateway.named_models import NamedModels
from podium_gateway.ports import ReadinessPort
from podium_gateway.settings import GatewaySettings

T = TypeVar("T")

_log = logging.getLogger(__name__)
_CANCELLING_S = 3.0
_LINGER_S = 1.0
"""How long a kept connection must be without a request before it is closed."""
_LAST_REQUEST_S = 0.05
"""Until a request that was being read while its connection fell idle has entered."""
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway, bound to `port`. Its `parts` never end by themselves."""

    port: int
    settings: GatewaySettings
    edge: Edge
    server: web.AppRunner
    recorder: AuditRecorder
    parts: tuple[asyncio.Task[None], ...]
    ops: Ops

    async def drain(self) -> None:
        """Turn unready, take no new connections, let running requests finish, stop and seal the rest.

        A connection that is open already may bring one more request: its answer closes it.
        """
        admission, settings = self.edge.admission, self.settings
        self.ops.set_ready(False)
        admission.drain()
        _log.info("draining", extra={"runs": admission.count})
        await asyncio.sleep(settings.drain_delay_s)
        await stop_listening(self.server)
        is_empty = await self._emptied()
        admission.close()
        if not is_empty:
            _log.warning("stopping runs that did not finish in time", extra={"runs": admission.count})
            self.edge.handler.runs.cancel_all()
            await admission.empty(settings.seal_wait_s + _CANCELLING_S)
        await self.edge.handler.background.quiet(settings.audit_wait_s)
        await self.recorder.quiet(settings.seal_wait_s)
        await self.edge.limiter.give_all_back()

    async def _emptied(self) -> bool:
        """Wait until nobody is in the house and no connection is left that could bring somebody.

        One whose last answer began before the drain was promised to be kept: its client may use it at once.
        """
        admission, loop = self.edge.admission, asyncio.get_running_loop()
        until = loop.time() + self.settings.drain_timeout_s
        while await admission.empty(until - loop.time()):
            if has_connections(self.server):
                await asyncio.sleep(_LINGER_S)
            hang_up_idle(self.server)
            await asyncio.sleep(_LAST_REQUEST_S)
            if not admission.count:
                return True
        return False


@asynccontextmanager
async def running_gateway(
    settings: GatewaySettings, telemetry: Telemetry, clock: Clock, ids: IdFactory
) -> AsyncGenerator[Gateway, None]:
    """Serve inside the block, without draining at its end; raise PodiumError when that cannot start."""
    async with AsyncExitStack() as stack:
        files = await _Files.of(settings, telemetry, clock, stack)
        audit = await _channel(stack, settings.audit_address, "audit", settings)
        conductor = await _channel(stack, settings.conductor_address, "conductor", settings)
        router = await _channel(stack, settings.router_address, "router", settings)
        leases = Leases(audit, settings.lease_s)
        pool = PoolCache(router, settings.pool_refresh_s)
        shelf = ContentShelf()
        budgets = Budgets(clock)
        waits = {"audit_wait_s": settings.audit_wait_s, "seal_wait_s": settings.seal_wait_s}
        recorder = AuditRecorder(audit, shelf, leases, budgets, clock, **waits)
        conversations = AuditConversations(audit, clock, ids, wait_s=settings.audit_wait_s)
        grades = AuditGrades(audit, clock, ids, settings.audit_wait_s, files.has_gated_tenants)
        stack.push_async_callback(recorder.close)
        services = {"audit": audit, "conductor": conductor, "router": router}
        workers = RouterWorkers(router, shelf, pool.refresh_soon)
        stack.push_async_callback(workers.close)
        backing = Backing(
            planner=ConductorPlanner(conductor, with_names=settings.tell_worker_names),
            workers=workers,
            embedder=workers,
            recorder=recorder,
            pool=pool,
            leases=leases,
            conversations=conversations,
            stops=conversations,
            budgets=budgets,
            limits=AuditLimits(audit, ids.new("gateway"), clock, wait_s=settings.audit_wait_s),
            usage=AuditUsage(audit, clock, wait_s=settings.audit_wait_s),
            grades=grades,
            readiness=ServiceReadiness(services, pool, clock),
            tenants=files.tenants.fresh,
            gate=files.gate_table,
            named=files.named,
        )
        edge = build_edge(backing, settings, telemetry, clock, ids)
        stack.push_async_callback(edge.handler.checker.close)
        watching = [*files.watching(), pool.keep(), leases.keep(), edge.limiter.keep(), grades.keep()]
        parts = _started(watching, stack)
        host, port = parse_listen(settings.listen)
        app = build_app(edge, settings.max_body_bytes)
        server, bound = await serve(app, host, port, settings.connection_limits)
        stack.push_async_callback(server.cleanup)
        _log.info("listening", extra={"port": bound})
        _started([_say_ready(backing.readiness, telemetry.ops)], stack)
        yield Gateway(bound, settings, edge, server, recorder, parts, telemetry.ops)


async def _say_ready(readiness: ReadinessPort, ops: Ops) -> None:
    """Say so once the services behind have answered. Should they go, their callers here are told in words."""
    while not (await readiness.check()).is_ready:  # noqa: ASYNC110 - it is others who change
        await asyncio.sleep(_LOOK_S)
    ops.set_ready(True)


@dataclass(frozen=True, slots=True)
class _Files:
    """The files that may change while the gateway runs; None: not given. Tenants may be objects instead."""

    tenants: Source[Tenants]
    gate: Watched[GateTable] | None
    plans: Watched[StaticPlans] | None
    pins: Watched[Pins] | None

    @classmethod
    async def of(
        cls, settings: GatewaySettings, telemetry: Telemetry, clock: Clock, stack: AsyncExitStack
    ) -> "_Files":
        """Read all of them; raise PodiumError naming line and mistake."""
        looked = config_reloads(telemetry.meter)

        def watched(path: Path | None, load: Callable[[Path], T]) -> Watched[T] | None:
            return None if path is None else Watched(path, load, on_look=looked)

        return cls(
            await open_callers(settings, looked, stack, clock),
            watched(settings.gate_file, load_gate),
            watched(settings.plans_file, load_plans),
            watched(settings.pins_file, load_pins),
        )

    def has_gated_tenants(self) -> bool:
        """Whether the gate matters to anybody."""
        return any(tenant.is_gated for tenant in self.tenants.current.tenants)

    def gate_table(self) -> GateTable:
        """Return the newest gate table."""
        return GateTable() if self.gate is None else self.gate.current

    @property
    def named(self) -> NamedModels:
        """The models that files name."""
        plans, pins = self.plans, self.pins
        return NamedModels(
            lambda: NO_PLANS if plans is None else plans.current,
            lambda: NO_PINS if pins is None else pins.current,
        )

    def watching(self) -> list[Coroutine[Any, Any, None]]:
        """Return what must run for changes to be seen."""
        given = (self.tenants, self.gate, self.plans, self.pins)
        return [file.watch() for file in given if file is not None]


async def _channel(
    stack: AsyncExitStack, address: str, service: str, settings: GatewaySettings
) -> grpc.aio.Channel:
    return await stack.enter_async_context(open_channel(address, service, settings.tls))


def _started(
    parts: Iterable[Coroutine[Any, Any, None]], stack: AsyncExitStack
) -> tuple[asyncio.Task[None], ...]:
    """Run what runs beside the server, until the stack ends."""
    tasks = tuple([asyncio.create_task(part) for part in parts])
    for task in tasks:
        stack.push_async_callback(_stop, task)
    return tasks


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
