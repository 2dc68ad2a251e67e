"""Which spans of a trace belong to a run: a trace may hold runs of others."""

from podium_audit.intake.waterfall import waterfall
from podium_audit.rows.spans import SpanRow


def row(span_id: str, parent: str = "", *, run: str = "", tenant: str = "", start: int = 1) -> SpanRow:
    return SpanRow("t", span_id, parent, tenant, run, "gateway", "chat", 1, start, start + 1_000, False, "{}")


def shown(*rows: SpanRow) -> list[str]:
    return [span["span_id"] for span in waterfall(rows, "run_1")]


def test_a_runs_spans_with_what_is_above_and_below_them() -> None:
    rows = (row("root"), row("run", "root", run="run_1"), row("record", "run"), row("stranger"))
    assert sorted(shown(*rows)) == ["record", "root", "run"]


def test_another_run_of_the_same_trace_stays_hidden_with_all_below_it() -> None:
    rows = (row("a", run="run_1"), row("b", run="run_2"), row("c", "b"), row("d", "b", run="run_1"))
    assert sorted(shown(*rows)) == ["a", "b", "d"], "b made d happen; c is the other run's alone"


def test_the_tenants_own_programs_show() -> None:
    assert shown(row("app", tenant="acme", start=1), row("run", "app", run="run_1", start=2)) == [
        "app",
        "run",
    ]


def test_parents_in_a_ring_end() -> None:
    assert sorted(shown(row("a", "b", run="run_1"), row("b", "a"))) == ["a", "b"]
