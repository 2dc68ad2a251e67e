"""What the router tells Worker objects of themselves: whether they are in force, and how their worker is."""

import platform
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from podium_core.config.pool import PoolFile
from podium_core.config.watched import Source
from podium_core.domain.clock import Clock
from podium_core.domain.ids import RandomIds
from podium_core.domain.pool import Health
from podium_core.resources.lease import LeasedTurn
from podium_core.resources.objects import Resource
from podium_core.resources.pool import ClusterPool
from podium_core.resources.status import AlwaysMine, Condition, Report, StatusWriter, Turn, accepted
from podium_router.catalog import Catalog
from podium_router.settings import RouterSettings

_ROUNDS_PER_LEASE = 3
_MEANINGS = {
    Health.UP: ("Healthy", ""),
    Health.PAUSED: ("Paused", "its provider takes no more calls for now"),
    Health.DOWN: ("Down", "its last calls failed; it is tried again by and by"),
    Health.UNCONFIGURED: ("KeyMissing", "the Secret with the provider keys lacks a key that it names"),
}


def statuses(
    pool: Source[PoolFile], catalog: Catalog, settings: RouterSettings, clock: Clock
) -> Sequence[Coroutine[Any, Any, None]]:
    """Return what must run for Worker objects to be told; nothing where the pool comes from a file."""
    if not isinstance(pool, ClusterPool):
        return ()
    cluster, interval_s = pool.cluster, settings.cluster_status_s
    turn: Turn = AlwaysMine()
    if settings.pool_status_lease:
        holder = f"{platform.node()}_{RandomIds(clock).new('router')}"
        duration_s = max(1, round(_ROUNDS_PER_LEASE * interval_s))
        turn = LeasedTurn(cluster, settings.pool_status_lease, holder, clock, duration_s=duration_s)
    return (StatusWriter(cluster, lambda: reports(pool, catalog), clock, turn, interval_s=interval_s).keep(),)


def reports(pool: ClusterPool, catalog: Catalog) -> Iterator[tuple[Resource, Report]]:
    """Yield each Worker object with what its status should be now."""
    workers = catalog.pool().by_id  # takes up the newest version
    for resource in tuple(pool.workers.values()):
        taken = accepted(pool.refused.get(resource.name))
        worker = workers.get(resource.name)
        if worker is None:
            away = Condition("Ready", holds=False, reason="NotInForce", message="no version of it is good")
            yield resource, Report((taken, away), {"health": None, "lastCalibration": None})
            continue
        reason, message = _MEANINGS[worker.health]
        ready = Condition("Ready", holds=worker.health is Health.UP, reason=reason, message=message)
        newest = max((skill.measured_on for skill in worker.card.skills), default=None)
        yield resource, Report((taken, ready), {"health": worker.health.value, "lastCalibration": newest})
