"""The pool as Worker objects of a cluster say it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from podium_core.config.pool import PoolFile, pool_of
from podium_core.config.watched import Look, OnLook
from podium_core.config.worker_sections import MAX_WORKERS, WorkerSection
from podium_core.domain.errors import invalid
from podium_core.resources.follower import Follower
from podium_core.resources.objects import WORKER, Cluster, Kind, Resource
from podium_core.resources.specs import worker_of
from podium_core.resources.taken import Taken


class ClusterPool:
    """A source of pools. `keys_dir` is where the Secret with the provider keys is mounted.

    `on_look` hears of each new version: it is refused if any of its objects is.
    """

    def __init__(
        self,
        cluster: Cluster,
        keys_dir: Path,
        on_look: OnLook,
        follower: Callable[[Cluster, Kind, OnLook], Follower] = Follower,
    ) -> None:
        self.cluster = cluster
        self._follower = follower(cluster, WORKER, on_look)
        self._keys_dir = keys_dir
        self._on_look = on_look
        self._taken: Taken[WorkerSection] = Taken(worker_of, _refuse_too_many)
        self._current = pool_of((), keys_dir)

    async def open(self) -> None:
        """Read the objects. Raises PodiumError: the cluster cannot be asked, or will not say."""
        await self._follower.open()
        self._current = self._made()

    @property
    def current(self) -> PoolFile:
        """The newest good pool; without any Worker, an empty one."""
        return self._current

    def fresh(self) -> PoolFile:
        """Return the newest good pool: changes come by themselves."""
        return self._current

    @property
    def workers(self) -> Mapping[str, Resource]:
        """The objects by name, with their status."""
        return self._follower.resources

    @property
    def refused(self) -> Mapping[str, str]:
        """What is wrong with the newest version of a worker, by its name."""
        return self._taken.refused

    async def watch(self) -> None:
        """Keep up with the cluster until cancelled."""
        await self._follower.follow(self._changed)

    def _changed(self) -> None:
        self._current = self._made()
        self._on_look(WORKER.plural, Look.REFUSED if self._taken.refused else Look.TAKEN)

    def _made(self) -> PoolFile:
        sections = self._taken.take(self._follower.resources.values())
        return pool_of(tuple(sections.values()), self._keys_dir)


def _refuse_too_many(worker: WorkerSection, others: Sequence[WorkerSection]) -> None:
    if len(others) >= MAX_WORKERS:
        raise invalid(
            f"Worker {worker.id}: a pool has at most {MAX_WORKERS} workers, and older ones fill it",
            reason="CONFIG_INVALID",
        )
