"""What the intake needs from any store of spans, held against SQLite and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from podium_audit.rows.spans import SpanRow, SpanStore
from podium_audit.stores.spans import SqliteSpans


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SpanStore]:
    made: SpanStore
    if request.param == "sqlite":
        made = SqliteSpans(tmp_path / "spans.db", busy_s=5)
    else:
        url = request.getfixturevalue("database_url")
        from podium_audit.stores.postgres.log_schema import WRITER
        from podium_audit.stores.postgres.spans import PostgresSpans
        from tests.fakes.shared_database import shared_database

        made = PostgresSpans(shared_database(url).session(WRITER))
    made.open()
    yield made
    made.close()


def row(span_id: str, trace_id: str = "t1", *, run: str = "", tenant: str = "", start: int = 1) -> SpanRow:
    facts = '{"gen_ai.request.model":"m"}'
    return SpanRow(trace_id, span_id, "", tenant, run, "router", "chat", 3, start, start + 1, True, facts)


def ids(store: SpanStore, run: str = "run_1", tenant: str = "acme", limit: int = 10) -> list[str]:
    return [found.span_id for found in store.of_run(run, tenant, limit)]


def test_what_was_kept_comes_back_whole_and_by_start(store: SpanStore) -> None:
    first, second = row("b", run="run_1", start=5), row("a", start=9)
    store.add([second, first])
    assert store.of_run("run_1", "acme", 10) == [first, second]
    assert ids(store, limit=1) == ["b"]


def test_a_span_that_is_sent_twice_stays_as_it_was(store: SpanStore) -> None:
    store.add([row("a", run="run_1"), row("a", run="run_1", start=7)])
    store.add([row("a", run="run_2")])
    assert [found.started_ns for found in store.of_run("run_1", "acme", 10)] == [1]


def test_another_tenants_spans_neither_show_nor_lead_to_a_trace(store: SpanStore) -> None:
    store.add([row("a", run="run_1"), row("b", tenant="other"), row("c", tenant="acme")])
    store.add([row("d", "t2", run="run_1", tenant="other"), row("e", "t2")])
    assert sorted(ids(store)) == ["a", "c"]
    assert ids(store, run="") == []


def test_old_spans_go_a_few_at_a_time(store: SpanStore) -> None:
    store.add([row(name, run="run_1", start=start) for name, start in (("a", 1), ("b", 2), ("c", 90))])
    assert [store.sweep(50, 1), store.sweep(50, 1), store.sweep(50, 1)] == [1, 1, 0]
    assert ids(store) == ["c"]


def test_any_text_can_be_kept_and_none_is_a_query(store: SpanStore) -> None:
    hostile = "x'; DROP TABLE spans; --\x00\ud7ff\U0001f600"
    store.add([row("a", run=hostile)._replace(name=hostile)])
    [found] = store.of_run(hostile.replace("\x00", ""), "acme", 10) or store.of_run(hostile, "acme", 10)
    assert found.name.replace("\x00", "") == hostile.replace("\x00", "")
