"""Seals, receipts, late ends, and ids that are used twice."""

from dataclasses import replace
from typing import Any

import pytest

from podium_audit.records.commands import Command, RecordRead
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import RunOutcome
from tests.fakes.audit_log import (
    THREE_STEPS,
    LogScene,
    append_plan,
    begin,
    end,
    event,
    note,
    open_run,
    plan_of,
    put,
    seal,
    text_part,
)


@pytest.fixture
def scene() -> LogScene:
    return LogScene()


def test_a_seal_counts_and_its_receipt_covers_the_run(scene: LogScene) -> None:
    scene.do(open_run("run_0"), open_run(), begin())
    scene.do(end())
    applied = scene.do(seal(contents=(text_part("answer", name="answer"),)))
    assert scene.last()["facts"] == {
        "outcome": "answered",
        "error_reason": "",
        "record_count": 5,
        "attempt_count": 1,
        "cost_usd_micros": 40,
        "unknown_attempts": [],
    }
    assert applied.run_leaf_indices == (2, 3, 4, 5, 6)
    assert applied.cost_usd_micros == 40
    checkpoint = scene.signer.read(applied.checkpoint)
    assert (checkpoint.size, checkpoint.root) == (7, scene.log.state._tail.root)
    assert scene.store.seals[2].cost_usd_micros == 40
    assert not scene.leases.is_alive("run_1")


def test_a_seal_waits_for_open_attempts_unless_told_to_settle_them(scene: LogScene) -> None:
    scene.do(open_run(plan=THREE_STEPS), begin(), begin("att_2", step_index=1, worker_id="w2"))
    scene.do(end(cost_usd_micros=7))
    waiting = scene.do(seal())
    assert (waiting.open_attempts, waiting.leaf_indices) == (1, ())
    assert scene.last()["type"] == "attempt_ended"
    with pytest.raises(PodiumError) as caught:
        scene.log.apply(begin("att_3"))
    assert caught.value.reason == "RUN_SEALED"
    applied = scene.do(seal(settle_open=True))
    assert scene.last()["facts"]["unknown_attempts"] == ["att_2"]
    assert (applied.cost_usd_micros, scene.reserved(), scene.settled()) == (107, 0, 107)


def test_a_seal_after_the_last_end_has_nothing_unknown(scene: LogScene) -> None:
    scene.do(open_run(), begin(), seal(), end())
    scene.do(seal(settle_open=True))
    assert scene.last()["facts"]["unknown_attempts"] == []
    assert (scene.reserved(), scene.settled()) == (0, 40)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_late_end_is_late_and_settles_the_difference(scene: LogScene, restarted: bool) -> None:
    scene.do(open_run(), begin(), seal(settle_open=True))
    assert (scene.reserved(), scene.settled()) == (0, 100)
    if restarted:
        scene.restart()
    applied = scene.do(end(cost_usd_micros=30))
    record = scene.last()
    assert (record["type"], record["run_seq"], record["run_id"]) == ("attempt_late", None, "run_1")
    assert (applied.late, scene.settled()) == (True, 30)
    with pytest.raises(PodiumError) as caught:
        scene.do(end(event=event("again", "router"), contents=()))
    assert caught.value.reason == "ATTEMPT_ENDED"


def test_an_end_that_was_in_time_is_not_late_when_repeated_after_the_seal(scene: LogScene) -> None:
    scene.do(open_run(), begin(), end(), seal())
    assert scene.do(end()).late is False
    scene.restart()
    assert scene.do(end()).late is False


def test_a_run_is_sealed_once(scene: LogScene) -> None:
    scene.do(open_run(), seal(outcome=RunOutcome.CANCELLED))
    with pytest.raises(PodiumError) as caught:
        scene.do(seal(event=event("another")))
    assert (caught.value.code, caught.value.metadata) == (Code.CONFLICT, {"outcome": "cancelled"})


def test_a_read_refers_to_the_run_and_counts_for_the_tenant(scene: LogScene) -> None:
    scene.do(open_run(), seal(), RecordRead(event("read", "audit"), "run_1", "key2", "export", True))
    record = scene.last()
    assert (record["type"], record["run_seq"], record["tenant_seq"]) == ("read", None, 3)
    assert record["facts"] == {"action": "export", "principal_id": "key2", "with_content": True}


EVERYTHING: list[Command] = [
    open_run(plan=None),
    append_plan(plan_of()),
    put(text_part("more")),
    note(a="b"),
    begin(),
    end(),
    seal(),
]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("at", range(len(EVERYTHING)), ids=[type(each).__name__ for each in EVERYTHING])
def test_a_repeated_event_gives_the_same_answer_and_no_record(
    scene: LogScene, at: int, restarted: bool
) -> None:
    first = scene.do(*EVERYTHING[: at + 1])
    stored = len(scene.store.leaf_rows)
    if restarted:
        scene.restart()
    again = scene.do(EVERYTHING[at])
    assert again == first
    assert len(scene.store.leaf_rows) == stored


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("at", range(len(EVERYTHING)), ids=[type(each).__name__ for each in EVERYTHING])
def test_an_event_id_with_another_request_is_a_conflict(scene: LogScene, at: int, restarted: bool) -> None:
    scene.do(*EVERYTHING[: at + 1])
    if restarted:
        scene.restart()
    command = EVERYTHING[at]
    other: Any = replace(command, event=replace(command.event, digest=bytes(32)))
    with pytest.raises(PodiumError) as caught:
        scene.do(other)
    assert (caught.value.code, caught.value.reason) == (Code.CONFLICT, "EVENT_REUSED")


def test_an_event_id_of_another_run_is_a_conflict(scene: LogScene) -> None:
    scene.do(open_run("run_1"), open_run("run_2"), note("run_1"))
    stolen = replace(note("run_2"), event=replace(note("run_1").event, digest=bytes(32)))
    with pytest.raises(PodiumError, match="another request"):
        scene.do(stolen)


def test_a_repeat_within_one_batch_waits_for_the_same_commit(scene: LogScene) -> None:
    first, again = scene.log.apply(open_run()), scene.log.apply(open_run())
    assert first.checkpoint == again.checkpoint == ""
    scene.log.commit()
    assert first == again
    assert first.checkpoint


def test_a_permit_is_repeated_only_while_the_attempt_is_open(scene: LogScene) -> None:
    scene.do(open_run(), begin())
    assert scene.do(begin()).leaf_indices == (2,)
    scene.do(end())
    with pytest.raises(PodiumError) as caught:
        scene.do(begin())
    assert (caught.value.code, caught.value.reason) == (Code.CONFLICT, "ATTEMPT_ENDED")


def test_a_permit_of_a_lapsed_or_sealed_run_is_not_repeated(scene: LogScene) -> None:
    scene.do(open_run(), begin())
    scene.clock.advance(15)
    with pytest.raises(PodiumError, match="lapsed"):
        scene.do(begin())
    scene.do(seal(settle_open=True))
    with pytest.raises(PodiumError, match="permit is used up"):
        scene.do(begin())
