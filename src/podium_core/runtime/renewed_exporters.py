"""Exporters that connect anew once this service's certificate was renewed on disk."""

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

import grpc
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from podium_core.runtime.live_tls import LiveTls, Pems, client_credentials

E = TypeVar("E", SpanExporter, MetricExporter)

_MILLIS: Final = 30_000
Connect: TypeAlias = Callable[[grpc.ChannelCredentials | None], E]
"""Makes an exporter; None means a connection without TLS."""


class _Renewed(Generic[E]):
    """The newest exporter. Used from one thread at a time, as the SDK's processors do."""

    def __init__(self, connect: Connect[E], tls: LiveTls | None) -> None:
        self._connect: Connect[E] = connect
        self._tls = tls
        self._pems: Pems | None = None
        self.exporter: E = self._connected()

    def newest(self) -> E:
        if self._tls is not None and self._tls.fresh() is not self._pems:
            self.exporter.shutdown()
            self.exporter = self._connected()
        return self.exporter

    def _connected(self) -> E:
        if self._tls is None:
            return self._connect(None)
        self._pems = self._tls.fresh()
        return self._connect(client_credentials(self._pems))


class RenewedSpanExporter(SpanExporter):
    """Exports spans through the newest connection."""

    def __init__(self, connect: Connect[SpanExporter], tls: LiveTls | None) -> None:
        self._renewed: _Renewed[SpanExporter] = _Renewed(connect, tls)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export the spans."""
        return self._renewed.newest().export(spans)

    def shutdown(self) -> None:
        """Stop the exporter behind."""
        self._renewed.exporter.shutdown()

    def force_flush(self, timeout_millis: int = _MILLIS) -> bool:
        """Flush the exporter behind."""
        return self._renewed.exporter.force_flush(timeout_millis)


class RenewedMetricExporter(MetricExporter):
    """Exports metrics through the newest connection."""

    def __init__(self, connect: Connect[MetricExporter], tls: LiveTls | None) -> None:
        super().__init__()
        self._renewed: _Renewed[MetricExporter] = _Renewed(connect, tls)
        # What OTLP's exporter prefers, which its readers ask for.
        self._preferred_temporality = self._renewed.exporter._preferred_temporality  # noqa: SLF001
        self._preferred_aggregation = self._renewed.exporter._preferred_aggregation  # noqa: SLF001

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = _MILLIS, **_options: object
    ) -> MetricExportResult:
        """Export the metrics."""
        return self._renewed.newest().export(metrics_data, timeout_millis)

    def force_flush(self, timeout_millis: float = _MILLIS) -> bool:
        """Flush the exporter behind."""
        return self._renewed.exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = _MILLIS, **_options: object) -> None:
        """Stop the exporter behind."""
        self._renewed.exporter.shutdown(timeout_millis)
