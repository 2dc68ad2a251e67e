"""What the log needs from any store, held against the fake, SQLite and PostgreSQL."""

from collections.abc import Callable, Iterator
from pathlib import Path
from sqlite3 import connect

import pytest

from podium_audit.keys import ENCRYPTION_KEY_FILE, FileKeyWrapper, init_keys
from podium_audit.ports import (
    Batch,
    CheckpointRow,
    ContentRow,
    EventRow,
    GradeTallyRow,
    LeafRow,
    LogStore,
    RunRow,
    SealRow,
    StopRow,
    StoreError,
    TileRow,
    UseRow,
)
from podium_audit.records.shelves import shelf_of
from podium_audit.rows.custody import ControlRow, ErasureRow, KeptRun, ReadRow, SubjectRow
from podium_audit.rows.run_search import RunSearch
from podium_audit.stores.postgres.log_store import Database, PostgresStore
from podium_audit.stores.run_keys import SqliteRunKeys
from podium_audit.stores.sqlite import SqliteStore
from podium_audit.stores.sqlite_reader import SqliteReader
from podium_core.domain.record import canonical
from tests.fakes.audit_store import FakeLogStore


@pytest.fixture(params=["fake", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LogStore]:
    made: LogStore
    if request.param == "fake":
        made = FakeLogStore()
    elif request.param == "sqlite":
        made = SqliteStore(tmp_path / "log.db", busy_s=0.1)
    else:
        made = PostgresStore(Database(request.getfixturevalue("database_url"), lock_s=0.1))
    made.open()
    yield made
    made.close()


def run_row(number: int, tenant: str = "acme", principal: str = "key1", budget: int | None = None) -> RunRow:
    return RunRow(
        number, f"run_{number}", tenant, principal, "chat", "podium", number * 2, budget, 1_000 + number
    )


SHELF = shelf_of(1_000)


def leaf(index: int, run_no: int | None = None) -> LeafRow:
    return LeafRow(index, run_no, b"leaf %d" % index, "acme", SHELF)


def event(event_id: str, first: int, count: int = 1) -> EventRow:
    return EventRow(event_id, event_id.encode().ljust(32, b"."), first, count)


OLD_READ = canonical(
    {
        "type": "read",
        "run_id": "run_1",
        "tenant_id": "acme",
        "time_us": 9,
        "facts": {"action": "show", "principal_id": "key1", "with_content": True},
    }
)


def one_run(number: int = 1, first: int = 0) -> Batch:
    return Batch(
        runs=[run_row(number)],
        leaves=[leaf(first, number), leaf(first + 1, number)],
        events=[event(f"evt_{number}", first, 2)],
        contents=[ContentRow(first * 256, b"sealed bytes", "acme", SHELF)],
        tiles=[TileRow(0, 0, b"t" * 32 * (first + 2))],
        leaf_counts=[("acme", first + 2)],
        settled=[("acme", "2026-11", 70 + first)],
        checkpoint=CheckpointRow(first + 2, f"note {first + 2}"),
    )


def test_an_empty_log_knows_nothing(store: LogStore) -> None:
    assert store.checkpoint() is None
    assert store.checkpoint_over(0) is None
    assert store.tile(0, 0) == b""
    assert store.run("run_1") is None
    assert store.events(["evt"]) == {}
    assert store.known_runs(["run_1"]) == set()
    assert store.content(0) is None
    assert store.open_runs() == []
    assert (store.last_key_no(), store.next_run_no()) == (0, 1)
    assert (store.leaf_counts(), store.settled(), store.history()) == ({}, {}, [])


def test_a_batch_can_be_read_back_whole(store: LogStore) -> None:
    store.commit(one_run())
    assert store.run("run_1") == (run_row(1), None)
    assert store.open_runs() == [run_row(1)]
    assert store.leaves_of(1) == [(0, b"leaf 0"), (1, b"leaf 1")]
    assert store.leaves_of(1, below=1) == [(0, b"leaf 0")]
    assert store.leaves(1, 9) == [b"leaf 1"]
    assert store.events(["evt_1", "other"]) == {"evt_1": event("evt_1", 0, 2)}
    assert store.known_runs(["run_1", "run_2"]) == {"run_1"}
    assert store.content(0) == b"sealed bytes"
    assert store.tile(0, 0) == b"t" * 64
    assert store.checkpoint() == CheckpointRow(2, "note 2")
    assert store.leaf_counts() == {"acme": 2}
    assert store.settled() == {("acme", "2026-11"): 70}
    assert (store.last_key_no(), store.next_run_no()) == (2, 2)


def test_uses_are_added_up_by_key_day_worker_and_model(store: LogStore) -> None:
    def use(day: str, principal: str = "key1", worker: str = "w1", **sums: int) -> UseRow:
        return UseRow("acme", day, principal, worker, "m", **sums)

    store.commit(Batch(uses=[use("2026-11-02", attempts=1, input_tokens=5), use("2026-11-01", requests=1)]))
    store.commit(Batch(uses=[use("2026-11-02", attempts=2, cost_usd_micros=7), use("2026-11-02", "key2")]))
    store.commit(Batch(uses=[use("2026-11-02", unknown_attempts=1), use("2026-11-02", unknown_attempts=-1)]))
    summed = use("2026-11-02", attempts=3, input_tokens=5, cost_usd_micros=7)
    assert store.uses("acme", "key1", "2026-11-01", "2026-11-02", limit=9) == [
        use("2026-11-01", requests=1),
        summed,
    ]
    assert store.uses("acme", None, "2026-11-02", "2026-11-30", limit=9) == [
        summed,
        use("2026-11-02", "key2"),
    ]
    assert store.uses("acme", None, "2026-11-01", "2026-11-30", limit=1) == [use("2026-11-01", requests=1)]
    assert store.settled_by_key() == {("acme", "key1", "2026-11"): 7}
    assert store.uses("other", None, "2026-11-01", "2026-11-30", limit=9) == []


def test_later_batches_replace_counts_sums_and_unfinished_tiles(store: LogStore) -> None:
    store.commit(one_run())
    store.commit(one_run(2, 2))
    assert store.tile(0, 0) == b"t" * 128
    assert store.leaf_counts() == {"acme": 4}
    assert store.settled() == {("acme", "2026-11"): 72}
    assert store.checkpoint() == CheckpointRow(4, "note 4")


def test_the_oldest_checkpoint_that_covers_a_leaf_is_found(store: LogStore) -> None:
    store.commit(one_run())
    store.commit(one_run(2, 2))
    assert [store.checkpoint_over(index) for index in range(5)] == [
        *[CheckpointRow(2, "note 2")] * 2,
        *[CheckpointRow(4, "note 4")] * 2,
        None,
    ]


def test_a_sealed_run_is_open_no_more(store: LogStore) -> None:
    store.commit(one_run())
    seal = SealRow(1, 5_000, "answered", 40, 2)
    store.commit(Batch(leaves=[leaf(2, 1)], events=[event("seal", 2)], seals=[seal]))
    assert store.run("run_1") == (run_row(1), seal)
    assert store.open_runs() == []


def test_leaves_without_a_run_belong_to_nobody(store: LogStore) -> None:
    store.commit(one_run())
    store.commit(Batch(leaves=[leaf(2)], events=[event("note", 2)]))
    assert [index for index, _ in store.leaves_of(1)] == [0, 1]


def test_runs_are_listed_newest_first_by_owner(store: LogStore) -> None:
    rows = [run_row(1), run_row(2, principal="key2"), run_row(3, budget=0), run_row(4, tenant="other")]
    store.commit(Batch(runs=rows, leaves=[leaf(0, 1)], events=[event("evt", 0)]))
    everybodys, key1s = RunSearch("acme"), RunSearch("acme", "key1")
    assert [row.run_no for row, _ in store.find_runs(everybodys, before_no=None, limit=9)] == [3, 2, 1]
    assert [row.run_no for row, _ in store.find_runs(key1s, before_no=None, limit=1)] == [3]
    assert [row.run_no for row, _ in store.find_runs(key1s, before_no=3, limit=9)] == [1]
    assert (store.count_runs(everybodys), store.count_runs(RunSearch("acme", "key2"))) == (3, 1)
    found = store.run("run_3")
    assert found is not None
    assert found[0].tenant_budget_usd_micros == 0


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Batch(leaves=[leaf(1, 1)], events=[event("new", 1)]),
        lambda: Batch(leaves=[leaf(2, 1)], events=[event("evt_1", 2)]),
    ],
    ids=["a leaf that is there", "an event that is there"],
)
def test_a_batch_that_cannot_be_taken_changes_nothing(store: LogStore, bad: Callable[[], Batch]) -> None:
    store.commit(one_run())
    batch = bad()
    batch.runs = [run_row(2)]
    with pytest.raises(StoreError):
        store.commit(batch)
    assert store.run("run_2") is None
    assert store.events(["new"]) == {}
    assert len(store.leaves_of(1)) == 2
    store.commit(one_run(2, 2))
    assert store.checkpoint() == CheckpointRow(4, "note 4")


def test_many_rows_of_every_number_arrive(store: LogStore) -> None:
    at = 0
    for number, count in enumerate((1, 7, 8, 33, 129, 300), 1):
        leaves = [leaf(at + place, None) for place in range(count)]
        events = [event(f"evt_{at + place}", at + place) for place in range(count)]
        store.commit(Batch(runs=[run_row(number)], leaves=leaves, events=events))
        at += count
    ids = [f"evt_{index}" for index in range(at)]
    assert sorted(store.events(ids)) == sorted(ids)
    assert len(store.known_runs([f"run_{number}" for number in range(1, 7)])) == 6


def test_leaves_are_found_with_their_runs(store: LogStore) -> None:
    store.commit(one_run())
    store.commit(Batch(leaves=[leaf(2)], events=[event("note", 2)]))
    assert [row[:3] for row in store.rows(1, 9)] == [(1, 1, b"leaf 1"), (2, None, b"leaf 2")]
    assert store.rows(3, 9) == []
    assert store.runs_by_no([1, 2]) == {1: run_row(1)}
    assert store.runs_by_no([]) == {}


def test_the_head_follows_commits_and_what_is_abandoned_changes_nothing(store: LogStore) -> None:
    assert (store.head().size, store.begin().size) == (0, 0)
    store.commit(one_run())
    assert (store.head().size, store.begin().size) == (2, 2)
    store.abandon()
    store.abandon()
    with store.snapshot():
        assert store.checkpoint() == CheckpointRow(2, "note 2")
    store.commit(one_run(2, 2))
    assert store.head().size == 4


def test_large_content_comes_back_whole(store: LogStore) -> None:
    batch = one_run()
    large = bytes(range(256)) * 4_096
    batch.contents = [ContentRow(0, b"", "acme", SHELF), ContentRow(1, large + b"end", "acme", SHELF)]
    store.commit(batch)
    assert (store.content(0), store.content(1), store.content(2)) == (b"", large + b"end", None)


def test_a_probe_leaves_no_trace(store: LogStore) -> None:
    store.commit(one_run())
    store.probe()
    assert store.checkpoint() == CheckpointRow(2, "note 2")


class TestSqliteAlone:
    """What only a file can promise."""

    def test_what_was_committed_is_there_after_opening_again(self, tmp_path: Path) -> None:
        store = SqliteStore(tmp_path / "log.db", busy_s=0.1)
        store.open()
        store.commit(one_run())
        store.close()
        store.open()
        assert store.leaves_of(1) == [(0, b"leaf 0"), (1, b"leaf 1")]
        store.close()

    def test_a_commit_is_on_the_disk_when_it_returns(self, tmp_path: Path) -> None:
        """A kill cannot show this, since the page cache survives it; a power cut would."""
        store = SqliteStore(tmp_path / "log.db", busy_s=0.1)
        init_keys(tmp_path / "keys", log_exists=False)
        keys = SqliteRunKeys(tmp_path / "keys.db", FileKeyWrapper(tmp_path / "keys" / ENCRYPTION_KEY_FILE))
        store.open()
        keys.open(0)
        for connection in (store._connection, keys._connection):
            assert connection is not None
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        keys.close()
        store.close()

    @pytest.mark.parametrize("lost", ["log.db", "log.db-wal"])
    @pytest.mark.parametrize("by", ["nothing", "another"])
    def test_nothing_is_committed_to_a_file_that_is_gone(self, tmp_path: Path, lost: str, by: str) -> None:
        store = SqliteStore(tmp_path / "log.db", busy_s=0.1)
        store.open()
        store.commit(one_run())
        (tmp_path / lost).unlink()
        if by == "another":
            (tmp_path / lost).write_bytes(b"")
        with pytest.raises(StoreError, match=f"{lost} was deleted or replaced"):
            store.commit(one_run(2, first=2))
        if lost == "log.db":
            with pytest.raises(StoreError, match=r"log\.db was deleted or replaced"):
                store.open()
            assert (tmp_path / lost).exists() is (by == "another"), "no new log is begun in its place"
        store.close()

    def test_a_number_that_the_database_cannot_hold_is_refused(self, tmp_path: Path) -> None:
        store = SqliteStore(tmp_path / "log.db", busy_s=0.1)
        store.open()
        with pytest.raises(StoreError, match="OverflowError"):
            store.commit(Batch(runs=[run_row(1, budget=2**64)]))
        assert store.next_run_no() == 1
        store.close()

    def test_a_second_process_is_refused(self, tmp_path: Path) -> None:
        first, second = (SqliteStore(tmp_path / "log.db", busy_s=0.1) for _ in range(2))
        first.open()
        with pytest.raises(StoreError, match="another process"):
            second.open()
        first.close()
        second.open()
        second.close()

    def test_a_database_of_another_version_is_refused(self, tmp_path: Path) -> None:
        import sqlite3

        with sqlite3.connect(tmp_path / "log.db") as database:
            database.execute("PRAGMA user_version = 99")
        database.close()
        store = SqliteStore(tmp_path / "log.db", busy_s=0.1)
        with pytest.raises(StoreError, match="version 99"):
            store.open()
        store.close()

    @pytest.mark.parametrize("statement", ["UPDATE leaves SET data = x''", "DELETE FROM leaves"])
    def test_leaves_cannot_be_changed_by_plain_sql(self, tmp_path: Path, statement: str) -> None:
        import sqlite3

        store = SqliteStore(tmp_path / "log.db", busy_s=0.1)
        store.open()
        store.commit(one_run())
        database = sqlite3.connect(tmp_path / "log.db")
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            database.execute(statement)
        database.close()
        store.close()

    def test_a_reader_sees_commits_and_cannot_write(self, tmp_path: Path) -> None:
        store = SqliteStore(tmp_path / "log.db", busy_s=0.1)
        store.open()
        reader = SqliteReader(tmp_path / "log.db")
        assert reader.checkpoint() is None
        store.commit(one_run())
        assert reader.checkpoint() == CheckpointRow(2, "note 2")
        assert reader.run("run_1") == (run_row(1), None)
        with pytest.raises(StoreError):
            reader._all("DELETE FROM contents")
        reader.close()
        store.close()

    def test_a_lock_held_by_another_is_an_error_and_then_passes(self, tmp_path: Path) -> None:
        import sqlite3

        store = SqliteStore(tmp_path / "log.db", busy_s=0.05)
        store.open()
        intruder = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
        intruder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            store.commit(one_run())
        intruder.execute("ROLLBACK")
        intruder.close()
        store.commit(one_run())
        store.close()


def test_a_stop_stands_until_it_is_cleared(store: LogStore) -> None:
    batch = one_run()
    batch.stops = [StopRow("", "w1", 7), StopRow("acme", "", 8)]
    store.commit(batch)
    assert sorted(store.stops()) == [StopRow("", "w1", 7), StopRow("acme", "", 8)]
    later = one_run(2, first=2)
    later.stops = [StopRow("", "w1", 0), StopRow("acme", "", 9)]
    store.commit(later)
    assert store.stops() == [StopRow("acme", "", 9)]


@pytest.mark.parametrize(
    ("version", "missing"),
    [
        (1, ("stops", "uses", "grade_tallies", "run_facets")),
        (2, ("uses", "grade_tallies", "run_facets")),
        (3, ("grade_tallies", "run_facets")),
        (4, ("run_facets",)),
        (5, ("run_facets",)),
    ],
)
def test_a_log_of_an_older_version_is_taken_over(
    tmp_path: Path, version: int, missing: tuple[str, ...]
) -> None:
    older = SqliteStore(tmp_path / "log.db", busy_s=0.1)
    older.open()
    batch = one_run()
    batch.leaves = [LeafRow(0, 1, b"{}"), LeafRow(1, 1, b"{}")]
    older.commit(batch)
    older.close()
    with connect(tmp_path / "log.db") as database:
        for table in ("controls", "erasures", "reads", "subjects", *missing):
            database.execute(f"DROP TABLE {table}")
        if version < 5:
            database.execute("ALTER TABLE runs DROP COLUMN key_budget_usd_micros")
        database.execute("INSERT INTO leaves VALUES (2, NULL, ?)", (OLD_READ,))
        database.execute(f"PRAGMA user_version = {version}")
    newer = SqliteStore(tmp_path / "log.db", busy_s=0.1)
    newer.open()
    assert newer.stops() == []
    assert newer.uses("acme", None, "2026-01-01", "2026-12-31", limit=1) == []
    assert newer.grade_tallies() == []
    assert newer.reads("acme", before_index=None, limit=9) == [
        ReadRow(2, "acme", 9, "key1", "show", "run_1", with_content=True, case_id="")
    ]
    batch = one_run(2, 3)
    batch.runs = [run_row(2)._replace(key_budget_usd_micros=5)]
    newer.commit(batch)
    assert [row.key_budget_usd_micros for row in newer.open_runs()] == [None, 5]
    newer.close()


def test_a_tally_of_grades_replaces_the_one_before(store: LogStore) -> None:
    first, second = (GradeTallyRow("acme", "podium", 2, count, count * 1_000_000, 7) for count in (1, 2))
    for number, row in enumerate((first, second)):
        batch = one_run(number + 1, first=2 * number)
        batch.grade_tallies = [row, row._replace(tier="podium-max")]
        store.commit(batch)
    assert sorted(store.grade_tallies()) == [second, second._replace(tier="podium-max")]


def test_controls_that_stand_are_found_by_tenant_and_kind(store: LogStore) -> None:
    hold = ControlRow("acme", "hold", "hold_1", stands=True, body='{"case_id":"c"}')
    others = [hold._replace(tenant_id="other"), hold._replace(kind="approval")]
    store.commit(Batch(controls=[hold, hold._replace(item_id="hold_0"), *others]))
    assert store.controls("hold", "acme") == [hold._replace(item_id="hold_0"), hold]
    store.commit(Batch(controls=[hold._replace(stands=False)]))
    assert store.controls("hold", "acme") == [hold._replace(item_id="hold_0")]


def test_a_finished_erasure_takes_its_runs_content_and_no_other(store: LogStore) -> None:
    store.commit(one_run())
    second = one_run(2, 2)
    second.contents = [
        ContentRow(2 * 256, b"other", "acme", SHELF),
        ContentRow(3 * 256 + 255, b"last", "acme", SHELF),
    ]
    store.commit(second)
    one, two = ErasureRow(1, "run_1", "acme", 2, 3), ErasureRow(2, "run_2", "acme", 4, 4)
    store.commit(Batch(erasures=[two, one]))
    assert store.pending_erasures(1) == [one]
    assert store.content(0) == b"sealed bytes"
    store.commit(Batch(erasures=[one._replace(erased_index=5)]))
    assert store.pending_erasures(9) == [two]
    assert (store.content(0), store.content(3 * 256 + 255)) == (None, b"last")
    store.commit(Batch(erasures=[two._replace(erased_index=6)]))
    assert (store.content(2 * 256), store.content(3 * 256 + 255)) == (None, None)


def test_runs_expire_by_their_end_unless_they_are_open_erased_or_anothers(store: LogStore) -> None:
    for number in range(1, 6):
        batch = one_run(number, 2 * (number - 1))
        batch.runs = [run_row(number, "other" if number == 5 else "acme")]
        batch.seals = [SealRow(number, number * 100, "answered", 0, 0)] if number != 2 else []
        store.commit(batch)
    store.commit(Batch(erasures=[ErasureRow(1, "run_1", "acme", 2, 3)]))

    def expired(before_us: int, after_no: int = 0, limit: int = 9) -> list[int]:
        rows = store.expired_runs("acme", sealed_before_us=before_us, after_no=after_no, limit=limit)
        return [row.run_no for row in rows]

    assert (expired(401), expired(400), expired(401, 3), expired(401, 0, 1)) == ([3, 4], [3], [4], [3])
    assert store.expired_runs("acme", sealed_before_us=401, after_no=0, limit=1) == [KeptRun(3, "run_3")]


def test_runs_for_a_person_are_found_by_pseudonym(store: LogStore) -> None:
    for number in range(1, 5):
        batch = one_run(number, 2 * (number - 1))
        batch.seals = [SealRow(number, number * 100, "answered", 0, 0)] if number != 2 else []
        batch.subjects = [SubjectRow("acme", "sub_b" if number == 4 else "sub_a", number)]
        store.commit(batch)
    assert [row.run_no for row in store.runs_of_subject("acme", "sub_a", 9)] == [1, 2, 3]
    assert store.runs_of_subject("acme", "sub_a", 1) == [KeptRun(1, "run_1")]
    assert store.runs_of_subject("other", "sub_a", 9) == []
    store.commit(Batch(erasures=[ErasureRow(1, "run_1", "acme", 2, 3)]))
    assert [row.run_no for row in store.runs_of_subject("acme", "sub_a", 9)] == [2, 3]


def test_reads_are_listed_by_tenant_newest_first(store: LogStore) -> None:
    rows = [
        ReadRow(index, tenant, 9, "key1", "show", "run_1", with_content=True, case_id="c")
        for index, tenant in enumerate(("acme", "other", "acme", "acme"))
    ]
    store.commit(one_run())
    store.commit(Batch(leaves=[leaf(2), leaf(3)], reads=rows))
    assert store.reads("acme", before_index=None, limit=2) == [rows[3], rows[2]]
    assert store.reads("acme", before_index=2, limit=2) == [rows[0]]
    assert (store.count_reads("acme"), store.count_reads("nobody")) == (3, 0)
