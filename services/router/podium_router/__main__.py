"""`podium-router`: builds the router from its settings and serves until told to stop."""

import asyncio
import sys
from contextlib import AsyncExitStack

from podium.router.v1.router_service_pb2_grpc import add_RouterServiceServicer_to_server
from podium_core.config.pool import PoolFile
from podium_core.config.watched import Source
from podium_core.domain.clock import Clock, SystemClock
from podium_core.domain.ids import RandomIds
from podium_core.resources.opening import open_pool
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.logs import configure_logging
from podium_core.runtime.service import run_service, until_stopped
from podium_core.runtime.settings_base import load_settings
from podium_core.runtime.telemetry import config_reloads, configure_telemetry
from podium_router.audit_client import GrpcAudit
from podium_router.catalog import Catalog
from podium_router.dispatch import Dispatcher
from podium_router.endings import Endings
from podium_router.keys import Keys
from podium_router.providers.choice import Providers
from podium_router.providers.exchange import Exchange
from podium_router.servicer import PERMISSIONS, RouterServicer
from podium_router.settings import RouterSettings, environment_variable
from podium_router.statuses import statuses
from podium_router.telemetry import ChatTelemetry, watch_workers


async def serve(settings: RouterSettings) -> None:
    """Serve until SIGTERM or SIGINT, then let running attempts end."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        telemetry = configure_telemetry("router", settings)
        stack.callback(telemetry.shutdown)
        channel = open_channel(settings.audit_address, "audit", settings.tls)
        stack.push_async_callback(channel.close)
        exchange = Exchange(settings.provider_limits, clock)
        stack.push_async_callback(exchange.close)
        providers = Providers(exchange)
        pool = await open_pool(settings, config_reloads(telemetry.meter), stack)
        await providers.load(entry.provider for entry in pool.current.entries)  # before it says "ready"
        catalog = _catalog(pool, settings, clock)
        watch_workers(telemetry.meter, catalog.healths)
        audit = GrpcAudit(channel, clock, end_budget_s=settings.end_budget_s)
        stack.push_async_callback(audit.close)
        endings = Endings(audit, settings.max_pending_ends)
        dispatcher = Dispatcher(
            catalog,
            audit,
            providers,
            endings,
            ChatTelemetry(telemetry.tracer, telemetry.meter, clock),
            clock,
            RandomIds(clock),
            limits=settings.dispatch_limits,
            batches=settings.batch_limits,
        )
        server = GrpcServer(
            listen=settings.listen,
            tls=settings.tls,
            permissions=PERMISSIONS,
            max_connection_age_s=settings.max_connection_age_s,
            on_ready=telemetry.ops.set_ready,
        )
        servicer = RouterServicer(dispatcher, catalog, allow_cli=settings.allow_cli)
        add_RouterServiceServicer_to_server(servicer, server.server)
        await server.start()
        stack.push_async_callback(endings.drain, settings.end_budget_s)
        stack.push_async_callback(dispatcher.drain, timeout_s=1.0)
        stack.push_async_callback(_stop, servicer, server, settings)
        parts = (pool.watch(), *statuses(pool, catalog, settings, clock))
        watching = [asyncio.create_task(part) for part in parts]
        for part in watching:
            stack.callback(part.cancel)
        await until_stopped(*watching)


def _catalog(pool: Source[PoolFile], settings: RouterSettings, clock: Clock) -> Catalog:
    return Catalog(
        lambda: pool.current,
        Keys(environment_variable),
        clock,
        settings.lane_limits,
        settings.breaker_limits,
        settings.call_timeouts,
    )


async def _stop(servicer: RouterServicer, server: GrpcServer, settings: RouterSettings) -> None:
    await server.leave(settings.drain_delay_s)
    servicer.close()
    await server.stop(settings.drain_s)


def main() -> None:
    """Run the service."""
    settings = load_settings(RouterSettings, sys.argv[1:])
    configure_logging("router", settings.log_level)
    run_service(lambda: serve(settings))


if __name__ == "__main__":
    main()
