"""Every metric and label that alerts and dashboard use is one that the services serve, read from real processes."""

import asyncio
import json
import re
import shutil
from contextlib import suppress
from typing import Any

import aiohttp
import pytest
import yaml
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.trace import NoOpTracer
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from podium_audit.log.log import Figures
from podium_audit.telemetry import BudgetMetrics, CommitMetrics
from podium_conductor.telemetry import PlanTelemetry, watch_load
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery
from tests.chart.rendering import CHART
from tests.e2e.cluster import Cluster, running
from tests.fakes.ids import FakeClock
from tests.fakes.pools import question
from tests.fakes.ports import free_ports
from tests.fakes.waiting import PATIENCE_S

SERVICES = ("gateway", "conductor", "router", "audit")
GIVEN = {"namespace", "job", "pod", "le"}
"""Labels that Prometheus and the histogram bring."""

Labels = dict[str, set[str]]
"""Each metric's name, as Prometheus has it, with its labels."""


def used() -> list[str]:
    """Return every expression of the rules and the dashboard, but for those over recorded series."""
    rules = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    board = json.loads((CHART / "files" / "dashboard.json").read_text())
    expressions = [rule["expr"] for group in rules for rule in group["rules"]]
    expressions += [t["expr"] for panel in board["panels"] for t in panel.get("targets", [])]
    return [e for e in dict.fromkeys(expressions) if "namespace:podium" not in e]


def parsed(page: str, found: Labels) -> None:
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)


async def ask(podium: Cluster, model: str, **body: Any) -> int:
    question = {"model": model, "messages": [{"role": "user", "content": "What is 17 * 23?"}], **body}
    async with (
        aiohttp.ClientSession(headers=podium.headers) as session,
        session.post(f"{podium.gateway_url}/v1/chat/completions", json=question) as answer,
    ):
        await answer.read()
        return answer.status


async def exercise(podium: Cluster, ports: dict[str, int]) -> Labels:
    """Let happen what the metrics count, and read it."""
    found: Labels = {}
    await podium.wait_ready()
    assert await ask(podium, "podium") == 200
    assert await ask(podium, "podium", stream=True) == 200
    assert await ask(podium, "podium-max") == 200
    assert await ask(podium, "no-such-model") == 404
    await read(ports["conductor"], found)
    podium.kill("conductor")
    shutil.rmtree(podium.home / "worm")
    tenants = podium.home / "tenants.yaml"
    told = json.loads(tenants.read_text())
    told["tenants"][0] |= {
        "limits": {"requests_per_minute": 1},
        "budget_usd_per_month": "1",
        "warn_at_percent": [1],
    }
    tenants.write_text(json.dumps(told))
    while await ask(podium, "podium") != 429:
        await asyncio.sleep(0.05)
    tenants.write_text("tenants: none")
    while not found.keys() >= RARE_BUT_REAL:
        await asyncio.sleep(0.1)
        for service in ("gateway", "router", "audit"):
            await read(ports[service], found)
    return found


async def read(port: int, found: Labels) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        parsed(await answer.text(), found)


RARE_BUT_REAL = {
    "podium_audit_anchor_failures_total",
    "podium_config_reloads_total",
    "podium_limit_refusals_total",
    "podium_plan_fallbacks_total",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Labels:
    ports = dict(zip(SERVICES, free_ports(len(SERVICES)), strict=True))
    extra = {n: {f"PODIUM_{n.upper()}_OPS_LISTEN": f"127.0.0.1:{port}"} for n, port in ports.items()}
    home = tmp_path_factory.mktemp("podium")
    (home / "worm").mkdir()
    extra["audit"] |= {"PODIUM_AUDIT_ANCHOR_DIR": str(home / "worm"), "PODIUM_AUDIT_ANCHOR_INTERVAL_S": "0.2"}

    async def run(podium: Cluster) -> Labels:
        async with asyncio.timeout(2 * PATIENCE_S):
            return await exercise(podium, ports)

    with running(Cluster(home, extra=extra)) as podium:
        found = asyncio.run(run(podium))
    parsed(unseen_here(), found)
    return found


class Load:
    """What a language model of its own would tell."""

    running = waiting = 1
    kv_cache = 0.5


def unseen_here() -> str:
    """Return the page of what these processes cannot be brought to count: their own code counts it here."""
    registry = CollectorRegistry()
    provider = MeterProvider([PrometheusMetricReader(registry=registry)], shutdown_on_exit=False)
    meter = provider.get_meter("podium")
    watch_load(meter, Load)  # only with vLLM
    CommitMetrics(meter, lambda: Figures(0, 0, 0)).refused()  # a broken database
    BudgetMetrics(meter).warned("t", 80)  # the demo workers cost millionths
    plans = PlanTelemetry(NoOpTracer(), meter, FakeClock())
    query = PlanQuery("run_1", question(), (), Caps(), "podium", 1, 5.0)
    with suppress(PodiumError), plans.watch(query):
        raise PodiumError(Code.DEADLINE, "", reason="PLAN_DEADLINE")
    return generate_latest(registry).decode()


@pytest.mark.parametrize("expression", used(), ids=range(len(used())))
def test_an_expression_uses_metrics_and_labels_that_are_served(expression: str, served: Labels) -> None:
    selectors = re.findall(r"\b([a-z_]+)\{([^}]*)\}", expression)
    assert selectors
    grouped = {
        name for names in re.findall(r"by \(([^)]*)\)", expression) for name in re.split(r",\s*", names)
    }
    labels: set[str] = set()
    for metric, matchers in selectors:
        assert metric == "up" or metric in served, f"no service serves {metric}"
        own = served.get(metric, set()) | GIVEN
        assert set(re.findall(r"(\w+)(?:=|!=|=~|!~)\"", matchers)) <= own, metric
        labels |= own
    assert grouped - {""} <= labels
