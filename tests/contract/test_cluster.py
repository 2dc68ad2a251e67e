"""Objects of a cluster from end to end, on the emulator and on a real API server.

The real one is skipped unless PODIUM_TEST_KUBECONFIG names a kubeconfig file of somebody who may create
definitions and namespaces, such as kind's. The test leaves nothing but the definitions behind.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from podium_core.domain.clock import SystemClock
from podium_core.resources.api import open_cluster
from podium_core.resources.lease import LeasedTurn
from podium_core.resources.objects import WORKER
from podium_core.resources.pool import ClusterPool
from podium_core.resources.status import AlwaysMine, Condition, Report, StatusWriter, accepted
from podium_core.resources.tenants import ClusterTenants
from tests.fakes.cluster_api import NAMESPACE, ClusterApi, cluster_api
from tests.fakes.crds import CRDS, KINDS
from tests.fakes.waiting import PATIENCE_S, until

SPEC: dict[str, Any] = {"provider": "openai-compatible", "model": "m", "base_url": "https://h.example/v1"}
LEASE = "podium-router-status"
REAL = os.environ.get("PODIUM_TEST_KUBECONFIG", "")
_GROUP = ("podium.dev", "v1alpha1")


class Hand(Protocol):
    """What a person does with `kubectl`."""

    namespace: str
    kubeconfig: Path

    async def apply(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        """Create an object or replace its spec. Raises ValueError with what the server refuses."""

    async def delete(self, kind: str, name: str) -> None:
        """Delete an object."""

    async def status(self, kind: str, name: str) -> dict[str, Any]:
        """Return an object's status."""


@dataclass(slots=True)
class EmulatorHand:
    api: ClusterApi
    kubeconfig: Path
    namespace: str = NAMESPACE

    async def apply(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        self.api.apply(kind, name, spec)

    async def delete(self, kind: str, name: str) -> None:
        self.api.delete(kind, name)

    async def status(self, kind: str, name: str) -> dict[str, Any]:
        return self.api.status(kind, name)


@dataclass(slots=True)
class RealHand:
    objects: Any
    kubeconfig: Path
    namespace: str

    async def apply(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        from kubernetes.aio.client import ApiException

        metadata = {"name": name}
        body = {"apiVersion": "podium.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
        place = (*_GROUP, self.namespace, KINDS[kind])
        try:
            try:
                known = await self.objects.get_namespaced_custom_object(*place, name)
            except ApiException as error:
                if error.status != 404:
                    raise
                await self.objects.create_namespaced_custom_object(*place, body, field_validation="Strict")
                return
            metadata["resourceVersion"] = known["metadata"]["resourceVersion"]
            await self.objects.replace_namespaced_custom_object(*place, name, body, field_validation="Strict")
        except ApiException as error:
            raise ValueError(error.body) from None

    async def delete(self, kind: str, name: str) -> None:
        await self.objects.delete_namespaced_custom_object(*_GROUP, self.namespace, KINDS[kind], name)

    async def status(self, kind: str, name: str) -> dict[str, Any]:
        place = (*_GROUP, self.namespace, KINDS[kind], name)
        thing = await self.objects.get_namespaced_custom_object(*place)
        return dict(thing.get("status") or {})


@asynccontextmanager
async def emulated(directory: Path) -> AsyncIterator[Hand]:
    async with cluster_api() as api:
        api.make_lease(LEASE)
        yield EmulatorHand(api, api.kubeconfig(directory, "somebody"))


@asynccontextmanager
async def real() -> AsyncIterator[Hand]:
    """A namespace of its own on a real server, with our definitions in their newest form."""
    from kubernetes.aio.client import (
        ApiClient,
        Configuration,
        CoreV1Api,
        CustomObjectsApi,
        V1Namespace,
        V1ObjectMeta,
    )
    from kubernetes.aio.config import load_kube_config

    configuration = Configuration()
    await load_kube_config(  # type: ignore[no-untyped-call]
        REAL, client_configuration=configuration, persist_config=False
    )
    namespace = f"podium-test-{os.getpid()}"
    async with ApiClient(configuration) as client:
        core, objects = CoreV1Api(client), CustomObjectsApi(client)
        for path in sorted(CRDS.glob("*.yaml")):
            body = yaml.safe_load(path.read_text())
            await _define(objects, body)
        await core.create_namespace(V1Namespace(metadata=V1ObjectMeta(name=namespace)))
        try:
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE}}
            await objects.create_namespaced_custom_object(
                "coordination.k8s.io", "v1", namespace, "leases", lease
            )
            hand = RealHand(objects, Path(REAL), namespace)
            async with asyncio.timeout(PATIENCE_S):
                while not await _serves(objects, namespace):
                    await asyncio.sleep(0.2)
            yield hand
        finally:
            await core.delete_namespace(namespace)


async def _define(objects: Any, body: dict[str, Any]) -> None:
    """Create a definition, or bring the one that is there up to date."""
    from kubernetes.aio.client import ApiException

    place, name = ("apiextensions.k8s.io", "v1", "customresourcedefinitions"), body["metadata"]["name"]
    try:
        known = await objects.get_cluster_custom_object(*place, name)
    except ApiException as error:
        if error.status != 404:
            raise
        await objects.create_cluster_custom_object(*place, body)
        return
    body["metadata"]["resourceVersion"] = known["metadata"]["resourceVersion"]
    await objects.replace_cluster_custom_object(*place, name, body)


async def _serves(objects: Any, namespace: str) -> bool:
    from kubernetes.aio.client import ApiException

    try:
        for plural in KINDS.values():
            await objects.list_namespaced_custom_object(*_GROUP, namespace, plural)
    except ApiException:
        return False
    return True


@pytest.fixture(params=["emulator", "real"])
async def hand(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Hand]:
    if request.param == "real" and not REAL:
        pytest.skip("needs a cluster: PODIUM_TEST_KUBECONFIG, a kubeconfig file such as kind's")
    async with emulated(tmp_path) if request.param == "emulator" else real() as one:
        yield one


async def told(hand: Hand, kind: str, name: str, condition: str) -> tuple[str, str]:
    """Return status and reason of a condition as they stand."""
    found = {each["type"]: each for each in (await hand.status(kind, name)).get("conditions", ())}
    return (found[condition]["status"], found[condition]["reason"]) if condition in found else ("", "")


async def test_workers_are_followed_and_told_how_they_are(hand: Hand, tmp_path: Path) -> None:
    cluster = await open_cluster(hand.kubeconfig, hand.namespace)
    await hand.apply("Worker", "first", SPEC)
    pool = ClusterPool(cluster, tmp_path, lambda *_: None)
    await pool.open()
    ready = Condition("Ready", holds=True, reason="Healthy")
    writer = StatusWriter(
        cluster,
        lambda: [
            (each, Report((accepted(None), ready), {"health": "up", "lastCalibration": "2026-11-30"}))
            for each in pool.workers.values()
        ],
        SystemClock(),
        AlwaysMine(),
        interval_s=1,
    )
    watching = asyncio.create_task(pool.watch())
    try:
        assert list(pool.current.pool.by_id) == ["first"]
        await hand.apply("Worker", "second", SPEC)
        await until(lambda: list(pool.current.pool.by_id) == ["first", "second"])
        await hand.apply("Worker", "first", {**SPEC, "model": "other"})
        await until(lambda: pool.current.pool.by_id["first"].provider_model == "other")
        assert await writer.write() == 2
        assert await told(hand, "Worker", "first", "Ready") == ("True", "Healthy")
        await until(lambda: all(each.status for each in pool.workers.values()))
        assert await writer.write() == 0, "it stands there already"
        await hand.delete("Worker", "second")
        await until(lambda: list(pool.current.pool.by_id) == ["first"])
        listing = await cluster.list(WORKER)
        assert [(each.name, each.generation) for each in listing.resources] == [("first", 2)]
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await cluster.close()


@pytest.mark.parametrize(
    ("kind", "spec", "why"),
    [
        ("Worker", {**SPEC, "provider": "azure"}, "key is required"),
        ("Worker", {**SPEC, "pricing": {}}, "unknown field"),
        ("Worker", {**SPEC, "price": {"input_usd_per_mtok": "1", "output_usd_per_mtok": "x"}}, "output_usd"),
        ("Tenant", {"warn_at_percent": [80, 50]}, "ascending"),
        ("Tenant", {"keys": [{"id": "k", "sha256": "secret", "roles": ["client"]}]}, "sha256"),
        ("Policy", {"tenants": ["acme"]}, "changes nothing"),
    ],
)
async def test_the_server_refuses_what_the_services_would(
    hand: Hand, kind: str, spec: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        await hand.apply(kind, "bad", spec)


async def test_tenants_and_policies_are_followed(hand: Hand) -> None:
    cluster = await open_cluster(hand.kubeconfig, hand.namespace)
    await hand.apply("Tenant", "acme", {"budget_usd_per_month": "5"})
    tenants = ClusterTenants(cluster, lambda *_: None, with_policies=True)
    await tenants.open()
    watching = asyncio.create_task(tenants.watch())
    try:
        assert tenants.current.budget_of("acme", "") == 5_000_000
        await hand.apply("Policy", "eu", {"regions": {"only": ["eu"]}})
        await until(lambda: tenants.fresh().by_id["acme"].policies)
        assert tenants.fresh().by_id["acme"].policies[0].owner == "policy.eu"
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await cluster.close()


async def test_a_lease_has_one_holder(hand: Hand) -> None:
    cluster = await open_cluster(hand.kubeconfig, hand.namespace)
    try:
        turns = [LeasedTurn(cluster, LEASE, name, SystemClock(), duration_s=60) for name in ("a", "b")]
        assert await turns[0].is_mine()
        assert not await turns[1].is_mine()
        assert await turns[0].is_mine()
    finally:
        await cluster.close()
