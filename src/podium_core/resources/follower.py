"""All objects of one kind, kept as they are in the cluster: list once, then watch, for ever."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing

from podium_core.config.watched import Look, OnLook
from podium_core.domain.errors import PodiumError
from podium_core.resources.objects import Change, Cluster, Kind, Resource, VersionGoneError

_log = logging.getLogger(__name__)
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_GATHER_S = 0.5
_SHORT_S = 1.0


class Follower:
    """Keeps `resources`. While the cluster is away they stay as they were, and a log line says so."""

    def __init__(
        self,
        cluster: Cluster,
        kind: Kind,
        on_look: OnLook = lambda _name, _look: None,
        *,
        chance: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.kind = kind
        self._cluster = cluster
        self._on_look = on_look
        self._moved = asyncio.Event()
        self._chance = chance or random.Random()  # noqa: S311 - jitter
        self._sleep = sleep
        self._resources: dict[str, Resource] = {}
        self._version = ""
        self._failures = 0
        self._is_away = False

    @property
    def resources(self) -> Mapping[str, Resource]:
        """The objects by name."""
        return self._resources

    async def open(self) -> None:
        """List the objects. Raises PodiumError: the cluster cannot be asked, or will not say."""
        listing = await self._cluster.list(self.kind)
        self._resources = {each.name: each for each in listing.resources}
        self._version = listing.version

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep up with the cluster until cancelled; call `changed` when objects have other specs.

        Changes that come together are told of together: a large pool takes a tenth of a second to make.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_up())
            group.create_task(self._tell(changed))

    async def _tell(self, changed: Callable[[], None]) -> None:
        while True:
            await self._moved.wait()
            await self._sleep(_GATHER_S)
            self._moved.clear()
            changed()

    async def _keep_up(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            try:
                if not self._version:
                    before = self._specs()
                    await self.open()
                    if self._specs() != before:
                        self._moved.set()
                async with aclosing(self._cluster.watch(self.kind, self._version)) as changes:
                    async for change in changes:
                        self._recovered()
                        if self._take(change):
                            self._moved.set()
            except VersionGoneError:
                self._version = ""
                await self._pause(None)
            except PodiumError as error:
                await self._pause(error)
            else:
                self._recovered()
                if loop.time() - began_s < _SHORT_S:  # something between us and the server ends every watch
                    await self._sleep(_FIRST_PAUSE_S)

    def _specs(self) -> dict[str, tuple[str, int]]:
        return {name: (each.uid, each.generation) for name, each in self._resources.items()}

    def _take(self, change: Change) -> bool:
        """Note a change; say whether it is one of an object's spec."""
        self._version = change.version
        resource = change.resource
        if resource is None:
            return False
        if change.is_gone:
            return self._resources.pop(resource.name, None) is not None
        known = self._resources.get(resource.name)
        self._resources[resource.name] = resource
        return known is None or (known.uid, known.generation) != (resource.uid, resource.generation)

    async def _pause(self, error: PodiumError | None) -> None:
        """Wait a little longer each time, replicas apart. A version that lapsed costs no wait at first."""
        self._failures += 1
        if error is not None:
            self._on_look(self.kind.plural, Look.UNREACHABLE)
        if error is not None and not self._is_away:
            self._is_away = True
            _log.error(
                "the last good version stays in force: %s", error.message, extra={"kind": self.kind.plural}
            )
        if error is None and self._failures == 1:
            return
        longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(self._failures - 1, 10))
        await self._sleep(longest_s * self._chance.uniform(0.5, 1.0))

    def _recovered(self) -> None:
        if self._is_away:
            _log.info("the cluster is followed again", extra={"kind": self.kind.plural})
        self._failures, self._is_away = 0, False
