"""What anchoring needs from any store of anchors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from podium_audit.anchors import COSIGNATURE, TIME_STAMP, AnchorRow, AnchorStore
from podium_audit.ports import StoreError
from podium_audit.stores.anchors import SqliteAnchors
from podium_audit.stores.postgres.anchors import PostgresAnchors
from podium_audit.stores.postgres.log_schema import WRITER
from tests.fakes.shared_database import shared_database


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnchorStore]:
    made: AnchorStore
    if request.param == "sqlite":
        made = SqliteAnchors(tmp_path / "anchors.db", busy_s=1)
    else:
        made = PostgresAnchors(shared_database(request.getfixturevalue("database_url")).session(WRITER))
    made.open()
    yield made
    made.close()


def row(kind: str, name: str, size: int) -> AnchorRow:
    return AnchorRow(kind, name, size, size * 10, b"data %d" % size)


def test_only_the_newest_cosignature_of_each_witness_is_kept(store: AnchorStore) -> None:
    assert store.newest(100) == []
    for size in (3, 9, 5):
        store.put(row(COSIGNATURE, "w1", size))
    store.put(row(COSIGNATURE, "w2", 4))
    assert store.newest(100) == [row(COSIGNATURE, "w1", 9), row(COSIGNATURE, "w2", 4)]
    assert store.newest(4) == [row(COSIGNATURE, "w2", 4)]
    store.put(row(COSIGNATURE, "w1", 9)._replace(data=b"again"))
    assert store.newest(9)[0].data == b"again"


def test_each_time_stamp_is_kept_since_the_first_proves_most(store: AnchorStore) -> None:
    for size in (3, 9, 20):
        store.put(row(TIME_STAMP, "tsa", size))
    assert store.newest(100) == [row(TIME_STAMP, "tsa", 20)]
    assert store.newest(19) == [row(TIME_STAMP, "tsa", 9)]
    assert store.first_over(2) == [row(TIME_STAMP, "tsa", 3)]
    assert store.first_over(3) == [row(TIME_STAMP, "tsa", 9)]
    assert store.first_over(20) == []


def test_a_store_that_is_opened_again_still_knows(store: AnchorStore) -> None:
    store.put(row(TIME_STAMP, "tsa", 3))
    store.open()
    assert store.newest(3) == [row(TIME_STAMP, "tsa", 3)]


def test_a_closed_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not open"):
        SqliteAnchors(tmp_path / "anchors.db", busy_s=1).newest(1)
