import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_verifier import ExitCode, Fault, Verified, verify_export
from tests.unit.podium_verifier.exported_run import (
    ExportedRun,
    Record,
    Signer,
    b64,
    begin,
    canonical,
    end_attempt,
    finish,
    opened_facts,
    patient,
    plan_facts,
    seal,
    step,
    three_step_run,
)

VKEY = Signer().vkey
WHOLE = three_step_run().export()


def fault_of(data: bytes, key: str | None = VKEY) -> Fault:
    result = verify_export(data, key)
    assert isinstance(result, Fault), "the bent export passed"
    return result


def test_a_three_step_export_verifies() -> None:
    result = verify_export(WHOLE, VKEY)
    assert isinstance(result, Verified)
    assert result.key_is_pinned
    assert [leaf.type for leaf in result.leaves[:2]] == ["opened", "plan"]
    assert isinstance(verify_export(WHOLE), Verified)
    assert isinstance(verify_export(three_step_run().export(with_content=False), VKEY), Verified)


def test_flipping_any_single_byte_fails_and_names_a_place() -> None:
    for at in range(len(WHOLE)):
        bent = bytearray(WHOLE)
        bent[at] ^= 1
        fault = fault_of(bytes(bent))
        assert fault.line is not None, f"byte {at}: {fault}"
        touched = WHOLE.count(b"\n", 0, at) + 1
        if touched > 1 and WHOLE[at] != ord("\n"):  # the header's claims show where they meet the log's
            assert fault.line == touched, f"byte {at}: {fault}"


@patient
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_any_other_change_of_a_byte_fails_too(at: int, mask: int) -> None:
    fault_of(WHOLE[:at] + bytes([WHOLE[at] ^ mask]) + WHOLE[at + 1 :])
    fault_of(WHOLE[:at] + WHOLE[at + 1 :])
    fault_of(WHOLE[:at] + bytes([mask]) + WHOLE[at:])
    fault_of(WHOLE[:at])


@patient
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")))
def test_no_input_makes_it_raise(data: bytes) -> None:
    fault_of(data)
    fault_of(data + b"\n" + WHOLE)
    fault_of(WHOLE + data + b"\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**53 - 1) | st.text(max_size=8) | st.just("att_0"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abtype", max_size=4), inner, max_size=3)
    ),
    max_leaves=4,
)


@patient
@given(st.data())
def test_no_record_that_a_log_could_sign_makes_it_raise(data: st.DataObject) -> None:
    """Any field of any record holds anything, under a right proof and signature."""
    run = three_step_run()
    record = run.records[data.draw(st.integers(0, len(run.records) - 1))]
    targets = [record, record["facts"], *record["contents"]]
    for _ in range(data.draw(st.integers(1, 3))):
        target = targets[data.draw(st.integers(0, len(targets) - 1))]
        target[data.draw(st.sampled_from([*target, "strange"]))] = data.draw(JSON)
    assert isinstance(verify_export(run.export(with_content=False), VKEY), Fault | Verified)


def test_the_log_key_can_be_pinned() -> None:
    forged = three_step_run()
    forged.signer = Signer(seed=9)
    assert isinstance(verify_export(forged.export()), Verified), "consistent in itself"
    assert fault_of(forged.export()).code is ExitCode.CHECKPOINT
    assert fault_of(WHOLE, "nonsense").code is ExitCode.USAGE

    elsewhere = three_step_run()
    elsewhere.signer = Signer(name="elsewhere.example")
    swapped = elsewhere.export(edit=lambda lines: lines[0].update(vkey=VKEY))
    assert fault_of(swapped).code is ExitCode.CHECKPOINT


def replace_in_leaf(number: int, old: str, new: str) -> bytes:
    def edit(lines: list[Record]) -> None:
        assert old in lines[2 + number]["leaf"]
        lines[2 + number]["leaf"] = lines[2 + number]["leaf"].replace(old, new)

    return three_step_run().export(edit=edit)


def test_a_changed_leaf_is_named() -> None:
    fault = fault_of(replace_in_leaf(3, "demo-text", "demo-next"))
    assert (fault.code, fault.line, fault.leaf_index) == (ExitCode.NOT_IN_LOG, 6, 8)
    assert "line 6, leaf 8" in str(fault)
    fault = fault_of(replace_in_leaf(0, '"v":1', '"v":2'))
    assert (fault.code, fault.leaf_index) == (ExitCode.NOT_IN_LOG, 2)


def edited(edit: Callable[[list[Record]], object]) -> Fault:
    return fault_of(three_step_run().export(edit=edit))


def test_content_is_held_against_its_commitment() -> None:
    content = next(
        at for at, line in enumerate(map(json.loads, WHOLE.splitlines())) if line["line"] == "content"
    )
    fault = edited(lambda lines: lines[content].update(data=b64(b"What is 6*8 in Roman?")))
    assert (fault.code, fault.line, fault.leaf_index) == (ExitCode.CONTENT, content + 1, 2)
    assert edited(lambda lines: lines[content].update(salt=b64(bytes(32)))).code is ExitCode.CONTENT
    assert edited(lambda lines: lines[content].update(salt=b64(bytes(31)))).code is ExitCode.CONTENT
    assert edited(lambda lines: lines[content].update(index=3)).code is ExitCode.CONTENT
    assert edited(lambda lines: lines.pop(content)).code is ExitCode.CONTENT
    assert edited(lambda lines: lines.pop()).code is ExitCode.CONTENT, "a body line is dropped"
    assert edited(lambda lines: lines[-1].update(salt=b64(bytes(32)))).code is ExitCode.CONTENT
    assert edited(lambda lines: lines.append(lines[-1])).code is ExitCode.CONTENT
    assert edited(lambda lines: lines[0].update(with_content=False)).code is ExitCode.MALFORMED


def test_a_body_is_joined_from_parts_that_came_before() -> None:
    def bent(edit: Callable[[Record], None]) -> ExitCode:
        run = three_step_run()
        edit(run.of_type("attempt_begun")[0]["facts"]["body"])
        return fault_of(run.export()).code

    assert bent(lambda body: body["layout"].pop()) is ExitCode.CONTENT
    assert bent(lambda body: body["layout"].reverse()) is ExitCode.CONTENT
    assert bent(lambda body: body["layout"][1].update(part_id="answer")) is ExitCode.CONTENT
    assert bent(lambda body: body["layout"][1].update(part_id="nowhere")) is ExitCode.CONTENT
    assert bent(lambda body: body["layout"][1].update(to=10_000)) is ExitCode.CONTENT
    assert bent(lambda body: body.update(length=1)) is ExitCode.CONTENT


def bend_lines(edit: Callable[[list[bytes]], object]) -> Fault:
    lines = WHOLE.splitlines(keepends=True)
    edit(lines)
    return fault_of(b"".join(lines))


def test_the_lines_stand_in_one_order() -> None:
    assert fault_of(b"").code is ExitCode.MALFORMED
    assert bend_lines(lambda lines: lines.insert(0, lines.pop(1))).line == 1
    assert bend_lines(lambda lines: lines.insert(2, lines.pop(3))).line == 4, "leaves swapped"
    assert bend_lines(lambda lines: lines.insert(1, lines[1])).line == 3, "checkpoint twice"
    assert bend_lines(lambda lines: lines.append(lines[-1])).line == WHOLE.count(b"\n") + 1
    assert bend_lines(lambda lines: lines.insert(-1, lines[2])).code is ExitCode.MALFORMED
    assert bend_lines(lambda lines: lines.pop()).code is ExitCode.TAIL, "the end is missing"
    assert bend_lines(lambda lines: lines.pop(3)).code is ExitCode.MALFORMED, "the count is wrong"
    no_leaf = [
        line for line in map(json.loads, WHOLE.splitlines()) if line["line"] in ("header", "checkpoint")
    ]
    assert fault_of(finish(no_leaf)).code is ExitCode.MALFORMED


def test_the_digest_is_the_last_thing_that_can_be_wrong() -> None:
    end = json.loads(WHOLE.splitlines()[-1])
    end["sha256"] = "0" * 64
    fault = bend_lines(lambda lines: lines.__setitem__(-1, canonical(end) + b"\n"))
    assert (fault.code, fault.line) == (ExitCode.MALFORMED, end["lines"])


def test_a_record_of_another_form_is_refused() -> None:
    edits: list[Callable[[Record], object]] = [
        lambda record: record.update(strange=1),
        lambda record: record.pop("service"),
        lambda record: record.update(v=True),
        lambda record: record.update(type="strange"),
        lambda record: record["facts"].update(strange=1),
        lambda record: record["facts"].pop("caps"),
        lambda record: record["facts"].update(has_plan=1),
        lambda record: record["contents"][0].update(commitment="AB" * 32),
        lambda record: record.update(tenant_seq=-1),
    ]
    for edit in edits:
        run = three_step_run()
        edit(run.records[0])
        fault = fault_of(run.export(with_content=False))
        assert (fault.code, fault.line, fault.leaf_index) == (ExitCode.MALFORMED, 3, 2)


def order_fault(edit: Callable[[ExportedRun], object]) -> str:
    """Bend a run that a cheating log then signs; return what the verifier says of it."""
    run = three_step_run()
    edit(run)
    fault = fault_of(run.export(with_content=False))
    assert fault.code in (ExitCode.ORDER, ExitCode.TAIL, ExitCode.PERMIT), fault
    assert fault.line is not None
    return fault.message


def drop(kind: str, *, close_gap: bool = False) -> Callable[[ExportedRun], None]:
    def edit(run: ExportedRun) -> None:
        run.records.remove(run.of_type(kind)[0])
        if close_gap:
            run.renumber()

    return edit


def test_a_missing_record_shows() -> None:
    for kind in ("opened", "plan", "attempt_begun", "attempt_ended"):
        assert "missing" in order_fault(drop(kind))
        order_fault(drop(kind, close_gap=True))
    assert "seal is missing" in order_fault(drop("sealed"))
    assert "counts" in order_fault(lambda run: run.records[-1]["facts"].update(record_count=8))
    assert "counts" in order_fault(lambda run: run.records[-1]["facts"].update(attempt_count=4))
    assert "millionths" in order_fault(lambda run: run.records[-1]["facts"].update(cost_usd_micros=0))


def test_names_agree_everywhere() -> None:
    assert "run" in order_fault(lambda run: run.records[3].update(run_id="run_02"))
    assert "tenant" in order_fault(lambda run: run.records[3].update(tenant_id="umbrella"))
    assert "number within the tenant" in order_fault(lambda run: run.records[3].update(tenant_seq=1))
    header = three_step_run()
    header.run_id = "run_03"
    assert fault_of(header.export()).code is ExitCode.ORDER


def test_an_attempt_needs_an_earlier_decision() -> None:
    def first(run: ExportedRun) -> Record:
        return run.of_type("attempt_begun")[0]["facts"]  # type: ignore[no-any-return]

    def plan_late(run: ExportedRun) -> None:
        run.records.insert(2, run.records.pop(1))
        run.records[0]["facts"]["has_plan"] = False
        for at, record in enumerate(run.records):
            record["tenant_seq"] = at
        run.renumber()

    assert "before the plan" in order_fault(plan_late)
    assert "allows" in order_fault(lambda run: run.records[0]["facts"]["verdicts"][0].update(allowed=False))
    assert "allows" in order_fault(lambda run: first(run).update(worker_id="demo-units"))
    assert "does not give" in order_fault(lambda run: first(run).update(worker_id="demo-text"))
    assert "no step" in order_fault(lambda run: first(run).update(step_index=3))
    assert "before the plan" in order_fault(lambda run: first(run).update(round=1))
    assert "no verdict" in order_fault(
        lambda run: run.records[0]["facts"]["verdicts"].append(
            {"worker_id": "demo-math", "allowed": False, "rule_id": "late.doubt"}
        )
    )
    assert "sees more" in order_fault(lambda run: first(run).update(seen_steps=[0]))
    assert "sees more" in order_fault(lambda run: first(run).update(sees_previous_round=True))
    assert "begins twice" in order_fault(lambda run: first(run).update(attempt_id="att_1"))


def test_a_step_sees_only_what_was_finished_and_granted() -> None:
    def last(run: ExportedRun) -> Record:
        return run.of_type("attempt_begun")[-1]["facts"]  # type: ignore[no-any-return]

    def begin_early(run: ExportedRun) -> None:
        run.records.insert(4, run.records.pop(6))
        for at, record in enumerate(run.records):
            record["tenant_seq"] = at
        run.renumber()

    assert "has not ended" in order_fault(begin_early)
    stolen = {"part_id": "att_1/output", "from": 0, "to": 4}
    assert "may not see" in order_fault(
        lambda run: (last(run).update(seen_steps=[0]), last(run)["body"]["layout"].append(stolen))
    )


def test_every_attempt_ends_or_is_named_unknown() -> None:
    def end(run: ExportedRun) -> Record:
        return run.of_type("attempt_ended")[0]["facts"]  # type: ignore[no-any-return]

    assert "ends twice" in order_fault(lambda run: end(run).update(attempt_id="att_1"))
    assert "without having begun" in order_fault(lambda run: end(run).update(attempt_id="att_9"))
    assert "unknown" in order_fault(lambda run: run.records[-1]["facts"].update(unknown_attempts=["att_0"]))
    assert "after the seal" in order_fault(lambda run: end_attempt(run, "att_0"))
    assert "late" in order_fault(lambda run: end_attempt(run, "att_0", late=True))
    assert "number" in order_fault(lambda run: run.records[3].update(run_seq=None))


def abandoned_run() -> ExportedRun:
    run = ExportedRun()
    run.add("opened", opened_facts(), ("request", "question", b"?"))
    run.add("plan", plan_facts([step("demo-math", fallback="demo-text")]))
    begin(run, "att_0", 0, "demo-text", [])
    run.add("read", {"principal_id": "key_2"}, in_run=False)
    seal(run, unknown=("att_0",), outcome="abandoned")
    return run


def test_a_run_may_be_abandoned_read_and_ended_late() -> None:
    run = abandoned_run()
    assert isinstance(verify_export(run.export(), VKEY), Verified)
    end_attempt(run, "att_0", ("late", "output", b"too late"), late=True)
    run.add("read", {"principal_id": "key_2"}, in_run=False)
    assert isinstance(verify_export(run.export(), VKEY), Verified)


def test_a_refused_run_verifies() -> None:
    run = ExportedRun()
    run.add("opened", {**opened_facts(), "has_plan": False, "refusal_reason": "NO_ELIGIBLE_WORKER"})
    seal(run, outcome="refused")
    assert isinstance(verify_export(run.export(), VKEY), Verified)


def test_a_calibration_needs_no_plan_and_then_sees_nothing() -> None:
    run = ExportedRun()
    run.add(
        "opened", {**opened_facts(), "kind": "calibrate", "has_plan": False}, ("request", "question", b"?")
    )
    facts = begin(run, "att_0", 0, "demo-math", [])["facts"]
    end_attempt(run, "att_0")
    seal(run)
    assert isinstance(verify_export(run.export(), VKEY), Verified)
    facts["seen_steps"] = [1]
    assert "nothing to see" in fault_of(run.export()).message


@pytest.mark.parametrize("number", [0, 1])
def test_a_second_round_needs_its_own_plan(number: int) -> None:
    run = ExportedRun()
    run.add("opened", opened_facts(), ("request", "question", b"?"))
    run.add("plan", plan_facts([step("demo-math")]))
    run.add("plan", plan_facts([{**step("demo-text"), "sees_previous_round": True}], number))
    begin(run, "att_0", 0, "demo-text", [])["facts"].update(round=1, sees_previous_round=True)
    end_attempt(run, "att_0")
    seal(run)
    assert isinstance(verify_export(run.export(), VKEY), Verified if number else Fault)
