"""Parked seals and reaped runs."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from podium_audit.log.group_commit import GroupCommit
from podium_audit.log.sealing import Reaper, Sealer
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from tests.fakes.audit_log import LogScene, begin, end, event, open_run, seal
from tests.fakes.audit_store import FakeMetrics
from tests.fakes.ids import CountingIds
from tests.fakes.waiting import PATIENCE_S, until


class Scene:
    def __init__(self, wait_s: float = 5.0) -> None:
        self.inner = LogScene()
        self.commit = GroupCommit(
            self.inner.log, SystemClock(), FakeMetrics(), queue_bound=100, batch_limit=10, commit_wait_s=5
        )
        self.sealer = Sealer(self.commit, self.inner.leases, wait_s=wait_s)
        self.reaper = Reaper(self.commit, self.inner.leases, CountingIds(), interval_s=0.01)

    async def end(self, attempt_id: str = "att_1") -> None:
        applied = await self.commit.submit(end(attempt_id))
        self.sealer.attempt_ended("run_1", applied.open_attempts)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    await made.commit.start()
    yield made
    await made.commit.stop()


async def parked(scene: Scene) -> "asyncio.Task[object]":
    """Open a run with an attempt, begin to seal it, and return the parked seal."""
    await scene.commit.submit(open_run())
    await scene.commit.submit(begin())
    task: asyncio.Task[object] = asyncio.create_task(scene.sealer.seal(seal()))
    await until(lambda: scene.inner.log.state.open_runs["run_1"].is_sealing)
    await asyncio.sleep(0.01)
    assert not task.done()
    return task


async def test_a_seal_waits_for_an_attempt_that_is_ending(scene: Scene) -> None:
    task = await parked(scene)
    await scene.end()
    await asyncio.wait_for(task, PATIENCE_S)
    assert scene.inner.last()["facts"]["unknown_attempts"] == []
    assert not scene.sealer._parked


async def test_a_seal_does_not_wait_for_ever() -> None:
    scene = Scene(wait_s=0.5)
    await scene.commit.start()
    task = await parked(scene)
    await asyncio.wait_for(task, PATIENCE_S)
    assert scene.inner.last()["facts"]["unknown_attempts"] == ["att_1"]
    assert scene.inner.reserved() == 0
    await scene.commit.stop()


async def test_a_caller_that_leaves_does_not_stop_its_seal(scene: Scene) -> None:
    task = await parked(scene)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await scene.end()
    await scene.sealer.drain(2)
    assert scene.inner.last()["type"] == "sealed"


async def test_two_seals_of_one_event_get_one_answer(scene: Scene) -> None:
    task = await parked(scene)
    again = asyncio.create_task(scene.sealer.seal(seal()))
    await asyncio.sleep(0.01)
    await scene.end()
    assert await task == await again


async def test_a_lapsed_run_is_sealed_as_abandoned_and_holds_no_money(scene: Scene) -> None:
    await scene.commit.submit(open_run())
    await scene.commit.submit(begin())
    await scene.commit.submit(open_run("run_2", lease_ms=60_000))
    scene.inner.clock.advance(15)
    assert await scene.reaper.reap() == 1
    record = scene.inner.last()
    assert (record["service"], record["run_id"]) == ("audit", "run_1")
    assert record["facts"]["outcome"] == "abandoned"
    assert record["facts"]["unknown_attempts"] == ["att_1"]
    assert (scene.inner.reserved(), scene.inner.settled()) == (0, 100)
    assert list(scene.inner.log.state.open_runs) == ["run_2"]
    assert await scene.reaper.reap() == 0
    with pytest.raises(PodiumError, match="abandoned"):
        await scene.sealer.seal(seal(event=event("too.late")))


async def test_what_cannot_be_sealed_now_is_sealed_later(scene: Scene) -> None:
    await scene.commit.submit(open_run())
    scene.inner.clock.advance(15)
    scene.inner.store.failures = 1
    assert await scene.reaper.reap() == 0
    scene.inner.clock.advance(1)
    assert await scene.reaper.reap() == 1


async def test_the_reaper_runs_until_cancelled(scene: Scene) -> None:
    await scene.commit.submit(open_run())
    scene.inner.clock.advance(15)
    task = asyncio.create_task(scene.reaper.run())
    await until(lambda: not scene.inner.log.state.open_runs)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
