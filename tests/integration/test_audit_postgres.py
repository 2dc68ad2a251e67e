"""The audit service on PostgreSQL: what holds on a file holds there, and replicas share one log."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from podium_audit.shut_log import recover
from podium_core.domain.errors import PodiumError
from podium_verifier.verify import Verified, verify_export
from tests.fakes.audit_service import begin_request, open_request, running_audit, seal_request, settings_for

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer


def databases(postgres: "PostgresServer") -> dict[str, Any]:
    """Return the settings of a service on two new databases."""
    return {"database_url": postgres.new_database(), "key_database_url": postgres.new_database()}


async def test_a_run_is_recorded_read_and_proven(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    async with running_audit(tmp_path, tls_dir, **databases(postgres)) as audit:
        sealed = await audit.run("run_1")
        assert sealed.cost_usd_micros == 40
        status, page = await audit.get("/v1/runs")
        assert (status, [run["run_id"] for run in page["runs"]]) == (200, ["run_1"])
        status, page = await audit.get("/v1/runs/run_1")
        assert status == 200
        status, exported = await audit.get("/v1/runs/run_1/export")
        assert isinstance(verify_export(exported), Verified)
        assert (await audit.get("/v1/runs/run_1", "key3"))[0] == 404
        assert not list((tmp_path / "data").glob("*.db"))


async def test_it_goes_on_after_a_restart(tmp_path: Path, tls_dir: Path, postgres: "PostgresServer") -> None:
    named = databases(postgres)
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        await audit.run("run_1", until="begin")
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        answer = await audit.call("gateway", "Seal", seal_request("run_1"))
        assert answer.cost_usd_micros == 100, "the attempt that was lost counts with its maximum"
        again = await audit.call("gateway", "Seal", seal_request("run_1"))
        assert again.receipt == answer.receipt
        assert json.loads((await audit.get("/v1/runs/run_1/export"))[1].splitlines()[0])["run_id"] == "run_1"


async def test_two_replicas_have_one_log(tmp_path: Path, tls_dir: Path, postgres: "PostgresServer") -> None:
    named = databases(postgres)
    async with (
        running_audit(tmp_path, tls_dir, **named) as first,
        running_audit(tmp_path, tls_dir, **named) as second,
    ):
        budget = {"has_tenant_budget": True, "tenant_budget_usd_micros": 150}
        await first.run("run_1", until="open", **budget)
        await second.run("run_2", until="begin", **budget)
        with pytest.raises(PodiumError, match="the budget of the tenant"):
            await first.call("router", "BeginAttempt", begin_request("run_1.1", "run_1"))
        await first.call("gateway", "Seal", seal_request("run_2"))
        repeated = await second.call("gateway", "Seal", seal_request("run_2"))
        status, exported = await second.get("/v1/runs/run_2/export")
        assert status == 200
        assert isinstance(verify_export(exported), Verified)
        assert repeated.cost_usd_micros == 100
        opened = await second.call("gateway", "OpenRun", open_request("run_1", **budget))
        assert list(opened.leaf_indices) == [0, 1], "a repeated call is known at every replica"


async def test_sql_and_strange_text_are_only_text(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    named = databases(postgres)
    hostile = "'; DROP TABLE leaves; -- %s %(x)s \\ \U0001f600 \x7f"
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        await audit.run("run_1", principal_id=hostile, requested_model=hostile)
        _, page = await audit.get("/v1/runs/run_1")
        assert page["run"]["requested_model"] == hostile
        assert (await audit.get("/v1/runs?before=%27%20OR%201%3D1"))[0] == 400
        for run_id in ("%27%3B%20DROP%20TABLE%20leaves", "%00", "run_1%00"):
            assert (await audit.get(f"/v1/runs/{run_id}"))[0] == 404
        for question in ("worker=%00", "principal=a%00", "worker=%27%20OR%20%27%27%3D%27&limit=%00"):
            assert (await audit.get(f"/v1/runs?{question}"))[0] == 400
        assert (await audit.get("/v1/runs?worker=%27%20OR%20%27%27%3D%27"))[1]["runs"] == []
        with pytest.raises(PodiumError, match=r"U\+0000"):
            await audit.run("run_2", requested_model="a\x00b")
        await audit.run("run_3")
    with psycopg.connect(named["database_url"]) as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (2,)


async def test_an_older_copy_is_refused_and_recovered_on_record(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    named = databases(postgres)
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        await audit.run("run_1")
    newest = named["database_url"].rpartition("/")[2]
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as superuser:
        superuser.execute(f"CREATE DATABASE {newest}_older TEMPLATE {newest}")
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        await audit.run("run_2")
    older = {**named, "database_url": f"{named['database_url']}_older"}
    with pytest.raises(PodiumError, match="holds 5 leaves, but 10 were signed"):
        async with running_audit(tmp_path, tls_dir, **older):
            pass
    assert recover(settings_for(tmp_path, tls_dir, **older)) == (5, 10)
    async with running_audit(tmp_path, tls_dir, **older) as audit:
        await audit.run("run_3")
        _, exported = await audit.get("/v1/runs/run_3/export")
        assert isinstance(verify_export(exported), Verified)
