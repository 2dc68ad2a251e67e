"""What objects are told of themselves, by one router of several, and with the chart's rights alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_core.resources.api import open_cluster
from podium_core.resources.lease import LeasedTurn
from podium_core.resources.opening import open_callers, open_pool, open_tenants
from podium_core.resources.pool import ClusterPool
from podium_router.breaker import BreakerLimits, Sign
from podium_router.catalog import Catalog
from podium_router.keys import Keys
from podium_router.lanes import LaneLimits
from podium_router.settings import RouterSettings
from podium_router.statuses import statuses
from tests.fakes.cluster_api import NAMESPACE, ClusterApi, Request, cluster_api
from tests.fakes.waiting import until
from tests.integration.test_cluster_tenants import settings_of

ROLES = Path(__file__).resolve().parents[2] / "charts" / "podium" / "files" / "roles.yaml"
LEASE = "podium-router-status"
SPEC: dict[str, Any] = {"provider": "openai-compatible", "model": "m", "base_url": "https://h.example/v1"}
SKILLS = [
    {"name": "law", "accuracy": "0.5", "n": 9, "measured_on": "2026-10-01"},
    {"name": "maths", "accuracy": "0.9", "n": 20, "measured_on": "2026-11-30"},
]


@pytest.fixture
async def api() -> AsyncIterator[ClusterApi]:
    async with cluster_api() as server:
        yield server


def router_settings(api: ClusterApi, directory: Path, **changes: Any) -> RouterSettings:
    files: dict[str, Any] = {
        name: directory / name for name in ("tls_cert_file", "tls_key_file", "tls_ca_file")
    }
    values: dict[str, Any] = {
        "pool_source": "kubernetes",
        "provider_keys_dir": directory / "keys",
        "cluster_kubeconfig_file": api.kubeconfig(directory, "router"),
        "cluster_namespace": NAMESPACE,
        "cluster_status_s": 0.02,
    }
    return RouterSettings(**files, **{**values, **changes})


@asynccontextmanager
async def telling(api: ClusterApi, directory: Path, **changes: Any) -> AsyncIterator[Catalog]:
    """A router's catalog over the cluster's workers, telling them how they are."""
    settings = router_settings(api, directory, **changes)
    async with AsyncExitStack() as stack:
        pool = await open_pool(settings, lambda *_: None, stack)
        assert isinstance(pool, ClusterPool)
        clock = SystemClock()
        catalog = Catalog(
            lambda: pool.current, Keys(lambda name: None), clock, LaneLimits(), BreakerLimits(failures=1)
        )
        parts = [pool.watch(), *statuses(pool, catalog, settings, clock)]
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            await until(lambda: api.watching == 1)
            yield catalog
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def test_a_worker_is_told_its_health_and_its_last_calibration(api: ClusterApi, tmp_path: Path) -> None:
    api.apply("Worker", "w", {**SPEC, "key": {"name": "openai"}, "card": {"skills": SKILLS}})
    async with telling(api, tmp_path) as catalog:
        await until(lambda: api.condition("Worker", "w", "Ready") == ("False", "KeyMissing"))
        status = api.status("Worker", "w")
        assert (status["health"], status["lastCalibration"]) == ("unconfigured", "2026-11-30")
        assert status["observedGeneration"] == 1
        assert api.condition("Worker", "w", "Accepted") == ("True", "Valid")
        (tmp_path / "keys").mkdir()
        (tmp_path / "keys" / "openai").write_text("sk-1\n")
        await until(lambda: api.condition("Worker", "w", "Ready") == ("True", "Healthy"))
        pool = catalog.pool()
        breaker = catalog.route(pool.pool_digest, "w").state.breaker
        breaker.leave(Sign.FAILED, was_probe=breaker.enter())
        await until(lambda: api.condition("Worker", "w", "Ready") == ("False", "Down"))
        assert api.status("Worker", "w")["health"] == "down"


async def test_a_refused_worker_is_told_why_and_a_deleted_one_is_left_alone(
    api: ClusterApi, tmp_path: Path
) -> None:
    api.apply("Worker", "bad", {"provider": "azure", "model": "m"}, checked=False)
    async with telling(api, tmp_path):
        await until(lambda: api.condition("Worker", "bad", "Ready") == ("False", "NotInForce"))
        conditions = {each["type"]: each for each in api.status("Worker", "bad")["conditions"]}
        assert "base_url is required" in conditions["Accepted"]["message"]
        api.apply("Worker", "bad", SPEC)
        await until(lambda: api.condition("Worker", "bad", "Accepted") == ("True", "Valid"))
        assert api.status("Worker", "bad")["observedGeneration"] == 2
        api.delete("Worker", "bad")
        api.apply("Worker", "next", SPEC)
        await until(lambda: api.condition("Worker", "next", "Ready") == ("True", "Healthy"))


async def test_what_stands_there_already_is_not_written_again(api: ClusterApi, tmp_path: Path) -> None:
    api.make_lease(LEASE)
    for number in range(30):
        api.apply("Worker", f"w{number}", SPEC)
    async with telling(api, tmp_path, pool_status_lease=LEASE):
        await until(lambda: all(api.condition("Worker", f"w{n}", "Ready")[0] for n in range(30)))
        rounds = api.count("patch", "leases")
        await until(lambda: api.count("patch", "leases") > rounds + 5)
    assert api.count("patch", "workers/status") == 30


async def test_a_plan_made_on_the_former_pool_still_finds_its_workers(
    api: ClusterApi, tmp_path: Path
) -> None:
    api.apply("Worker", "w", SPEC)
    async with telling(api, tmp_path) as catalog:
        first = catalog.pool().pool_digest
        for model in ("second", "third"):
            before = catalog.pool().pool_digest
            assert catalog.route(first, "w").worker.provider_model == "m"
            api.apply("Worker", "w", {**SPEC, "model": model})
            await until(lambda: catalog.pool().pool_digest != before)  # noqa: B023 - awaited here
        with pytest.raises(PodiumError, match="plan again"):
            catalog.route(first, "w")


async def test_one_of_two_routers_writes_and_the_other_takes_over(api: ClusterApi, tmp_path: Path) -> None:
    api.make_lease(LEASE)
    clocks = (SystemClock(), _Steps(), _Steps())
    cluster = await open_cluster(api.kubeconfig(tmp_path, "router"), NAMESPACE)
    try:
        first = LeasedTurn(cluster, LEASE, "first", clocks[0], duration_s=30)
        second = LeasedTurn(cluster, LEASE, "second", clocks[1], duration_s=30)
        third = LeasedTurn(cluster, LEASE, "third", clocks[2], duration_s=30)
        assert await first.is_mine()
        assert not await second.is_mine()
        clocks[1].pass_s(29)
        assert await first.is_mine()
        assert not await second.is_mine(), "it was renewed since"
        clocks[1].pass_s(29)
        assert not await second.is_mine()
        assert not await third.is_mine()
        clocks[1].pass_s(1)
        clocks[2].pass_s(30)
        assert sorted(await asyncio.gather(second.is_mine(), third.is_mine())) == [False, True]
        assert api.lease_holder(LEASE) in {"second", "third"}
        assert not await first.is_mine()
    finally:
        await cluster.close()


async def test_services_use_exactly_the_rights_that_the_chart_grants(api: ClusterApi, tmp_path: Path) -> None:
    granted = {
        (service, verb, resource)
        for service, rules in yaml.safe_load(ROLES.read_text()).items()
        for rule in rules
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    refused: list[Request] = []

    def may(request: Request) -> bool:
        is_granted = (request.user, request.verb, request.resource) in granted
        refused.extend([] if is_granted else [request])
        return is_granted

    api.grants = may
    api.make_lease(LEASE)
    api.apply("Worker", "w", SPEC)
    api.apply("Tenant", "acme", {})
    api.apply("Policy", "eu", {"regions": {"only": ["eu"]}})
    async with AsyncExitStack() as stack:
        gateway = settings_of(api, tmp_path, "gateway")
        callers = await open_callers(gateway, lambda *_: None, stack, SystemClock())
        tenants = await open_tenants(settings_of(api, tmp_path, "audit"), lambda *_: None, stack)
        tasks = [asyncio.create_task(source.watch()) for source in (callers, tenants)]
        await until(
            lambda: (
                api.condition("Policy", "eu", "Accepted")[0]
                and api.condition("Tenant", "acme", "Accepted")[0]
            )
        )
        await until(lambda: api.watching == 3)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    await until(lambda: api.watching == 0)
    async with telling(api, tmp_path, pool_status_lease=LEASE):
        await until(lambda: api.condition("Worker", "w", "Ready")[0])
    assert refused == []
    assert {(each.user, each.verb, each.resource) for each in api.requests} == granted


async def test_a_status_that_may_not_be_written_is_told_once_and_harms_nothing(
    api: ClusterApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api.apply("Worker", "w", SPEC)
    api.grants = lambda request: request.verb != "patch"
    async with telling(api, tmp_path) as catalog:
        await until(lambda: api.count("patch", "workers/status") > 3)
        assert [worker.worker_id for worker in catalog.pool().workers] == ["w"]
    told = [each for each in caplog.records if "status cannot be written" in each.message]
    assert len(told) == 1
    assert "patch workers/status.podium.dev" in told[0].message


class _Steps(SystemClock):
    """A clock whose monotonic time goes on only when told."""

    _passed_ns = 0

    def monotonic_ns(self) -> int:
        return self._passed_ns

    def pass_s(self, seconds: int) -> None:
        self._passed_ns += seconds * 1_000_000_000
