"""Logs that sign nonsense under a right key: what contradicts itself is not verified, and nothing raises."""

import pytest

from podium_verifier import ExitCode, Fault, Verified, verify_export
from tests.unit.podium_verifier.exported_run import (
    ExportedRun,
    Record,
    Signer,
    begin,
    commitment,
    end_attempt,
    opened_facts,
    plan_facts,
    seal,
    step,
    three_step_run,
)

VKEY = Signer().vkey


def fault_of(run: ExportedRun) -> Fault:
    result = verify_export(run.export(), VKEY)
    assert isinstance(result, Fault)
    return result


def planned_run() -> ExportedRun:
    run = ExportedRun()
    run.add("opened", opened_facts(), ("request", "question", b"6*7?"))
    run.add("plan", plan_facts([step("demo-math")]))
    return run


def test_a_late_attempt_ends_once() -> None:
    run = planned_run()
    begin(run, "att_0", 0, "demo-math", [])
    seal(run, unknown=("att_0",), outcome="cancelled")
    end_attempt(run, "att_0", late=True)
    assert isinstance(verify_export(run.export(), VKEY), Verified)
    end_attempt(run, "att_0", late=True)
    assert fault_of(run).code is ExitCode.ORDER


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"access": [0]}, "would see a step that does not come before it"),
        ({"access": [2]}, "would see a step that does not come before it"),
        ({"subtask_part_id": "nowhere"}, "does not hold the text 'nowhere'"),
    ],
    ids=["sees itself", "sees a later step", "has no text"],
)
def test_a_plan_makes_sense_by_itself(change: Record, says: str) -> None:
    run = three_step_run()
    run.of_type("plan")[0]["facts"]["steps"][0].update(change)
    fault = fault_of(run)
    assert fault.code is ExitCode.ORDER
    assert says in fault.message


def test_a_note_belongs_to_no_attempt_whatever_it_says() -> None:
    run = planned_run()
    run.add("note", {"attempt_id": []}, ("note", "note", b"zz"))
    body = begin(run, "att_0", 0, "demo-math", [])["facts"]["body"]
    body.update(length=2, layout=[{"part_id": "note", "from": 0, "to": 2}])
    body["commitment"] = commitment("att_0/body", b"zz")
    end_attempt(run, "att_0")
    seal(run)
    assert isinstance(verify_export(run.export(), VKEY), Verified)
