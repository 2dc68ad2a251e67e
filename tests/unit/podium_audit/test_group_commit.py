"""Group commit: one batch for many, refusal when it fails, and recovery without a restart."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from podium_audit.log.group_commit import GroupCommit
from podium_audit.ports import Batch, StoreError
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.audit_log import LogScene, begin, end, open_run, seal
from tests.fakes.audit_store import FakeLogStore, FakeMetrics
from tests.fakes.waiting import PATIENCE_S, until


class GatedStore(FakeLogStore):
    """A store whose commits wait for the test."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, batch: Batch) -> None:
        assert self.gate.wait(PATIENCE_S)
        super().commit(batch)


class Scene:
    def __init__(self, **changes: float) -> None:
        self.store = GatedStore()
        self.inner = LogScene(store=self.store)
        self.metrics = FakeMetrics()
        settings = {"queue_bound": 8, "batch_limit": 100, "commit_wait_s": 5.0, **changes}
        self.commit = GroupCommit(self.inner.log, SystemClock(), self.metrics, **settings)  # type: ignore[arg-type]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    await made.commit.start()
    yield made
    made.store.gate.set()
    await made.commit.stop()


async def code_of(awaitable: "asyncio.Task[object]") -> Code:
    with pytest.raises(PodiumError) as caught:
        await awaitable
    return caught.value.code


def later(scene: Scene, command: object) -> "asyncio.Task[object]":
    return asyncio.create_task(scene.commit.submit(command))  # type: ignore[arg-type]


def healthy(scene: Scene) -> bool:
    return scene.commit.is_healthy


async def test_what_waits_together_is_committed_together(scene: Scene) -> None:
    scene.store.gate.clear()
    first = later(scene, open_run("run_0"))
    await until(lambda: not scene.commit._queue and scene.inner.log.state.size)
    others = [later(scene, open_run(f"run_{number}")) for number in range(1, 6)]
    await until(lambda: len(scene.commit._queue) == 5)
    scene.store.gate.set()
    await asyncio.gather(first, *others)
    assert scene.store.commits == 2
    assert scene.metrics.leaves == [2, 10]
    assert {task.result().checkpoint for task in others} == {scene.store.checkpoints[-1].note}  # type: ignore[attr-defined]


async def test_a_refusal_concerns_its_own_caller_only(scene: Scene) -> None:
    await scene.commit.submit(open_run())
    results = await asyncio.gather(
        scene.commit.submit(begin()),
        scene.commit.submit(begin("att_2", worker_id="w9")),
        scene.commit.submit(begin("att_3")),
        return_exceptions=True,
    )
    assert [isinstance(result, PodiumError) for result in results] == [False, True, False]


async def test_a_full_queue_refuses_at_once(scene: Scene) -> None:
    scene.store.gate.clear()
    tasks = [later(scene, open_run("run_0"))]
    await until(lambda: not scene.commit._queue and scene.inner.log.state.size)
    tasks += [later(scene, open_run(f"run_{number}")) for number in range(1, 9)]
    await until(lambda: len(scene.commit._queue) == 8)
    assert await code_of(later(scene, open_run("run_9"))) is Code.AUDIT_UNAVAILABLE
    assert scene.metrics.refusals == 1
    scene.store.gate.set()
    await asyncio.gather(*tasks)


async def test_a_slow_commit_is_not_waited_for_longer_than_allowed() -> None:
    scene = Scene(commit_wait_s=0.05)
    await scene.commit.start()
    scene.store.gate.clear()
    under_way = later(scene, open_run("run_0"))
    await until(lambda: not scene.commit._queue and scene.inner.log.state.size)
    waiting = later(scene, open_run("run_1"))
    assert await code_of(under_way) is Code.AUDIT_UNAVAILABLE
    assert await code_of(waiting) is Code.AUDIT_UNAVAILABLE
    assert scene.metrics.refusals == 2, "a commit that hangs has not failed, and its callers are refused"
    scene.store.gate.set()
    await scene.commit.stop()
    # The one under way became durable, which its event id would tell; the one that waited never began.
    assert list(scene.store.runs) == ["run_0"]


async def test_a_failed_commit_refuses_its_batch_and_the_next_one_works(scene: Scene) -> None:
    await scene.commit.submit(open_run())
    scene.store.failures = 1
    with pytest.raises(PodiumError) as caught:
        await scene.commit.submit(begin())
    assert (caught.value.code, caught.value.retry_after_s) == (Code.AUDIT_UNAVAILABLE, 1.0)
    assert "no room" not in caught.value.message
    assert healthy(scene) is False
    await scene.commit.submit(begin())
    assert healthy(scene) is True
    await scene.commit.submit(end())
    applied = await scene.commit.submit(seal())
    assert scene.inner.signer.read(applied.checkpoint).size == 5


async def test_health_comes_back_by_a_probe_without_traffic(scene: Scene) -> None:
    scene.store.failures = 1
    assert await code_of(later(scene, open_run())) is Code.AUDIT_UNAVAILABLE
    assert healthy(scene) is False
    await until(lambda: healthy(scene))
    assert scene.store.commits == 0


async def test_a_defect_in_one_command_reaches_its_caller_and_nobody_else(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = open_run("run_1", verdicts=None)
    results = await asyncio.gather(
        scene.commit.submit(broken), scene.commit.submit(open_run("run_2")), return_exceptions=True
    )
    assert isinstance(results[0], TypeError)
    assert not isinstance(results[1], Exception)


async def test_stopping_commits_what_waits_and_takes_nothing_new(scene: Scene) -> None:
    tasks = [later(scene, open_run(f"run_{number}")) for number in range(4)]
    await asyncio.sleep(0)
    await scene.commit.stop()
    await asyncio.gather(*tasks)
    assert await code_of(later(scene, open_run("run_9"))) is Code.AUDIT_UNAVAILABLE
    await scene.commit.until_ended()


async def test_a_log_that_cannot_be_read_does_not_start() -> None:
    scene = Scene()
    await scene.commit.start()
    await scene.commit.submit(open_run())
    await scene.commit.stop()
    scene.store.leaf_rows.clear()
    scene.inner.log.roll_back()
    again = GroupCommit(
        scene.inner.log, SystemClock(), scene.metrics, queue_bound=1, batch_limit=1, commit_wait_s=1
    )
    with pytest.raises(StoreError):
        await again.start()


async def test_an_end_waits_a_moment_to_share_the_commit_of_the_seal_behind_it() -> None:
    scene = Scene(patience_s=30.0)
    await scene.commit.start()
    await later(scene, open_run())
    await later(scene, begin())
    before = scene.store.commits
    ended = later(scene, end())
    await asyncio.sleep(0.05)
    assert not ended.done()
    await asyncio.gather(ended, later(scene, seal()))
    assert scene.store.commits == before + 1
    await scene.commit.stop()


async def test_an_end_alone_is_committed_all_the_same(scene: Scene) -> None:
    await later(scene, open_run())
    await later(scene, begin())
    await later(scene, end())
    assert scene.store.commits == 3
