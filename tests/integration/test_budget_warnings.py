"""A budget that is nearly used: one record per share and month, and every seal says so."""

import json
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from podium_audit.log.budget_warnings import BudgetWarnings
from podium_audit.records.commands import TenantMoney
from podium_audit.telemetry import BudgetMetrics
from podium_core.runtime import attributes as names
from tests.fakes.audit_service import RunningAudit, running_audit, seal_request

BUDGET: dict[str, Any] = {"has_tenant_budget": True, "tenant_budget_usd_micros": 400}


def _warn_at(audit: RunningAudit, *percents: int) -> None:
    path = audit.home / "tenants.yaml"
    tenants = json.loads(path.read_text())
    [acme] = [tenant for tenant in tenants["tenants"] if tenant["id"] == "acme"]
    acme["warn_at_percent"] = percents
    path.write_text(json.dumps(tenants))
    audit.audit.tenants.fresh()


async def _warnings(audit: RunningAudit, *run_ids: str) -> list[tuple[str, dict[str, str]]]:
    found = []
    for run_id in run_ids:
        _, page = await audit.get(f"/v1/runs/{run_id}")
        records = [entry["record"] for entry in page["records"]]
        notes = [record["facts"] for record in records if record["type"] == "note"]
        found += [(run_id, note["facts"]) for note in notes if note["kind"] == "budget_warning"]
    return found


async def test_each_share_is_recorded_once_and_shown_from_then_on(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        _warn_at(audit, 20, 30)
        percents = [(await audit.run(f"run_{n}", **BUDGET)).budget.warn_percent for n in range(4)]
        assert percents == [0, 20, 30, 30]
        again = await audit.call("gateway", "Seal", seal_request("run_3"))
        assert (again.budget.warn_percent, again.budget.settled_usd_micros) == (30, 160)
    async with running_audit(tmp_path, tls_dir) as audit:
        assert (await audit.run("run_4", **BUDGET)).budget.warn_percent == 30
        noted = await _warnings(audit, *(f"run_{n}" for n in range(5)))
    assert [(run_id, facts["percent"], facts["spent_usd_micros"]) for run_id, facts in noted] == [
        ("run_1", "20", "80"),
        ("run_2", "30", "120"),
    ]


async def test_a_keys_budget_is_warned_of_apart_from_its_tenants(tmp_path: Path, tls_dir: Path) -> None:
    own: dict[str, Any] = {"key_budget_usd_micros": 150}
    async with running_audit(tmp_path, tls_dir) as audit:
        _warn_at(audit, 20, 50)
        mine = [await audit.run(f"run_{n}", **BUDGET, **own, principal_id="key1") for n in range(2)]
        other = await audit.run("run_2", **BUDGET, principal_id="key2")
        noted = await _warnings(audit, "run_0", "run_1", "run_2")
    assert [(one.budget.warn_percent, one.key_budget.warn_percent) for one in mine] == [(0, 20), (20, 50)]
    assert (mine[1].key_budget.principal_id, mine[1].key_budget.settled_usd_micros) == ("key1", 80)
    assert (other.budget.warn_percent, other.HasField("key_budget")) == (20, False)
    assert [(run, facts.get("key", ""), facts["percent"]) for run, facts in noted] == [
        ("run_0", "key1", "20"),
        ("run_1", "", "20"),
        ("run_1", "key1", "50"),
    ]


async def test_without_a_budget_there_is_nothing_to_warn_of(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        _warn_at(audit, 1)
        sealed = await audit.run("run_1")
        assert not sealed.HasField("budget")
        assert await _warnings(audit, "run_1") == []


async def test_a_warning_is_counted_once(tmp_path: Path, tls_dir: Path) -> None:
    reader = InMemoryMetricReader()
    metrics = BudgetMetrics(MeterProvider([reader]).get_meter("test"))
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        money = TenantMoney("acme", "2026-11", 100, 90, 0)
        for _ in range(2):  # the second knows nothing of the first, as after a restart
            warnings = BudgetWarnings(audit.audit.commit, lambda: audit.audit.tenants.current, metrics.warned)
            assert [warnings.after("run_1", money) for _ in range(2)] == [80, 80]
            await warnings.close()
    data: Any = reader.get_metrics_data()
    [metric] = data.resource_metrics[0].scope_metrics[0].metrics
    [point] = metric.data.data_points
    assert (metric.name, point.value) == (names.METRIC_BUDGET_WARNINGS, 1)
    assert dict(point.attributes) == {names.TENANT_ID: "acme", names.BUDGET_PERCENT: 80}
