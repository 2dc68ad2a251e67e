"""Leaves about the log itself, found again on every store."""

from pathlib import Path

import pytest

from podium_audit.ports import Batch, CheckpointRow, EventRow, LeafRow, LogStore, RunRow
from podium_audit.records.shelves import shelf_of
from podium_audit.stores.postgres.log_store import Database, PostgresStore
from podium_audit.stores.sqlite import SqliteStore
from tests.fakes.audit_store import FakeLogStore

SHELF = shelf_of(1_000)


def opened(kind: str, request: pytest.FixtureRequest, folder: Path) -> LogStore:
    store: LogStore
    if kind == "fake":
        store = FakeLogStore()
    elif kind == "sqlite":
        store = SqliteStore(folder / "log.db", busy_s=0.1)
    else:
        store = PostgresStore(Database(request.getfixturevalue("database_url"), lock_s=0.1))
    store.open()
    return store


@pytest.mark.parametrize("kind", ["fake", "sqlite", "postgres"])
def test_leaves_about_the_log_itself_are_found(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store = opened(kind, request, tmp_path)
    assert store.history() == []
    store.begin()
    store.commit(
        Batch(
            leaves=[LeafRow(at, None, b"leaf %d" % at, "", SHELF) for at in range(4)],
            events=[
                EventRow(event_id, b"." * 32, first, 1)
                for first, event_id in enumerate(
                    ("evt", "audit.history.1", "audit.histories", "audit.history.3")
                )
            ],
            checkpoint=CheckpointRow(4, "note"),
        )
    )
    assert store.history() == [(1, b"leaf 1"), (3, b"leaf 3")]
    store.close()


@pytest.mark.parametrize("kind", ["fake", "sqlite", "postgres"])
def test_a_tenants_leaves_are_found_without_anybody_elses(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store = opened(kind, request, tmp_path)
    tenants = ("acme", "other", "", "acme", "acme")
    run = RunRow(1, "run_1", "acme", "key1", "chat", "podium", 1, None, 1_000)
    data = [b'{"at":%d,"tenant_id":"%s"}' % (at, name.encode()) for at, name in enumerate(tenants)]
    store.begin()
    store.commit(
        Batch(
            runs=[run],
            leaves=[
                LeafRow(at, 1 if at == 3 else None, data[at], name, SHELF) for at, name in enumerate(tenants)
            ],
            events=[EventRow(f"evt_{at}", b"." * 32, at, 1) for at in range(5)],
            checkpoint=CheckpointRow(5, "note"),
        )
    )
    assert store.tenant_leaves("acme", 0, 9) == [(0, data[0]), (3, data[3]), (4, data[4])]
    assert store.tenant_leaves("acme", 1, 4) == [(3, data[3])]
    assert store.tenant_leaves("other", 0, 9) == [(1, data[1])]
    assert store.tenant_leaves("nobody", 0, 9) == []
    store.close()
