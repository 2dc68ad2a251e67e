"""Stops: what is stopped gets no permit, the record says who stopped it, and a restart forgets none."""

import pytest

from podium_audit.records.commands import SetStop, StopRun
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.audit_log import RUN, LogScene, begin, end, event, note, open_run, plan_of, seal


@pytest.fixture
def scene() -> LogScene:
    return LogScene()


def stop_run(run_id: str = RUN, tenant_id: str = "acme", name: str = "stop") -> StopRun:
    return StopRun(event(f"{name}.{run_id}"), run_id, tenant_id, "key1")


def set_stop(worker_id: str = "", tenant_id: str = "", *, stands: bool = True, name: str = "stop") -> SetStop:
    return SetStop(
        event(f"{name}.{worker_id}.{tenant_id}.{stands}", "cli"), tenant_id, worker_id, "ops", stands
    )


def refusal(scene: LogScene, *commands: object) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        scene.do(*commands)  # type: ignore[arg-type]
    return caught.value


def test_a_stopped_run_gets_no_permit_and_its_gateway_hears_of_it(scene: LogScene) -> None:
    scene.do(open_run())
    assert scene.log.cancelled([RUN]) == []
    scene.do(stop_run())
    assert scene.log.cancelled([RUN, "run_other"]) == [RUN]
    error = refusal(scene, begin())
    assert (error.code, error.reason) == (Code.CONFLICT, "RUN_STOPPED")
    assert scene.last()["type"] == "note"
    assert scene.last()["facts"] == {"kind": "stop", "facts": {"principal_id": "key1"}}
    assert scene.last()["run_id"] == RUN


def test_a_stopped_run_can_still_be_sealed_and_is_then_forgotten(scene: LogScene) -> None:
    scene.do(open_run(), begin(), stop_run())
    scene.do(end(), seal())
    assert scene.log.cancelled([RUN]) == []


def test_a_run_of_another_tenant_cannot_be_stopped_nor_told_from_none(scene: LogScene) -> None:
    scene.do(open_run())
    theirs, none = refusal(scene, stop_run(tenant_id="other")), refusal(scene, stop_run("run_none"))
    assert (theirs.code, theirs.reason, theirs.message) == (none.code, none.reason, none.message)
    scene.do(begin())


def test_a_run_that_has_ended_cannot_be_stopped(scene: LogScene) -> None:
    scene.do(open_run(), seal())
    assert refusal(scene, stop_run()).reason == "RUN_SEALED"


def test_nobody_stops_a_run_by_a_note(scene: LogScene) -> None:
    scene.do(open_run())
    forged = note()
    object.__setattr__(forged, "kind", "stop")
    assert refusal(scene, forged).code is Code.INVALID_REQUEST


@pytest.mark.parametrize("tenant_id", ["", "acme"])
def test_a_stopped_worker_gets_no_permit_until_it_is_cleared(scene: LogScene, tenant_id: str) -> None:
    scene.do(open_run(), set_stop("w1", tenant_id))
    error = refusal(scene, begin())
    assert (error.code, error.reason) == (Code.POLICY_DENIED, "WORKER_STOPPED")
    assert "w1" in error.message
    scene.do(set_stop("w1", tenant_id, stands=False))
    assert scene.last()["facts"]["kind"] == "stop_cleared"
    scene.do(begin())


def test_runs_with_a_stopped_worker_at_work_are_cancelled_and_no_others(scene: LogScene) -> None:
    scene.do(open_run(), open_run("run_2"), begin(), begin("att_2", "run_2"), end("att_2", "run_2"))
    scene.do(set_stop("w1"))
    assert scene.log.cancelled([RUN, "run_2"]) == [RUN]


def test_a_stop_for_one_tenant_leaves_the_others_alone(scene: LogScene) -> None:
    scene.do(open_run(), open_run("run_2", tenant_id="other"))
    scene.do(set_stop("", "acme"))
    assert scene.log.cancelled([RUN, "run_2"]) == [RUN]
    assert refusal(scene, begin()).reason == "EVERYTHING_STOPPED"
    scene.do(begin("att_2", "run_2"))


def test_everything_stops_and_goes_on(scene: LogScene) -> None:
    scene.do(open_run(), begin(), set_stop())
    assert scene.log.cancelled([RUN]) == [RUN]
    scene.do(open_run("run_2"))
    assert refusal(scene, begin("att_2", "run_2")).reason == "EVERYTHING_STOPPED"
    assert refusal(scene, begin()).reason == "EVERYTHING_STOPPED"  # a repeated call is no way round it
    scene.do(set_stop(stands=False))
    scene.do(begin("att_2", "run_2"))


def test_a_stop_that_does_not_stand_cannot_be_cleared(scene: LogScene) -> None:
    assert refusal(scene, set_stop("w1", stands=False)).reason == "STOP_UNKNOWN"


def test_stops_outlive_a_restart(scene: LogScene) -> None:
    scene.do(open_run(), open_run("run_2", plan=plan_of()), stop_run(), set_stop("w2"))
    scene.restart()
    assert scene.log.cancelled([RUN, "run_2"]) == [RUN]
    assert refusal(scene, begin()).reason == "RUN_STOPPED"
    assert set(scene.log.stops) == {("", "w2")}


def test_a_stop_that_could_not_be_committed_stops_nothing(scene: LogScene) -> None:
    scene.do(open_run())
    scene.log.apply(set_stop())
    scene.store.failures = 1
    with pytest.raises(Exception, match="no room left"):
        scene.log.commit()
    scene.log.roll_back()
    scene.log.load()
    assert scene.log.cancelled([RUN]) == []
    scene.do(begin())


def test_repeating_a_stop_is_one_record(scene: LogScene) -> None:
    scene.do(open_run(), stop_run(), set_stop("w1"))
    count = len(scene.store.leaf_rows)
    first = scene.do(stop_run())
    scene.do(set_stop("w1"))
    assert len(scene.store.leaf_rows) == count
    assert first.leaf_indices == (count - 2,)
