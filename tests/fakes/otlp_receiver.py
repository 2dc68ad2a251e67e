"""An OTLP/gRPC collector that keeps every span it is sent."""

from concurrent import futures
from types import TracebackType
from typing import Any, Self

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.fakes.waiting import PATIENCE_S


class OtlpReceiver(
    trace_service_pb2_grpc.TraceServiceServicer, metrics_service_pb2_grpc.MetricsServiceServicer
):
    """Listens on loopback while used as a context manager. `spans` are (service, span) as they came."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Span]] = []
        self.requests: list[bytes] = []
        """Every request as it came, to search for what must not be in it."""
        self.endpoint = ""
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - generated name
        """Keep what was sent; both services have this method."""
        self.requests.append(request.SerializeToString())
        if isinstance(request, metrics_service_pb2.ExportMetricsServiceRequest):
            return metrics_service_pb2.ExportMetricsServiceResponse()
        for resource_spans in request.resource_spans:
            names = {a.key: a.value.string_value for a in resource_spans.resource.attributes}
            for scope_spans in resource_spans.scope_spans:
                self.spans += [(names.get("service.name", ""), span) for span in scope_spans.spans]
        return trace_service_pb2.ExportTraceServiceResponse()

    def __enter__(self) -> Self:
        add_traces: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
        add_metrics: Any = metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server
        add_traces(self, self._server)
        add_metrics(self, self._server)
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(None).wait(PATIENCE_S)
