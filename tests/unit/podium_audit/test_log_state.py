"""Memory against disk: whatever happens, what is read back is what was there."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from podium_audit.ports import StoreError
from podium_audit.records.commands import Command
from podium_core.domain.errors import PodiumError
from tests.fakes.audit_log import LogScene, begin, note, open_run
from tests.fakes.log_stories import check_log, commands, visible


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(commands(), st.sampled_from(("", "commit", "fail", "restart"))), max_size=60))
def test_memory_is_what_the_store_holds(story: list[tuple[Command, str]]) -> None:
    scene = LogScene()
    for command, then in story:
        with contextlib.suppress(PodiumError):
            scene.log.apply(command)
        if then == "fail":
            scene.store.failures = 1
            try:
                scene.log.commit()
            except StoreError:
                scene.log.roll_back()
                scene.log.load()
            scene.store.failures = 0
        elif then:
            scene.log.commit()
        if then in ("fail", "restart"):
            before = visible(scene)
            scene.restart()
            assert visible(scene) == before
    scene.log.commit()
    check_log(scene)


def test_a_failed_commit_takes_back_everything_of_its_batch() -> None:
    scene = LogScene()
    scene.do(open_run())
    before = visible(scene)
    scene.store.failures = 1
    scene.log.apply(begin())
    scene.log.apply(open_run("run_2"))
    try:
        scene.log.commit()
    except StoreError:
        scene.log.roll_back()
    scene.log.load()
    assert visible(scene) == before
    assert scene.leases.is_alive("run_1")
    assert not scene.leases.is_alive("run_2")
    scene.do(open_run("run_2"), begin())
    check_log(scene)


async def test_a_lease_outlives_a_failed_commit() -> None:
    scene = LogScene()
    scene.do(open_run(lease_ms=5_000))
    scene.clock.advance(4)
    scene.store.failures = 1
    scene.log.apply(note())
    try:
        scene.log.commit()
    except StoreError:
        scene.log.roll_back()
    scene.log.load()
    scene.clock.advance(1)
    assert await scene.leases.take_lapsed(9) == ["run_1"]
