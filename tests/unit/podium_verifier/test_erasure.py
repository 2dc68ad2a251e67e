"""What the verifier says of erased runs: under which leaf, and what would be no erasure."""

import pytest

from podium_verifier.faults import ExitCode, Fault
from podium_verifier.summary import render
from podium_verifier.verify import Verified, verify_export
from tests.unit.podium_verifier.exported_run import ExportedRun, three_step_run

ORDER = {"principal_id": "officer", "basis": "subject_request", "case_id": "C-1"}


def begun(run: ExportedRun) -> int:
    run.add("erasure_begun", dict(ORDER), in_run=False)
    return 2 * len(run.records)  # strangers' leaves stand between


def erased(run: ExportedRun, begun_index: int) -> None:
    facts = {"begun_index": begun_index, "part_count": 3, "key_is_gone": True, "key_backup_days": 7}
    run.add("erased", {**ORDER, **facts}, in_run=False)


def test_an_erased_run_verifies_and_says_under_which_leaf() -> None:
    run = three_step_run()
    run.add("erasure_refused", {**ORDER, "hold_ids": ["hold_1"]}, in_run=False)
    erased(run, index := begun(run))
    result = verify_export(run.export(with_content=False))
    assert isinstance(result, Verified)
    text = render(result)
    assert f"erased     under leaf {index + 2}, subject_request, by officer" in text
    assert f"erasure refused by leaf {index - 2}, under hold_1" in text
    assert f"Content erased under leaf {index + 2}" in text
    assert result.exit_code is ExitCode.ERASED


def test_an_erasure_under_way_is_told() -> None:
    run = three_step_run()
    index = begun(run)
    result = verify_export(run.export(with_content=False))
    assert isinstance(result, Verified)
    assert f"content is being erased since leaf {index}" in render(result)


def test_content_that_is_said_to_be_erased_is_no_proof() -> None:
    run = three_step_run()
    erased(run, begun(run))
    result = verify_export(run.export())
    assert isinstance(result, Fault)
    assert (result.code, "says that it is erased" in result.message) == (ExitCode.CONTENT, True)


@pytest.mark.parametrize("fault", ["undecided", "twice", "decided twice", "content after"])
def test_an_erasure_out_of_order_is_named(fault: str) -> None:
    run = three_step_run()
    if fault == "undecided":
        erased(run, 0)
    else:
        index = begun(run)
        if fault == "decided twice":
            begun(run)
        elif fault == "content after":
            run.add("note", {"kind": "remark", "facts": {}}, ("late", "remark", b"x"), in_run=False)
        else:
            erased(run, index)
            erased(run, index)
    result = verify_export(run.export(with_content=False))
    assert isinstance(result, Fault)
    assert result.code is ExitCode.ORDER
