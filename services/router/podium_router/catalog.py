"""The workers as calls find them: the last two versions of the pool, and each worker's lane and breaker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from yarl import URL

from podium_core.config.pool import CallLimits, KeyReference, PoolFile, WorkerEntry
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Health, Pool, Worker
from podium_router.body import BodyShape
from podium_router.breaker import Breaker, BreakerLimits
from podium_router.calls import CallTimeouts, Credentials
from podium_router.keys import Keys
from podium_router.lanes import Lane, LaneLimits, LaneSize
from podium_router.pace import Pace

_KEPT_VERSIONS = 2
_TIMEOUTS = CallTimeouts()
_COMPLETIONS_PATH = "/chat/completions"
_EMBEDDINGS_PATH = "/embeddings"
MAX_COMPLETION_TOKENS_FEATURE = "max_completion_tokens"
"""A worker with this feature is told its token limit under OpenAI's newer name."""

DEVELOPER_FEATURE = "developer"
"""A worker with this feature knows the role developer; any other is told it as system."""


@dataclass(frozen=True, slots=True)
class WorkerState:
    """What outlives versions of the pool file: running calls, recent failures and pace of one worker."""

    lane: Lane
    breaker: Breaker
    pace: Pace


@dataclass(frozen=True, slots=True)
class Route:
    """One worker of one pool version, ready to be called."""

    worker: Worker
    url: URL
    shape: BodyShape
    keys: Mapping[str, KeyReference]
    timeouts: CallTimeouts
    state: WorkerState
    pool_digest: str
    price_digest: str


class Catalog:
    """Finds routes. `source` gives the newest good pool file; a new one is noticed at the next look."""

    def __init__(
        self,
        source: Callable[[], PoolFile],
        keys: Keys,
        clock: Clock,
        lane_limits: LaneLimits,
        breaker_limits: BreakerLimits,
        timeouts: CallTimeouts = _TIMEOUTS,
    ) -> None:
        self._source = source
        self._keys = keys
        self._clock = clock
        self._lane_limits = lane_limits
        self._breaker_limits = breaker_limits
        self._timeouts = timeouts
        self._newest: PoolFile | None = None
        self._versions: dict[str, dict[str, Route]] = {}
        self._states: dict[str, WorkerState] = {}
        self._targets: dict[str, tuple[object, ...]] = {}
        self._refresh()

    def route(self, pool_digest: str, worker_id: str) -> Route:
        """Return a worker as the named pool version has it.

        Raises PodiumError: CONFLICT (STALE_POOL) for a version that is gone, NOT_FOUND for a worker that
        this version does not have.
        """
        self._refresh()
        version = self._versions.get(pool_digest)
        if version is None:
            raise PodiumError(
                Code.CONFLICT,
                "the pool has changed since this plan was made; list the workers and plan again",
                reason="STALE_POOL",
                param="pool_digest",
            )
        route = version.get(worker_id)
        if route is None:
            raise PodiumError(
                Code.NOT_FOUND,
                "the pool has no such worker; ListWorkers names those there are",
                reason="UNKNOWN_WORKER",
                param="worker_id",
            )
        return route

    def credentials_of(self, route: Route) -> Credentials:
        """Return what to call with. Raises PodiumError (PROVIDER_FAILED) while a named key is missing."""
        found = {name: self._keys.find(reference) for name, reference in route.keys.items()}
        if None in found.values():
            raise PodiumError(
                Code.PROVIDER_FAILED,
                "the worker's provider key is not configured",
                reason="WORKER_UNCONFIGURED",
                metadata={"retryable": "false"},
            )
        return Credentials(**found)

    def pool(self) -> Pool:
        """Return the newest pool with each worker's health and pace as they are now."""
        newest = self._refresh()
        routes = self._versions[newest.pool.pool_digest]
        workers = tuple(self._as_it_is(worker, routes[worker.worker_id]) for worker in newest.pool.workers)
        return Pool(workers, newest.pool.pool_digest, newest.pool.price_digest)

    def healths(self) -> dict[str, Health]:
        """Return each worker's health. Takes up no new file, so that another thread may ask."""
        newest = self._newest
        routes = self._versions.get(newest.pool.pool_digest, {}) if newest is not None else {}
        return {worker_id: self._health_of(route) for worker_id, route in routes.items()}

    def _as_it_is(self, worker: Worker, route: Route) -> Worker:
        return replace(worker, health=self._health_of(route), live=route.state.pace.estimate)

    def _health_of(self, route: Route) -> Health:
        if None in map(self._keys.find, route.keys.values()):
            return Health.UNCONFIGURED
        if route.state.breaker.is_down:
            return Health.DOWN
        return Health.PAUSED if route.state.lane.is_paused else Health.UP

    def _refresh(self) -> PoolFile:
        newest = self._source()
        if newest is not self._newest:
            self._newest = newest
            self._take(newest)
        return newest

    def _take(self, file: PoolFile) -> None:
        digest = file.pool.pool_digest
        self._versions.pop(digest, None)
        self._versions[digest] = {
            entry.worker.worker_id: self._route_of(entry, file.pool) for entry in file.entries
        }
        while len(self._versions) > _KEPT_VERSIONS:
            del self._versions[next(iter(self._versions))]
        kept = {worker_id for routes in self._versions.values() for worker_id in routes}
        self._states = {worker_id: self._states[worker_id] for worker_id in kept}
        self._targets = {worker_id: self._targets[worker_id] for worker_id in kept}

    def _route_of(self, entry: WorkerEntry, pool: Pool) -> Route:
        worker = entry.worker
        return Route(
            worker=worker,
            url=_url_of(entry),
            shape=BodyShape.of(
                worker.provider_model,
                max_completion_tokens=MAX_COMPLETION_TOKENS_FEATURE in worker.card.features,
                knows_developer=DEVELOPER_FEATURE in worker.card.features,
            ),
            keys=entry.keys,
            timeouts=_timeouts_of(entry.limits, self._timeouts, entry.timeout_s),
            state=self._state_of(entry),
            pool_digest=pool.pool_digest,
            price_digest=pool.price_digest,
        )

    def _state_of(self, entry: WorkerEntry) -> WorkerState:
        """Keep the lane; forget failures, pause and pace when the worker is reached another way now."""
        worker_id = entry.worker.worker_id
        target = (entry.provider, entry.base_url, dict(entry.keys), entry.worker.provider_model)
        state = self._states.get(worker_id)
        if state is None or self._targets[worker_id] != target:
            if state is None:
                lane = Lane(self._lane_limits, self._clock)
            else:
                lane = state.lane
                lane.end_pause()
            state = WorkerState(lane, Breaker(self._breaker_limits, self._clock), Pace())
        limits = entry.limits
        state.lane.resize(
            LaneSize(entry.worker.max_concurrency, limits.requests_per_minute, limits.tokens_per_minute)
        )
        self._states[worker_id] = state
        self._targets[worker_id] = target
        return state


def _timeouts_of(limits: CallLimits, otherwise: CallTimeouts, total_s: float) -> CallTimeouts:
    return CallTimeouts(
        connect_s=limits.connect_timeout_s or otherwise.connect_s,
        first_token_s=limits.first_token_timeout_s or otherwise.first_token_s,
        idle_s=limits.idle_timeout_s or otherwise.idle_s,
        total_s=total_s,
    )


def _url_of(entry: WorkerEntry) -> URL:
    """Return where calls are sent; for a translated provider, the address that the rest is added to."""
    if entry.is_translated:
        return URL(entry.base_url)
    end = _EMBEDDINGS_PATH if entry.worker.card.makes_embeddings else _COMPLETIONS_PATH
    if entry.provider != "azure":
        return URL(entry.base_url + end)
    if not entry.api_version:  # Azure's version-free surface takes the deployment's name as the model
        return URL(f"{entry.base_url}/openai/v1{end}")
    deployment = quote(entry.worker.provider_model, safe="")
    path = f"/openai/deployments/{deployment}{end}"
    return URL(entry.base_url + path, encoded=True).with_query({"api-version": entry.api_version})
