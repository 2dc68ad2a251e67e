"""`podium-conductor`: builds the conductor from its settings and serves until told to stop."""

import sys
from contextlib import AsyncExitStack

from podium.conductor.v1.conductor_service_pb2_grpc import add_ConductorServiceServicer_to_server
from podium_conductor.assembly import start_engine, watching
from podium_conductor.planning import Planning
from podium_conductor.servicer import PERMISSIONS, ConductorServicer
from podium_conductor.settings import ConductorSettings
from podium_conductor.telemetry import PlanTelemetry
from podium_core.domain.clock import SystemClock
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.logs import configure_logging
from podium_core.runtime.service import run_service, until_stopped
from podium_core.runtime.settings_base import load_settings
from podium_core.runtime.telemetry import configure_telemetry


async def serve(settings: ConductorSettings) -> None:
    """Serve until SIGTERM or SIGINT, then let running calls end."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        telemetry = configure_telemetry("conductor", settings)
        stack.callback(telemetry.shutdown)
        engine = await start_engine(settings, stack, clock, telemetry.meter)
        stack.push_async_callback(engine.close)
        planning = Planning(
            engine,
            PlanTelemetry(telemetry.tracer, telemetry.meter, clock),
            clock,
            settings.planning_limits,
        )
        server = GrpcServer(
            listen=settings.listen,
            tls=settings.tls,
            permissions=PERMISSIONS,
            max_connection_age_s=settings.max_connection_age_s,
            on_ready=telemetry.ops.set_ready,
        )
        servicer = ConductorServicer(planning, settings.max_plan_s)
        add_ConductorServiceServicer_to_server(servicer, server.server)
        await server.start()

        def model_lives(lives: bool) -> None:  # noqa: FBT001 - the shape of what watching tells
            server.set_serving(lives)
            telemetry.ops.set_broken(not lives)

        async with watching(engine, settings, clock, model_lives):
            await until_stopped()
        await server.leave(settings.drain_delay_s)
        await server.stop(settings.drain_s)


def main() -> None:
    """Run the service."""
    settings = load_settings(ConductorSettings, sys.argv[1:])
    configure_logging("conductor", settings.log_level)
    run_service(lambda: serve(settings))


if __name__ == "__main__":
    main()
