"""The two servers that take spans, each only where the settings name an address."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc

from podium_audit.intake.otlp_http import OtlpHttp, refusal
from podium_audit.intake.otlp_servicer import PERMISSIONS, OtlpServicer
from podium_audit.intake.span_intake import SpanIntake
from podium_audit.settings import AuditSettings
from podium_core.config.tenants import Tenants
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.http_server import listen
from podium_core.runtime.live_tls import server_context
from podium_core.runtime.settings_base import parse_listen


async def serve_intake(
    settings: AuditSettings, intake: SpanIntake, tenants: Callable[[], Tenants], stack: AsyncExitStack
) -> tuple[int, int]:
    """Serve until `stack` is closed; return the ports of OTLP/gRPC and OTLP/HTTP, 0 for one that is off.

    Raises PodiumError when an address or a TLS file cannot be used.
    """
    grpc_port = http_port = 0
    if settings.otlp_grpc_listen:
        server = GrpcServer(
            listen=settings.otlp_grpc_listen,
            tls=settings.tls,
            permissions=PERMISSIONS,
            max_connection_age_s=settings.max_connection_age_s,
        )
        register: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
        register(OtlpServicer(intake, tenants), server.server)
        grpc_port = await server.start()
        stack.push_async_callback(server.stop, settings.drain_s)
    if settings.otlp_http_listen:
        host, port = parse_listen(settings.otlp_http_listen)
        runner, http_port = await listen(
            OtlpHttp(intake, tenants).application(),
            host,
            port,
            refuse=refusal,
            shutdown_timeout_s=settings.drain_s,
            tls=server_context(settings.tls),
        )
        stack.push_async_callback(runner.cleanup)
    return grpc_port, http_port
