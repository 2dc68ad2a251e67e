"""Drains take one pod of a service at a time, pods spread, and gateways scale by the runs under way."""

import re
from typing import Any

import pytest
import yaml

from tests.chart.network import matches
from tests.chart.pods import pods_of
from tests.chart.rendering import CHART, Chart

SERVICES = ("gateway", "conductor", "router", "audit")
SCALED: dict[str, Any] = {
    "autoscaling": {"enabled": True, "minReplicas": 3, "maxReplicas": 9, "activeRuns": 100}
}


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [found for found in objects if found["kind"] == kind]


def test_a_drain_takes_one_pod_of_each_service_and_waits_for_no_sick_one(chart: Chart) -> None:
    objects = chart.render({"witness": {"enabled": True, "name": "w/1", "logsConfigMap": "l"},
                            "audit": {"witnessesConfigMap": "w"}})  # fmt: skip
    budgets = of_kind(objects, "PodDisruptionBudget")
    for pod in pods_of(objects):
        covering = [b for b in budgets if matches(b["spec"]["selector"], pod.labels)]
        assert len(covering) == (pod.component in SERVICES), "two budgets over one pod block its eviction"
    for budget in budgets:
        assert budget["spec"]["maxUnavailable"] == 1, "a minimum would block the drain of a single replica"
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_pods_of_a_service_spread_over_nodes_and_zones(chart: Chart) -> None:
    for pod in pods_of(chart.render({})):
        if pod.component in SERVICES:
            spread = {entry["topologyKey"]: entry for entry in pod.spec["topologySpreadConstraints"]}
            assert set(spread) == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
            for entry in spread.values():
                assert matches(entry["labelSelector"], pod.labels)
                assert entry["whenUnsatisfiable"] == "ScheduleAnyway", "a laptop has one node"


def test_gateways_scale_by_runs_under_way_and_by_cpu_beside(chart: Chart) -> None:
    objects = chart.render(SCALED)
    (scaler,) = of_kind(objects, "HorizontalPodAutoscaler")
    spec = scaler["spec"]
    target = spec["scaleTargetRef"]
    (gateway,) = [
        o for o in objects if o["kind"] == target["kind"] and o["metadata"]["name"] == target["name"]
    ]
    assert gateway["apiVersion"] == target["apiVersion"]
    assert "replicas" not in gateway["spec"], "an upgrade would undo what the autoscaler chose"
    assert (spec["minReplicas"], spec["maxReplicas"]) == (3, 9)
    by_runs, by_cpu = spec["metrics"]
    assert by_runs["pods"]["metric"]["name"] == "podium_runs_active"
    assert by_runs["pods"]["target"] == {"type": "AverageValue", "averageValue": "100"}
    assert by_cpu["resource"]["target"]["averageUtilization"] == 70
    (container,) = gateway["spec"]["template"]["spec"]["containers"]
    assert "cpu" in container["resources"]["requests"], "utilisation is of what is requested"
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 300


def test_without_the_metric_cpu_alone_decides(chart: Chart) -> None:
    values = {"autoscaling": {"enabled": True, "activeRuns": 0}}
    (scaler,) = of_kind(chart.render(values), "HorizontalPodAutoscaler")
    assert [metric["type"] for metric in scaler["spec"]["metrics"]] == ["Resource"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"activeRuns": 0, "cpuPercent": 0}, "autoscaling.activeRuns"),
        ({"minReplicas": 5, "maxReplicas": 4}, "autoscaling.maxReplicas"),
    ],
)
def test_a_scaler_that_cannot_work_is_refused(chart: Chart, wrong: dict[str, int], says: str) -> None:
    assert says in chart.refusal({"autoscaling": {"enabled": True, **wrong}})


def test_the_documented_rule_of_the_adapter_gives_the_metric_that_the_scaler_asks_for() -> None:
    page = (CHART.parents[1] / "docs" / "kubernetes.md").read_text()
    (block,) = [b for b in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "seriesQuery" in b]
    (rule,) = yaml.safe_load(block)["rules"]
    assert rule["name"]["as"] == "podium_runs_active"
    assert rule["seriesQuery"].startswith("podium_runs_active{")
    assert {"<<.Series>>", "<<.LabelMatchers>>", "<<.GroupBy>>"} <= set(
        re.findall(r"<<[^>]*>>", rule["metricsQuery"])
    )
    assert set(rule["resources"]["overrides"]) == {"namespace", "pod"}
