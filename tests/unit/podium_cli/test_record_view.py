import base64
import io
from typing import Any

from rich.console import Console

from podium_cli.record_view import RecordView
from tests.unit.podium_verifier.exported_run import end_attempt, three_step_run


def shown(page: dict[str, Any], *, with_content: bool = False) -> str:
    console = Console(file=io.StringIO(), width=140)
    for part in RecordView(page, frozenset({"demo-math"})).render(with_content=with_content):
        console.print(part)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def page() -> dict[str, Any]:
    run = three_step_run()
    contents = [{"part_id": key, "data": base64.b64encode(data).decode()} for key, data in run.parts.items()]
    return {"records": run.records, "contents": contents, "receipt": None}


def test_a_run_is_told_from_verdicts_to_receipt() -> None:
    said = shown(page())
    for words in (
        "asked by key_1 of acme, model podium",
        "demo-math [demo]",
        "client.except",
        "3 steps, source: rules",
        "sees step 0, step 1",
        "demo-numbers at 127.0.0.1",
        "12/5",
        "answered at",
        "3 attempts, $0.000021, 9 records",
        "receipt none",
    ):
        assert words in said, said
    assert "What is 6*7" not in said


def test_a_narrow_terminal_cuts_nothing() -> None:
    console = Console(file=io.StringIO(), width=80)
    for part in RecordView(page(), frozenset({"demo-math"})).render(with_content=True):
        console.print(part)
    file = console.file
    assert isinstance(file, io.StringIO)
    assert "\N{HORIZONTAL ELLIPSIS}" not in file.getvalue()


def test_content_is_shown_when_asked_for() -> None:
    said = shown(page(), with_content=True)
    assert "What is 6*7 in Roman?" in said
    assert "Do your part." in said
    missing = page()
    missing["contents"] = [{"part_id": "request", "erased": True}]
    assert "not shown to this key, or erased" in shown(missing, with_content=True)


def test_an_open_run_and_a_late_attempt_are_named_so() -> None:
    run = three_step_run()
    run.records = run.records[:3]
    assert "still open" in shown({"records": run.records})
    assert "at most $0.000100" in shown({"records": run.records})
    end_attempt(run, "att_0", late=True)
    assert "late: completed" in shown({"records": run.records})
