"""`podium-audit`: builds the audit service from its settings and serves until told to stop."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TypeVar

from podium_audit.assembly import Audit, open_audit
from podium_audit.intake.serving import serve_intake
from podium_audit.migration import MIGRATE, MigrationSettings, migrate
from podium_audit.reading import http
from podium_audit.servicers.permissions import PERMISSIONS
from podium_audit.settings import AuditSettings
from podium_audit.shut_log import verb_of
from podium_audit.telemetry import watch_health
from podium_core.domain.errors import Code, PodiumError
from podium_core.resources.opening import open_tenants
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.http_server import listen
from podium_core.runtime.logs import configure_logging
from podium_core.runtime.service import run_service, until_stopped
from podium_core.runtime.settings_base import load_settings, parse_listen
from podium_core.runtime.telemetry import Telemetry, config_reloads, configure_telemetry

S = TypeVar("S")

_HEALTH_EVERY_S = 0.5


async def serve(settings: AuditSettings) -> None:
    """Serve until SIGTERM or SIGINT, then commit what waits. Raises PodiumError if the log cannot be used."""
    async with AsyncExitStack() as stack:
        telemetry = configure_telemetry("audit", settings)
        stack.callback(telemetry.shutdown)
        looked = config_reloads(telemetry.meter)
        tenants = await open_tenants(settings, looked, stack, poll_s=settings.tenants_poll_s)
        audit = await open_audit(settings, telemetry, tenants)
        stack.push_async_callback(audit.close)
        server = GrpcServer(
            listen=settings.listen,
            tls=settings.tls,
            permissions=PERMISSIONS,
            max_connection_age_s=settings.max_connection_age_s,
            on_ready=telemetry.ops.set_ready,
        )
        audit.serve_on(server.server)
        await _serve_http(settings, audit, stack)
        if audit.intake is not None:
            await serve_intake(settings, audit.intake, lambda: audit.tenants.current, stack)
        await server.start()
        tasks = [
            asyncio.create_task(task) for task in (*audit.tasks(), _show_health(server, audit, telemetry))
        ]
        tasks.append(asyncio.create_task(audit.commit.until_ended()))
        stopped = asyncio.create_task(until_stopped())
        await asyncio.wait((*tasks, stopped), return_when=asyncio.FIRST_COMPLETED)
        ended = [task for task in tasks if task.done()]
        await server.leave(settings.drain_delay_s)
        for task in (*tasks, stopped):
            task.cancel()
        audit.servicer.close()
        await server.stop(settings.drain_s)
        for task in ended:
            await task
            raise PodiumError(Code.INTERNAL, "a part of audit ended unexpectedly", reason="PART_ENDED")


async def _serve_http(settings: AuditSettings, audit: Audit, stack: AsyncExitStack) -> None:
    host, port = parse_listen(settings.http_listen)
    runner, _ = await listen(
        audit.http.application(), host, port, refuse=http.refusal, shutdown_timeout_s=settings.drain_s
    )
    stack.push_async_callback(runner.cleanup)


async def _show_health(server: GrpcServer, audit: Audit, telemetry: Telemetry) -> None:
    watch_health(telemetry.meter, lambda: audit.commit.is_healthy)
    telemetry.ops.show_condition("log", lambda: "commits" if audit.commit.is_healthy else "cannot commit")
    was_healthy = True
    while True:
        is_healthy = audit.commit.is_healthy
        server.set_serving(is_healthy)
        if was_healthy and not is_healthy and audit.commit.is_shared:
            audit.servicer.send_away()  # new calls go to other replicas by themselves
        was_healthy = is_healthy
        await asyncio.sleep(_HEALTH_EVERY_S)


def _perform(verb: Callable[[S], str], settings: S) -> int:
    try:
        sys.stdout.write(verb(settings))
    except PodiumError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    return 0


def main() -> None:
    """Run the service."""
    if sys.argv[1:] == MIGRATE:
        wanted = load_settings(MigrationSettings, [])
        configure_logging("audit", wanted.log_level)
        sys.exit(_perform(migrate, wanted))
    verb = verb_of(sys.argv[1:])
    settings = load_settings(AuditSettings, [] if verb else sys.argv[1:])
    configure_logging("audit", settings.log_level)
    if verb is not None:
        sys.exit(_perform(verb, settings))
    run_service(lambda: serve(settings))


if __name__ == "__main__":
    main()
