"""Tenants and policies as objects: the same as from the file, and what cannot be read forbids."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium_core.config.tenants import Tenants, load_tenants, new_key
from podium_core.config.watched import Source
from podium_core.domain.clock import SystemClock
from podium_core.domain.policy import denying_rule
from podium_core.domain.pool import Card, Worker
from podium_core.resources.opening import open_callers, open_tenants
from podium_gateway.settings import GatewaySettings
from tests.fakes.cluster_api import NAMESPACE, ClusterApi, cluster_api
from tests.fakes.waiting import until

DIGEST = "a" * 64
SPEC: dict[str, Any] = {
    "budget_usd_per_month": "25.00",
    "warn_at_percent": [50, 80],
    "limits": {"requests_per_minute": 600},
    "regions": {"only": ["eu"]},
    "content": "commitments",
    "retention": {"content_days": 30},
    "caps": {"max_usd": "0.50", "max_seconds": 300},
    "keys": [
        {
            "id": "alice",
            "sha256": DIGEST,
            "roles": ["client"],
            "expires": "2027-01-01",
            "previous": [{"sha256": DIGEST, "until": "2026-12-31T12:00:00Z"}],
            "workers": {"only": ["m"]},
        }
    ],
}
WORKER = Worker(
    worker_id="w",
    provider="openai",
    provider_model="m",
    card=Card(),
    price=None,
    region="us",
)


@pytest.fixture
async def api() -> AsyncIterator[ClusterApi]:
    async with cluster_api() as server:
        yield server


def settings_of(api: ClusterApi, directory: Path, user: str = "gateway") -> GatewaySettings:
    files: dict[str, Any] = {
        name: directory / name for name in ("tls_cert_file", "tls_key_file", "tls_ca_file")
    }
    return GatewaySettings(
        **files,
        tenants_source="kubernetes",
        cluster_kubeconfig_file=api.kubeconfig(directory, user),
        cluster_namespace=NAMESPACE,
        cluster_status_s=0.02,
    )


@asynccontextmanager
async def callers(api: ClusterApi, directory: Path) -> AsyncIterator[Source[Tenants]]:
    """The gateway's source, kept up with."""
    async with AsyncExitStack() as stack:
        source = await open_callers(settings_of(api, directory), lambda *_: None, stack, SystemClock())
        watching = asyncio.create_task(source.watch())
        try:
            await until(lambda: api.watching == 2)
            yield source
        finally:
            watching.cancel()
            await asyncio.wait([watching])


def rule_for(source: Source[Tenants], tenant_id: str) -> str | None:
    """Return which rule keeps the worker from a tenant."""
    tenant = source.fresh().by_id[tenant_id]
    return denying_rule((*tenant.policies, tenant.reach), WORKER)


async def test_the_same_tenants_come_from_objects_and_from_the_file(api: ClusterApi, tmp_path: Path) -> None:
    api.apply("Tenant", "acme", SPEC)
    api.apply("Tenant", "bare", {})
    path = tmp_path / "tenants.yaml"
    path.write_text(json.dumps({"tenants": [{**SPEC, "id": "acme"}, {"id": "bare"}]}))
    async with callers(api, tmp_path) as source:
        assert source.current.tenants == load_tenants(path).tenants


async def test_keys_come_rotate_and_are_revoked(api: ClusterApi, tmp_path: Path) -> None:
    token, digest = new_key("ci")
    api.apply("Tenant", "acme", {})
    async with callers(api, tmp_path) as source:
        assert source.fresh().authenticate(token, 0) is None
        api.apply("Tenant", "acme", {"keys": [{"id": "ci", "sha256": digest, "roles": ["client"]}]})
        await until(lambda: source.fresh().authenticate(token, 0))
        api.delete("Tenant", "acme")
        await until(lambda: source.fresh().authenticate(token, 0) is None)


async def test_a_key_id_is_its_oldest_tenants(api: ClusterApi, tmp_path: Path) -> None:
    token, digest = new_key("ci")
    key = {"id": "ci", "sha256": digest, "roles": ["client"]}
    api.apply("Tenant", "z-old", {"keys": [key]})
    api.apply("Tenant", "a-new", {"keys": [key]})
    async with callers(api, tmp_path) as source:
        principal = source.fresh().authenticate(token, 0)
        assert principal is not None
        assert principal.tenant.tenant_id == "z-old"
        await until(lambda: api.condition("Tenant", "a-new", "Accepted") == ("False", "Invalid"))
        await until(lambda: api.condition("Tenant", "z-old", "Accepted") == ("True", "Valid"))
        told = api.status("Tenant", "a-new")["conditions"][0]["message"]
        assert "key 'ci' is one of Tenant z-old" in told


async def test_a_policy_holds_for_all_tenants_or_for_those_it_names(api: ClusterApi, tmp_path: Path) -> None:
    for name in ("acme", "other"):
        api.apply("Tenant", name, {})
    async with callers(api, tmp_path) as source:
        assert rule_for(source, "acme") is None
        api.apply("Policy", "eu-only", {"tenants": ["acme"], "regions": {"only": ["eu"]}})
        await until(lambda: rule_for(source, "acme") == "policy.eu-only.regions.only")
        assert rule_for(source, "other") is None
        api.apply("Policy", "no-openai", {"providers": {"except": ["openai"]}})
        await until(lambda: rule_for(source, "other") == "policy.no-openai.providers.except")
        api.delete("Policy", "no-openai")
        await until(lambda: rule_for(source, "other") is None)
        await until(lambda: api.condition("Policy", "eu-only", "Accepted") == ("True", "Valid"))


async def test_a_policy_that_cannot_be_read_forbids_everything(api: ClusterApi, tmp_path: Path) -> None:
    api.apply("Tenant", "acme", {})
    api.apply("Policy", "newer", {"regions": {"only": ["us"]}})
    api.apply("Policy", "odd", {"zones": {"only": ["eu"]}}, checked=False)
    async with callers(api, tmp_path) as source:
        assert rule_for(source, "acme") == "policy.odd.workers.only"
        api.apply("Policy", "odd", {"regions": {"except": ["eu"]}})
        await until(lambda: rule_for(source, "acme") is None)
        # a good version is known now: it stays in force
        api.apply("Policy", "odd", {"zones": {"only": ["eu"]}}, checked=False)
        await until(lambda: api.condition("Policy", "odd", "Accepted") == ("False", "Invalid"))
        assert rule_for(source, "acme") is None


async def test_audit_reads_tenants_and_asks_for_no_policies(api: ClusterApi, tmp_path: Path) -> None:
    api.apply("Tenant", "acme", SPEC)
    async with AsyncExitStack() as stack:
        source = await open_tenants(settings_of(api, tmp_path, "audit"), lambda *_: None, stack)
        assert source.current.retention_of("acme").content_days == 30
        assert not source.current.keep_content("acme")
    assert {(each.verb, each.resource) for each in api.requests} == {("list", "tenants")}
