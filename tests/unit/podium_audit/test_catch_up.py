"""Several logs over one store: each takes in what the others committed, and refuses what cannot be."""

import contextlib
import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_audit.ports import StoreBusyError, StoreError
from podium_audit.records.commands import AppendNote, Command, Grade, SetStop, StopRun
from podium_audit.records.run_state import OWN_NOTES
from podium_core.domain.errors import PodiumError
from tests.fakes.audit_log import LogScene, append_plan, begin, end, event, note, open_run, plan_of, put, seal
from tests.fakes.audit_log import text_part as part
from tests.fakes.log_stories import check_log, commands, visible


def replicas(count: int = 2) -> list[LogScene]:
    """Return logs of one installation: one store, one key store, one signing key."""
    first = LogScene()
    first.store.is_shared = True
    others = [
        LogScene(store=first.store, keys=first.keys, clock=first.clock, signer=first.signer)
        for _ in range(count - 1)
    ]
    for other in others:
        other.leases = other.log._leases = first.leases
    return [first, *others]


def do(scene: LogScene, command: Command) -> None:
    scene.log.begin()
    scene.do(command)


def figures(scene: LogScene) -> object:
    state = scene.log.state
    return visible(scene), state.stops, state.grade_tallies, state.next_run_no, scene.log.newest_note


others = st.one_of(
    commands(),
    st.builds(
        lambda run, score, at: Grade(event(f"grade.{run}.{at}"), run, "acme", "key1", score, ""),
        st.sampled_from(("run_1", "run_2", "run_3")),
        st.integers(0, 1_000_000),
        st.integers(0, 3),
    ),
    st.builds(
        lambda worker, stands, at: SetStop(event(f"stop.{worker}.{at}"), "acme", worker, "key1", stands),
        st.sampled_from(("w1", "w2")),
        st.booleans(),
        st.integers(0, 3),
    ),
    st.builds(
        lambda run: StopRun(event(f"stop.{run}"), run, "acme", "key1"),
        st.sampled_from(("run_1", "run_2")),
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(others, st.integers(0, 2), st.booleans()), max_size=50))
def test_replicas_know_the_same_whoever_wrote_it(story: list[tuple[Command, int, bool]]) -> None:
    scenes = replicas(3)
    for command, who, everybody_looks in story:
        with contextlib.suppress(PodiumError):
            do(scenes[who], command)
        scenes[who].log.commit()
        if everybody_looks:
            for scene in scenes:
                scene.log.refresh()
    for scene in scenes:
        scene.log.refresh()
    told = [figures(scene) for scene in scenes]
    fresh = LogScene(store=scenes[0].store, keys=scenes[0].keys, clock=scenes[0].clock)
    assert told == [figures(fresh)] * 3
    check_log(scenes[0])


def test_a_run_goes_on_at_another_replica() -> None:
    first, second = replicas()
    do(first, open_run(tenant_budget_usd_micros=150))
    do(second, begin())
    do(first, put(part("more")))
    do(second, end(contents=(part("att_1/output"),)))
    do(first, append_plan(plan_of(round_=1)))
    do(second, seal())
    types = [record["type"] for record in first.records()]
    assert types == ["opened", "plan", "attempt_begun", "content", "attempt_ended", "plan", "sealed"]
    first.log.refresh()
    assert first.settled() == second.settled() == 40
    check_log(first)


def test_a_budget_is_one_for_all_replicas() -> None:
    first, second = replicas()
    do(first, open_run(tenant_budget_usd_micros=150))
    do(second, open_run("run_2", tenant_budget_usd_micros=150))
    do(first, begin())
    with pytest.raises(PodiumError, match="budget of the tenant"):
        do(second, begin("att_2", "run_2"))
    second.log.commit()
    assert second.reserved() == 100


def test_a_repeated_event_is_known_at_every_replica() -> None:
    first, second = replicas()
    do(first, open_run())
    second.log.begin()
    again = second.log.apply(open_run())
    second.log.commit()
    assert (again.is_new, again.leaf_indices) == (False, (0, 1))
    assert len(first.store.leaf_rows) == 2


def test_a_stop_is_obeyed_at_another_replica_once_it_has_looked() -> None:
    first, second = replicas()
    do(first, open_run())
    do(second, SetStop(event("stop"), "", "w1", "key1", stands=True))
    with pytest.raises(PodiumError, match="stopped the worker w1"):
        do(first, begin())
    do(second, SetStop(event("clear"), "", "w1", "key1", stands=False))
    do(first, begin())


@pytest.mark.parametrize("kind", sorted(OWN_NOTES))
def test_nobody_can_note_what_would_stop_clear_or_grade(kind: str) -> None:
    (first,) = replicas(1)
    facts = {"tenant_id": "", "worker_id": "w1", "score_ppm": "1"}
    with pytest.raises(PodiumError, match="not noted"):
        first.do(AppendNote(event("note"), "", kind, facts))


def test_whoever_comes_too_late_for_the_log_loses_nothing() -> None:
    (first,) = replicas(1)
    do(first, open_run())
    first.store.held_by_another = True
    with pytest.raises(StoreBusyError):
        first.log.begin()
    first.store.held_by_another = False
    do(first, begin())
    check_log(first)


def test_a_store_that_lost_leaves_is_refused_until_it_has_them_again() -> None:
    (first,) = replicas(1)
    do(first, open_run())
    do(first, note())
    lost = first.store.leaf_rows.pop(), first.store.checkpoints.pop()
    with pytest.raises(StoreError, match="older copy"):
        first.log.begin()
    first.log.roll_back()
    with pytest.raises(StoreError, match="older copy"):
        first.log.load()
    first.store.leaf_rows.append(lost[0])
    first.store.checkpoints.append(lost[1])
    first.log.load()
    do(first, begin())


def test_leaves_that_are_not_those_that_were_signed_are_refused() -> None:
    first, second = replicas()
    do(first, open_run())
    row = first.store.leaf_rows[1]
    first.store.leaf_rows[1] = row._replace(data=row.data.replace(b"w1", b"w2"))
    with pytest.raises(StoreError, match="does not fit its last checkpoint"):
        second.log.begin()


def test_a_mended_history_is_read_anew() -> None:
    (first,) = replicas(1)
    do(first, open_run())
    first.store.epoch = 1
    with pytest.raises(StoreError, match="read anew"):
        first.log.begin()
    first.log.roll_back()
    first.log.load()
    do(first, begin())


def test_content_that_is_not_stored_is_asked_for_where_it_is() -> None:
    first, second = replicas()
    first.keeps_content = False
    first.log._keeps_content = lambda _: False
    do(first, open_run())
    with pytest.raises(PodiumError) as caught:
        do(second, begin())
    assert caught.value.reason == "CONTENT_NOT_KEPT"
    second.log.commit()
    do(first, dataclasses.replace(begin(), event=event("att_2", "router")))
