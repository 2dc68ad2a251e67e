"""Moments that no caller can see: a commit whose answer was lost, and a clock that steps back."""

import contextlib

import pytest

from podium_audit.ports import Batch, StoreError
from podium_core.domain.errors import PodiumError
from tests.fakes.audit_log import LogScene, begin, end, event, open_run, seal
from tests.fakes.audit_store import FakeLogStore
from tests.fakes.log_stories import check_log

HOUR_NS = 3_600_000_000_000


class LostAnswers(FakeLogStore):
    """Commits, and then says that it could not: what a connection that breaks at the wrong moment does."""

    loses = False

    def commit(self, batch: Batch) -> None:
        """Keep the batch whatever is said of it."""
        super().commit(batch)
        if self.loses:
            self.loses = False
            raise StoreError("the connection is lost")


def test_a_commit_whose_answer_was_lost_is_found_by_its_events() -> None:
    store = LostAnswers()
    scene = LogScene(store=store)
    scene.do(open_run())
    store.loses = True
    scene.log.apply(begin())
    scene.log.apply(open_run("run_2"))
    with pytest.raises(StoreError):
        scene.log.commit()
    scene.log.roll_back()
    scene.log.load()
    size = len(store.leaf_rows)
    again = scene.do(begin())
    assert not again.is_new, "the permit was given already: the same one is told again"
    scene.do(open_run("run_2"))
    assert len(store.leaf_rows) == size
    assert scene.reserved() == 100
    with pytest.raises(PodiumError, match="used for another request"):
        scene.log.apply(open_run("run_2", event=event("open.run_2", request="another")))
    scene.do(end(), seal())
    check_log(scene)


def test_a_clock_that_steps_back_changes_no_order_no_lease_and_no_money() -> None:
    scene = LogScene()
    scene.do(open_run(), begin())
    scene.clock.wall_ns -= HOUR_NS
    assert scene.leases.is_alive("run_1"), "leases go by the steady clock"
    scene.do(end(), seal(), open_run("run_2"))
    times = [record["time_us"] for record in scene.records()]
    assert times != sorted(times), "the record shows what the clock said"
    assert [row.leaf_index for row in scene.store.leaf_rows] == list(range(len(times)))
    assert [record["run_seq"] for record in scene.records("run_1")] == list(range(5))
    assert (scene.reserved(), scene.settled()) == (0, 40)
    scene.restart()
    assert (scene.reserved(), scene.settled()) == (0, 40)
    check_log(scene)


def test_a_month_that_comes_twice_is_counted_where_each_attempt_began() -> None:
    scene = LogScene()
    month = scene.month
    scene.do(open_run(), begin())
    scene.clock.wall_ns -= 40 * 24 * HOUR_NS
    assert scene.month < month
    scene.do(end())
    book = scene.log.state.book
    assert (book.settled("acme", month), book.settled("acme", scene.month)) == (40, 0)
    with contextlib.suppress(PodiumError):
        scene.do(seal())
    check_log(scene)
