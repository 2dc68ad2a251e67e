"""Alerts and the dashboard: they rest on metrics that exist, fire when they should, and lead to their runbook."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium_core.domain.errors import Code
from podium_core.runtime.attributes import DURATION_BUCKETS_S
from tests.chart.network import matches
from tests.chart.rendering import CHART, Chart

ROOT = CHART.parents[1]
SCENES = Path(__file__).with_name("alerts.test.yaml")
PROMTOOL = shutil.which("promtool")
RULES = {"monitoring": {"rules": {"enabled": True, "labels": {"release": "prometheus"}}}}


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


ALERTS = alerts()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_says_how_bad_it_is_and_has_a_runbook(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert alert["annotations"]["summary"]
    page = (ROOT / "docs" / "alerts.md").read_text()
    section = page.partition(f"### {alert['alert']}\n")[2]
    assert section, "docs/alerts.md has no section on it"
    critical = section.startswith("Critical.")
    assert critical == (alert["labels"]["severity"] == "critical")


def test_the_runbook_has_no_section_on_an_alert_that_is_gone() -> None:
    sections = re.findall(r"^### (.*)$", (ROOT / "docs" / "alerts.md").read_text(), re.MULTILINE)
    assert sections == [alert["alert"] for alert in ALERTS]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_looks_at_one_installation(alert: dict[str, Any]) -> None:
    for selector in re.findall(r"\{([^}]*)\}", alert["expr"]):
        assert 'namespace="NAMESPACE"' in selector
    assert not re.search(r"\b(podium|gen_ai)_\w+(?=\[| offset)", alert["expr"]), (
        "a selector without namespace"
    )


def test_reasons_and_bounds_that_rules_name_exist() -> None:
    text = (CHART / "files" / "alerts.yaml").read_text()
    known = {code.value for code in Code} | set(
        re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    )
    named = {reason for found in re.findall(r'error_type=~"([^"]*)"', text) for reason in found.split("|")}
    assert named
    assert named <= known
    bounds = {float(bound) for bound in re.findall(r'le="([^"]*)"', text)}
    assert bounds
    assert bounds <= set(DURATION_BUCKETS_S)


def test_every_rule_is_exercised_by_a_scene_that_makes_it_fire() -> None:
    scenes = yaml.safe_load(SCENES.read_text())["tests"]
    firing = {
        case["alertname"]: case["exp_alerts"][0]["exp_labels"]
        for scene in scenes
        for case in scene.get("alert_rule_test", [])
        if case["exp_alerts"]
    }
    assert set(firing) == {alert["alert"] for alert in ALERTS}
    for alert in ALERTS:
        told = re.findall(r"\$labels\.(\w+)", json.dumps(alert["annotations"]))
        assert set(told) <= set(firing[alert["alert"]]), "an annotation names a label that the alert lacks"


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool, of Debian's package prometheus")
def test_promtool_finds_the_rules_right_and_every_alert_fires_when_it_should(
    chart: Chart, tmp_path: Path
) -> None:
    (rules,) = [o for o in chart.render(RULES) if o["kind"] == "PrometheusRule"]
    assert rules["metadata"]["labels"]["release"] == "prometheus"
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(rules["spec"]))
    checked = subprocess.run(
        [str(PROMTOOL), "check", "rules", file], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for group in rules["spec"]["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                target = rule.pop("annotations")["runbook_url"]
                assert target == f"docs/alerts.md#{rule['alert'].lower()}"
    file.write_text(yaml.safe_dump(rules["spec"]))
    shutil.copy(SCENES, tmp_path)
    tested = subprocess.run(
        [str(PROMTOOL), "test", "rules", tmp_path / SCENES.name], capture_output=True, text=True, check=False
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_rules_follow_the_name_of_the_installation(chart: Chart) -> None:
    text = json.dumps([o for o in chart.render(RULES, release="ours") if o["kind"] == "PrometheusRule"])
    assert "ours-podium-(gateway|" in text
    assert "FULLNAME" not in text
    assert "NAMESPACE" not in text


def test_metrics_are_read_from_every_service_and_only_when_prometheus_may_come(chart: Chart) -> None:
    monitoring = {"serviceMonitor": {"enabled": True}}
    assert "networkPolicy.prometheus.peers" in chart.refusal({"monitoring": monitoring})
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    found = chart.render({"monitoring": monitoring, "networkPolicy": {"prometheus": {"peers": peers}}})
    (monitor,) = [o for o in found if o["kind"] == "ServiceMonitor"]
    (endpoint,) = monitor["spec"]["endpoints"]
    selected = [
        o
        for o in found
        if o["kind"] == "Service" and matches(monitor["spec"]["selector"], o["metadata"]["labels"])
    ]
    assert {o["metadata"]["name"] for o in selected} == {
        f"podium-{name}" for name in ("gateway", "conductor", "router", "audit")
    }
    for service in selected:
        ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
        assert ports[endpoint["port"]] == 9464, service["metadata"]["name"]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text())
    return found


def test_the_dashboard_is_one_that_grafana_loads() -> None:
    board = dashboard()
    assert (board["uid"], board["schemaVersion"]) == ("podium", 39)
    assert [v["name"] for v in board["templating"]["list"]] == ["datasource", "namespace"]
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, f"{panel['title']} lies over another panel"
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
            for target in panel["targets"]:
                assert 'namespace="$namespace"' in target["expr"]


def test_the_dashboard_travels_in_a_config_map(chart: Chart) -> None:
    values = {"monitoring": {"dashboard": {"enabled": True}}}
    (board,) = [o for o in chart.render(values) if o["metadata"]["name"] == "podium-dashboard"]
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(board["data"]["podium.json"]) == dashboard()
