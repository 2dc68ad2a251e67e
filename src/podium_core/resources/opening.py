"""Opens the sources that the settings name."""

from contextlib import AsyncExitStack

from podium_core.config.pool import PoolFile, load_pool
from podium_core.config.tenants import Tenants, load_tenants
from podium_core.config.watched import OnLook, Source, Watched
from podium_core.domain.clock import Clock
from podium_core.resources.api import KubernetesCluster, open_cluster
from podium_core.resources.pool import ClusterPool
from podium_core.resources.settings import ClusterSettings, PoolSettings, TenantsSettings
from podium_core.resources.tenants import ClusterTenants


async def open_pool(
    settings: PoolSettings, on_look: OnLook, stack: AsyncExitStack
) -> "Source[PoolFile] | ClusterPool":
    """Return the source of the pool, read once; `stack` closes it. Raises PodiumError: it cannot be read."""
    if settings.pool_file is not None:
        return Watched(settings.pool_file, load_pool, interval_s=settings.pool_poll_s, on_look=on_look)
    assert settings.provider_keys_dir is not None
    pool = ClusterPool(await _cluster(settings, stack), settings.provider_keys_dir, on_look)
    await pool.open()
    return pool


async def open_tenants(
    settings: TenantsSettings, on_look: OnLook, stack: AsyncExitStack, *, poll_s: float = 1.0
) -> Source[Tenants]:
    """Return the source of the tenants alone, read once; as above."""
    if settings.tenants_file is not None:
        return Watched(settings.tenants_file, load_tenants, interval_s=poll_s, on_look=on_look)
    tenants = ClusterTenants(await _cluster(settings, stack), on_look)
    await tenants.open()
    return tenants


async def open_callers(
    settings: TenantsSettings, on_look: OnLook, stack: AsyncExitStack, clock: Clock
) -> Source[Tenants]:
    """Return the source of tenants with the policies that hold for them; it tells objects their status."""
    if settings.tenants_file is not None:
        return await open_tenants(settings, on_look, stack)
    cluster = await _cluster(settings, stack)
    tenants = ClusterTenants(cluster, on_look, with_policies=True)
    tenants.tell_status(cluster, clock, interval_s=settings.cluster_status_s)
    await tenants.open()
    return tenants


async def _cluster(settings: ClusterSettings, stack: AsyncExitStack) -> KubernetesCluster:
    cluster = await open_cluster(settings.cluster_kubeconfig_file, settings.cluster_namespace)
    stack.push_async_callback(cluster.close)
    return cluster
