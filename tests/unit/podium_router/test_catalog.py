"""Workers are found in the version that a plan was made on, for two versions."""

import json
from pathlib import Path
from typing import Any

import pytest

from podium_core.config.pool import PoolFile, load_pool
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Health
from podium_router.breaker import BreakerLimits, Sign
from podium_router.calls import Credentials
from podium_router.catalog import Catalog
from podium_router.keys import Keys
from podium_router.lanes import LaneLimits
from podium_router.telemetry import watch_workers
from tests.fakes.ids import FakeClock
from tests.fakes.metrics import ReadableMeter


class Source:
    """A pool file that changes."""

    def __init__(self, path: Path, **variables: str) -> None:
        self._path = path
        self.clock = FakeClock()
        self.variables = variables
        self.current = self.write(w={})
        self.catalog = Catalog(
            lambda: self.current, Keys(variables.get), self.clock, LaneLimits(), BreakerLimits(failures=1)
        )

    def write(self, **workers: dict[str, Any]) -> PoolFile:
        entries = [
            {
                "id": name,
                "provider": "openai-compatible",
                "model": "m",
                "base_url": "http://127.0.0.1:9/v1/",
                **changes,
            }
            for name, changes in workers.items()
        ]
        self._path.write_text(json.dumps({"workers": entries}))
        self.current = load_pool(self._path)
        return self.current

    @property
    def digest(self) -> str:
        return self.current.pool.pool_digest


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path / "pool.yaml", A_KEY="sk-1")


def test_a_route_names_the_endpoint(source: Source) -> None:
    route = source.catalog.route(source.digest, "w")
    assert str(route.url) == "http://127.0.0.1:9/v1/chat/completions"
    assert route.shape.max_tokens_field == b"max_tokens"
    assert source.catalog.credentials_of(route) == Credentials()


def test_an_unknown_worker_is_not_found(source: Source) -> None:
    with pytest.raises(PodiumError) as missing:
        source.catalog.route(source.digest, "x")
    assert (missing.value.code, missing.value.reason) == (Code.NOT_FOUND, "UNKNOWN_WORKER")


def test_the_last_two_versions_are_kept(source: Source) -> None:
    first = source.digest
    source.write(w={}, x={})
    second = source.digest
    assert source.catalog.route(first, "w").pool_digest == first
    assert source.catalog.route(second, "x").pool_digest == second
    with pytest.raises(PodiumError):
        source.catalog.route(first, "x")
    source.write(x={})
    source.catalog.route(second, "w")
    with pytest.raises(PodiumError) as stale:
        source.catalog.route(first, "w")
    assert (stale.value.code, stale.value.reason) == (Code.CONFLICT, "STALE_POOL")


def test_a_new_price_makes_no_new_version(source: Source) -> None:
    old = source.catalog.route(source.digest, "w")
    digest = source.digest
    source.write(w={"price": {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"}})
    assert source.digest == digest
    new = source.catalog.route(digest, "w")
    assert (old.worker.price, new.worker.price is None) == (None, False)
    assert old.price_digest != new.price_digest


def test_a_missing_key_shows_and_refuses(source: Source) -> None:
    source.write(w={"key": {"env": "ABSENT"}}, x={"key": {"env": "A_KEY"}}, y={})
    health = {worker.worker_id: worker.health for worker in source.catalog.pool().workers}
    assert health == {"w": Health.UNCONFIGURED, "x": Health.UP, "y": Health.UP}
    with pytest.raises(PodiumError) as refused:
        source.catalog.credentials_of(source.catalog.route(source.digest, "w"))
    assert refused.value.reason == "WORKER_UNCONFIGURED"
    key = source.catalog.credentials_of(source.catalog.route(source.digest, "x")).key
    assert key is not None
    assert key.reveal() == "sk-1"


def test_failures_and_places_outlive_a_reload(source: Source) -> None:
    before = source.catalog.route(source.digest, "w")
    before.state.breaker.leave(Sign.FAILED, was_probe=before.state.breaker.enter())
    source.write(w={"limits": {"max_concurrency": 3}})
    after = source.catalog.route(source.digest, "w")
    assert after.state is before.state
    assert after.state.lane.size.max_concurrency == 3
    assert source.catalog.pool().workers[0].health is Health.DOWN
    source.clock.advance(10)
    assert source.catalog.pool().workers[0].health is Health.UP


def test_failures_are_forgotten_when_the_worker_is_reached_another_way(source: Source) -> None:
    before = source.catalog.route(source.digest, "w")
    before.state.breaker.leave(Sign.FAILED, was_probe=before.state.breaker.enter())
    source.write(w={"base_url": "http://127.0.0.1:10/v1"})
    assert source.catalog.pool().workers[0].health is Health.UP
    assert source.catalog.route(source.digest, "w").state.lane is before.state.lane


def test_workers_that_are_gone_leave_nothing_behind(source: Source) -> None:
    for number in range(5):
        source.write(**{f"w{number}": {}})
        source.catalog.pool()
    assert set(source.catalog._states) == {"w3", "w4"}
    assert len(source.catalog._versions) == 2


def test_operators_see_the_health_that_each_worker_has_now(source: Source) -> None:
    counted = ReadableMeter()
    watch_workers(counted.meter, source.catalog.healths)

    def seen() -> set[tuple[str, str]]:
        points = counted.points("podium.workers")
        assert all(value == 1 for _, value in points)
        return {(labels["podium.worker.id"], labels["podium.worker.health"]) for labels, _ in points}

    assert seen() == {("w", "up")}
    source.write(w={}, keyless={"key": {"env": "NOT_SET"}})
    route = source.catalog.route(source.digest, "w")
    assert seen() == {("w", "up"), ("keyless", "unconfigured")}
    route.state.breaker.leave(Sign.FAILED, was_probe=route.state.breaker.enter())
    assert seen() == {("w", "down"), ("keyless", "unconfigured")}, "the health that was is not told any more"
