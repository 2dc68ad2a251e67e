"""A meter whose figures a test reads."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader


class ReadableMeter:
    """Counts in memory."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.meter = MeterProvider([self._reader], shutdown_on_exit=False).get_meter("test")

    def points(self, name: str) -> list[tuple[Mapping[str, Any], float]]:
        """Return (labels, value) of each series that a scrape would see now; none for an unknown name."""
        data: Any = self._reader.get_metrics_data()
        return [
            (dict(point.attributes), point.value)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
