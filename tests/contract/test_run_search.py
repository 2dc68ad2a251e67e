"""Searching runs, held against the fake, SQLite and PostgreSQL: every condition, in every company."""

import json
from pathlib import Path
from sqlite3 import connect

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium_audit.ports import Batch, LeafRow, LogStore, SealRow
from podium_audit.rows.run_search import Facet, FacetRow, RunSearch
from podium_audit.stores.sqlite import SqliteStore
from tests.contract.test_audit_store import event, leaf, run_row, store
from tests.fakes.audit_store import FakeLogStore

__all__ = ["store"]

HOSTILE = "'; DROP TABLE runs; -- \" {tenant} %(tenant)s :tenant ?"


def filled(store: LogStore) -> LogStore:
    rows = [
        run_row(1),
        run_row(2, principal="key2"),
        run_row(3)._replace(kind="embed", opened_us=5_000),
        run_row(4, tenant="other"),
        run_row(5),
    ]
    store.commit(
        Batch(
            runs=rows,
            leaves=[leaf(row.run_no - 1, row.run_no) for row in rows],
            events=[event(f"evt_{row.run_no}", row.run_no - 1) for row in rows],
        )
    )
    facets = [
        (1, Facet.WORKER, "a"),
        (1, Facet.WORKER, "b"),
        (2, Facet.WORKER, "b"),
        (2, Facet.RULE, HOSTILE),
    ]
    facets += [(3, Facet.WORKER, "a"), (3, Facet.OUTCOME, "failed")]
    store.commit(
        Batch(
            leaves=[leaf(4 + number, number) for number in (1, 2, 3, 4)],
            events=[event(f"seal_{number}", 4 + number) for number in (1, 2, 3, 4)],
            seals=[SealRow(number, 9_000, "answered", number * 10, 1) for number in (1, 2, 3, 4)],
            facets=[FacetRow("acme", facet, value, number) for number, facet, value in facets]
            + [FacetRow("other", Facet.WORKER, "a", 4)],
        )
    )
    return store


def found(store: LogStore, search: RunSearch) -> list[int]:
    numbers = [row.run_no for row, _ in store.find_runs(search, before_no=None, limit=9)]
    assert store.count_runs(search) == len(numbers)
    return numbers


@pytest.mark.parametrize(
    ("search", "numbers"),
    [
        (RunSearch("acme"), [5, 3, 2, 1]),
        (RunSearch("acme", facets=((Facet.WORKER, "b"),)), [2, 1]),
        (RunSearch("acme", facets=((Facet.WORKER, "a"), (Facet.WORKER, "b"))), [1]),
        (RunSearch("acme", "key1", facets=((Facet.WORKER, "b"),)), [1]),
        (RunSearch("acme", facets=((Facet.RULE, HOSTILE),)), [2]),
        (RunSearch("acme", facets=((Facet.OUTCOME, "failed"), (Facet.WORKER, "a"))), [3]),
        (RunSearch("acme", facets=((Facet.OUTCOME, "a"),)), []),
        (RunSearch("acme", kind="embed"), [3]),
        (RunSearch("acme", opened_from_us=1_002, opened_before_us=5_000), [5, 2]),
        (RunSearch("acme", least_cost_usd_micros=20), [3, 2]),
        (RunSearch("acme", most_cost_usd_micros=20, facets=((Facet.WORKER, "b"),)), [2, 1]),
        (RunSearch("acme", is_open=True), [5]),
        (RunSearch("acme", is_open=False), [3, 2, 1]),
        (RunSearch(HOSTILE, HOSTILE, kind=HOSTILE), []),
        (RunSearch("other"), [4]),
    ],
)
def test_each_condition_and_their_company(store: LogStore, search: RunSearch, numbers: list[int]) -> None:
    assert found(filled(store), search) == numbers


def test_pages_follow_each_other(store: LogStore) -> None:
    filled(store)
    with_b = RunSearch("acme", facets=((Facet.WORKER, "b"),))
    [(first, _)] = store.find_runs(with_b, before_no=None, limit=1)
    [(second, _)] = store.find_runs(with_b, before_no=first.run_no, limit=9)
    assert (first.run_no, second.run_no) == (2, 1)


@given(
    st.lists(st.tuples(st.sampled_from(Facet), st.sampled_from(["a", "b", "failed", "x"])), max_size=4),
    st.sampled_from([None, "key1", "key2"]),
    st.sampled_from([None, 0, 1_002, 5_000]),
    st.sampled_from([None, 15]),
    st.sampled_from([None, True, False]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_every_store_finds_what_the_plain_one_finds(
    store: LogStore,
    facets: list[tuple[Facet, str]],
    principal: str | None,
    opened_from: int | None,
    least: int | None,
    is_open: bool | None,
) -> None:
    if not store.count_runs(RunSearch("acme")):
        filled(store)
    search = RunSearch("acme", principal, tuple(facets), None, opened_from, None, least, None, is_open)
    assert found(store, search) == found(filled(FakeLogStore()), search)


ATTEMPT = {"worker_id": "w1", "provider": "bedrock", "region": ""}
VERDICTS = [{"worker_id": "w1", "allowed": True, "rule_id": "default.allow"}, {"worker_id": "w2", "allowed": False,
            "rule_id": "tenant.regions.only"}]  # fmt: skip


def test_runs_of_an_older_log_can_be_searched_too(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    older = SqliteStore(file, busy_s=5)
    older.open()
    records = [("opened", {"verdicts": VERDICTS}), ("attempt_begun", ATTEMPT), ("attempt_begun", ATTEMPT)]
    leaves = [
        LeafRow(index, 1, json.dumps({"type": kind, "facts": facts}).encode())
        for index, (kind, facts) in enumerate(records)
    ]
    sealed = SealRow(1, 9_000, "answered", 5, 1)
    older.commit(Batch(runs=[run_row(1)], leaves=leaves, events=[event("evt", 0, 3)], seals=[sealed]))
    older.close()
    with connect(file) as database:
        for later in ("run_facets", "subjects"):
            database.execute(f"DROP TABLE {later}")
        database.execute("PRAGMA user_version = 6")
    newer = SqliteStore(file, busy_s=5)
    newer.open()
    known = [
        (Facet.WORKER, "w1"), (Facet.PROVIDER, "bedrock"), (Facet.RULE, "tenant.regions.only"),
        (Facet.OUTCOME, "answered"), (Facet.MODEL, "podium"),
    ]  # fmt: skip
    assert found(newer, RunSearch("acme", facets=tuple(known))) == [1]
    assert found(newer, RunSearch("acme", facets=((Facet.RULE, "default.allow"),))) == []
    newer.close()
