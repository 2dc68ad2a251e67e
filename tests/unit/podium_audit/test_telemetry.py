"""The log's figures as an operator reads them."""

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from podium_audit.telemetry import CommitMetrics
from tests.fakes.audit_log import LogScene, begin, open_run


def read(reader: InMemoryMetricReader) -> dict[str, Any]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: metric.data.data_points[0]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_commits_and_the_state_of_the_log_are_measured() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    scene = LogScene()
    metrics = CommitMetrics(provider.get_meter("t"), lambda: scene.log.figures)
    scene.do(open_run(), open_run("run_2"), begin())
    metrics.committed(leaves=5, seconds=0.25)
    metrics.refused()
    points = read(reader)
    assert points["podium.audit.commit.records"].sum == 5
    assert points["podium.audit.commit.duration"].sum == 0.25
    assert points["podium.audit.refused"].value == 1
    assert points["podium.audit.tree.size"].value == 5
    assert points["podium.audit.runs.open"].value == 2
    assert points["podium.audit.reserved_usd_micros"].value == 100
    provider.shutdown()


def test_a_log_that_is_not_loaded_has_no_figures() -> None:
    scene = LogScene()
    scene.do(open_run())
    scene.log.roll_back()
    assert scene.log.figures == (0, 0, 0)
    assert scene.log.newest_note == ""
