"""OTLP over gRPC: TraceService.Export, as every OpenTelemetry SDK and collector calls it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from podium_audit.intake.decoding import Decoded, decode
from podium_audit.intake.senders import AnySender, sender_of
from podium_audit.intake.span_intake import SpanIntake
from podium_core.config.tenants import Tenants
from podium_core.runtime.identity import caller_of

if TYPE_CHECKING:
    import grpc

    _Context = grpc.aio.ServicerContext[Any, Any]

PERMISSIONS = {"/opentelemetry.proto.collector.trace.v1.TraceService/Export": AnySender()}
"""Who may call what: every certificate of this installation, as far as `sender_of` knows its name."""


class OtlpServicer(trace_service_pb2_grpc.TraceServiceServicer):
    """Takes spans."""

    def __init__(self, intake: SpanIntake, tenants: Callable[[], Tenants]) -> None:
        self._intake = intake
        self._tenants = tenants

    async def Export(  # noqa: N802 - named by the contract
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: "_Context"
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        """Keep the spans; answered before they are stored, since they may be lost."""
        sender = sender_of(caller_of(context), self._tenants)
        decoded = decode(request, tenant_id=sender.tenant_id, sender=sender.name)
        self._intake.take(decoded.rows)
        return answer_to(decoded)


def answer_to(decoded: Decoded) -> trace_service_pb2.ExportTraceServiceResponse:
    """Return the answer, which tells how many spans were refused (OTLP: partial success)."""
    answer = trace_service_pb2.ExportTraceServiceResponse()
    if decoded.refused:
        answer.partial_success.rejected_spans = decoded.refused
        answer.partial_success.error_message = "spans without valid ids and times, or too many at once"
    return answer
