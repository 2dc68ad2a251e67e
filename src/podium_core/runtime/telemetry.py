"""Spans and metrics of a service. The OpenTelemetry SDK is used here and nowhere else.

Nothing here may slow a run: spans wait in a bounded queue and are dropped when it is full, and an absent
collector delays the shutdown by at most `SHUTDOWN_S`.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NoOpTracerProvider, Status
from prometheus_client import CollectorRegistry

from podium_core.runtime import attributes
from podium_core.runtime.live_tls import LiveTls
from podium_core.runtime.ops import Ops, OpsServer
from podium_core.runtime.renewed_exporters import RenewedMetricExporter, RenewedSpanExporter
from podium_core.runtime.settings_base import ServiceSettings

SHUTDOWN_S = 2.0

_SCOPE = "podium"
_EXPORT_TIMEOUT_S = 1.0
_QUEUED_SPANS = 4096
_BATCHED_SPANS = 512
_SPAN_DELAY_MS = 1_000
_METRIC_INTERVAL_MS = 15_000
_ATTRIBUTE_CHARS = 256
_TEXT_ATTRIBUTES = frozenset({"exception.message", "exception.stacktrace"})


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a service records with. Without collector and endpoint both do nothing at next to no cost."""

    tracer: trace.Tracer
    meter: metrics.Meter
    _closers: tuple[Callable[[], object], ...] = ()
    ops: Ops = field(default_factory=Ops)

    def shutdown(self) -> None:
        """Send what is queued and stop; give up after `SHUTDOWN_S` seconds."""
        threads = [threading.Thread(target=close, daemon=True) for close in self._closers]
        for thread in threads:
            thread.start()
        end = time.monotonic() + SHUTDOWN_S
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))


class WithoutTexts(SpanExporter):
    """Takes exception texts out of spans on their way out: they may hold content.

    OpenTelemetry records them by default whenever an exception leaves a span, so forgetting to ask
    otherwise must not be enough to leak. The exception's type stays.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export the spans without texts."""
        return self._exporter.export([_without_texts(span) for span in spans])

    def shutdown(self) -> None:
        """Stop the exporter behind."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the exporter behind."""
        return self._exporter.force_flush(timeout_millis)


def configure_telemetry(service: str, settings: ServiceSettings) -> Telemetry:
    """Return the service's tracer and meter, exporting only where the settings say so.

    Raises PodiumError when the ops address cannot be bound or a CA file cannot be read.
    """
    resource = Resource({"service.name": f"podium-{service}", "service.namespace": _SCOPE})
    tracer: trace.Tracer = NoOpTracerProvider().get_tracer(_SCOPE)
    meter: metrics.Meter = NoOpMeterProvider().get_meter(_SCOPE)
    closers: list[Callable[[], object]] = []
    readers: list[MetricReader] = []
    ops = Ops()
    if settings.ops_listen:
        registry = CollectorRegistry()
        readers.append(PrometheusMetricReader(registry=registry))
        closers.append(OpsServer(settings.ops_listen, ops, registry).close)
    if settings.otlp_endpoint:
        spans = _tracer_provider(resource, settings)
        tracer = spans.get_tracer(_SCOPE)
        closers.append(spans.shutdown)
        readers.append(_metric_reader(settings))
    if readers:
        provider = MeterProvider(
            metric_readers=readers, resource=resource, views=_views(), shutdown_on_exit=False
        )
        meter = provider.get_meter(_SCOPE)
        closers.append(provider.shutdown)
        _show_expiry(meter, settings)
    return Telemetry(tracer, meter, tuple(closers), ops)


def config_reloads(meter: metrics.Meter) -> Callable[[str, str], None]:
    """Return what counts new versions of configuration: name of the file or of the kind, and the outcome."""
    counter = meter.create_counter(
        attributes.METRIC_CONFIG_RELOADS, "{version}", "New versions of configuration"
    )

    def looked(file: str, outcome: str) -> None:
        counter.add(1, {attributes.CONFIG_FILE: file, attributes.CONFIG_OUTCOME: outcome})

    return looked


def _show_expiry(meter: metrics.Meter, settings: ServiceSettings) -> None:
    live = LiveTls(settings.tls)

    def expiry(_: metrics.CallbackOptions) -> list[metrics.Observation]:
        return [metrics.Observation(live.fresh().expires_at_s)]

    meter.create_observable_gauge(
        attributes.METRIC_TLS_EXPIRY, [expiry], "s", "When the certificate in use ends, since 1970"
    )


def _tracer_provider(resource: Resource, settings: ServiceSettings) -> TracerProvider:
    exporter = RenewedSpanExporter(
        lambda credentials: OTLPSpanExporter(**_collector(settings, credentials)),
        _collector_tls(settings),
    )
    provider = TracerProvider(
        resource=resource,
        span_limits=SpanLimits(max_attribute_length=_ATTRIBUTE_CHARS),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(
        BatchSpanProcessor(
            WithoutTexts(exporter),
            max_queue_size=_QUEUED_SPANS,
            schedule_delay_millis=_SPAN_DELAY_MS,
            max_export_batch_size=_BATCHED_SPANS,
        )
    )
    return provider


def _metric_reader(settings: ServiceSettings) -> MetricReader:
    exporter = RenewedMetricExporter(
        lambda credentials: OTLPMetricExporter(**_collector(settings, credentials)),
        _collector_tls(settings),
    )
    return PeriodicExportingMetricReader(exporter, export_interval_millis=_METRIC_INTERVAL_MS)


def _collector(settings: ServiceSettings, credentials: grpc.ChannelCredentials | None) -> dict[str, Any]:
    """Return how an exporter reaches the collector."""
    name = settings.otlp_server_name
    return {
        "endpoint": settings.otlp_endpoint,
        "insecure": credentials is None,
        "credentials": credentials,
        "timeout": _EXPORT_TIMEOUT_S,
        "channel_options": (("grpc.ssl_target_name_override", name),) if name else None,
    }


def _collector_tls(settings: ServiceSettings) -> LiveTls | None:
    return None if settings.otlp_endpoint.startswith("http://") else LiveTls(settings.collector_tls)


def _views() -> list[View]:
    buckets = ExplicitBucketHistogramAggregation(attributes.DURATION_BUCKETS_S)
    return [View(instrument_type=Histogram, instrument_unit="s", aggregation=buckets)]


def _without_texts(span: ReadableSpan) -> ReadableSpan:
    if not span.events and not span.status.description:
        return span
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=span.attributes,
        events=[_without_text(event) for event in span.events],
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _without_text(event: Event) -> Event:
    kept = {key: value for key, value in (event.attributes or {}).items() if key not in _TEXT_ATTRIBUTES}
    return Event(event.name, kept, event.timestamp)
