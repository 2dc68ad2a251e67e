"""What only PostgreSQL promises of the log: who may see and change what, turns, shelves, upgrades."""

import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from podium_audit.ports import (
    Batch,
    EventRow,
    LeafRow,
    SealRow,
    StoreBusyError,
    StoreError,
    TileRow,
)
from podium_audit.records.shelves import next_shelf, shelf_of
from podium_audit.rows.run_search import RunSearch
from podium_audit.stores.postgres import log_schema
from podium_audit.stores.postgres.log_schema import READER, WRITER
from podium_audit.stores.postgres.log_store import Database, PostgresStore
from podium_audit.stores.postgres.migrations import migrate
from podium_audit.stores.readers import EVERY_TENANT
from tests.fakes.log_rows import JUNE, MAY, a_run
from tests.fakes.waiting import until


@pytest.fixture
def database(database_url: str) -> Database:
    return Database(database_url, lock_s=0.2)


@pytest.fixture
def store(database: Database) -> Iterator[PostgresStore]:
    made = PostgresStore(database)
    made.open()
    yield made
    made.close()


def sealed(number: int) -> Batch:
    return Batch(seals=[SealRow(number, 5, "answered", 1, 1)])


def as_role(url: str, role: str) -> psycopg.Connection[tuple[object, ...]]:
    connection = psycopg.connect(url, autocommit=True)
    connection.execute(f"SET ROLE {role}")
    return connection


async def test_lookups_never_read_a_whole_table(store: PostgresStore, database_url: str) -> None:
    # Plans are kept from when the tables were empty, and nobody has analyzed them since.
    for number in range(20):
        store.commit(a_run(number, 2 * number))
        assert set(store.events([f"evt_{number + more}" for more in range(64)])) == {f"evt_{number}"}
        assert store.known_runs([f"run_{number + more}" for more in range(64)]) == {f"run_{number}"}
    store.close()  # what the server counts of a session comes out when that ends

    def counted() -> list[tuple[int, int]]:
        with psycopg.connect(database_url) as connection:
            query = "SELECT n_tup_ins, seq_tup_read FROM pg_stat_user_tables WHERE relname = ANY (%s)"
            return connection.execute(query, (["events", "runs"],)).fetchall()

    await until(lambda: all(written == 20 for written, _ in counted()))
    assert [read for _, read in counted()] == [0, 0]


def test_nobody_changes_what_was_written(store: PostgresStore, database_url: str) -> None:
    store.commit(a_run(1, 0))
    store.commit(sealed(1))
    store.commit(Batch(leaves=[LeafRow(2, None, b"x", "", shelf_of(MAY))], events=[EventRow("e", b"", 2, 1)]))
    for role in (WRITER, READER, "postgres"):
        with as_role(database_url, role) as connection:
            if role == "postgres":  # even as whoever plays in the changes of another server
                connection.execute("SET session_replication_role = replica")
            for table in ("leaves", "contents", "events", "runs", "seals", f"leaves_{shelf_of(MAY)}"):
                for verb in ("UPDATE {} SET shelf = shelf", "DELETE FROM {}", "TRUNCATE {} CASCADE"):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        connection.execute(verb.format(table))
    assert store.leaves(0, 9) == [b"leaf 0", b"leaf 1", b"x"]
    assert store.content(0) == b"sealed"


def test_a_reader_sees_one_tenant_and_without_one_nothing(store: PostgresStore, database: Database) -> None:
    store.commit(a_run(1, 0))
    store.commit(a_run(2, 2, tenant="other"))
    reader = database.reader()
    for tenant, number, other in (("acme", 1, 2), ("other", 2, 1)):
        reader.show_only(tenant)
        assert reader.run(f"run_{number}") is not None
        assert reader.run(f"run_{other}") is None
        assert len(reader.leaves_of(number)) == 2
        assert reader.leaves_of(other) == []
        assert len(reader.leaves(0, 9)) == 2
        assert reader.content((number - 1) * 512) == b"sealed"
        assert reader.content((other - 1) * 512) is None
        assert reader.count_runs(RunSearch("acme" if tenant == "other" else "other")) == 0
    reader.show_only("")
    assert (reader.leaves(0, 9), reader.run("run_1"), reader.leaves_of(1)) == ([], None, [])
    reader.show_only(EVERY_TENANT)
    assert len(reader.leaves(0, 9)) == 4
    reader.show_only("acme")
    assert reader.tile(0, 0) == store.tile(0, 0), "hashes of the newest leaves are everybody's"
    assert len(reader.tile(0, 0)) == 4 * 32
    reader.close()


@pytest.mark.parametrize("role", [WRITER, READER])
def test_partitions_cannot_be_reached_past_their_table(
    store: PostgresStore, database_url: str, role: str
) -> None:
    store.commit(a_run(1, 0))
    shelf = shelf_of(MAY)
    with as_role(database_url, role) as connection:
        for statement in (
            f"SELECT * FROM leaves_{shelf}",
            f"SELECT * FROM contents_{shelf}",
            f"INSERT INTO leaves_{shelf} VALUES ({shelf}, 9, NULL, '', '')",
            "SELECT digest FROM events" if role == READER else "UPDATE shelves SET dropped_us = 1",
            "CREATE TABLE mine (x int)",
            f"ALTER TABLE leaves DETACH PARTITION leaves_{shelf}",
            f"DROP TABLE leaves_{shelf}",
            "ALTER TABLE events DISABLE TRIGGER append_only",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_the_tenants_name_ends_with_its_question(store: PostgresStore, database: Database) -> None:
    store.commit(a_run(1, 0))
    reader = database.reader()
    reader.show_only("acme")
    assert reader.run("run_1") is not None
    with reader._session.use() as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    reader.close()


def test_a_role_that_could_do_anything_is_refused(database: Database, database_url: str) -> None:
    made = PostgresStore(database)
    made.open()
    with psycopg.connect(database_url, autocommit=True) as superuser:
        superuser.execute(f"ALTER ROLE {WRITER} BYPASSRLS")
        try:
            with pytest.raises(StoreError, match="row-level security"):
                made.open()
        finally:
            superuser.execute(f"ALTER ROLE {WRITER} NOBYPASSRLS")
    made.open()
    made.close()


def test_writers_take_turns(store: PostgresStore, database: Database) -> None:
    other = PostgresStore(database)
    other.open()
    store.begin()
    with pytest.raises(StoreBusyError):
        other.begin()
    store.commit(a_run(1, 0))
    assert other.begin().size == 2
    other.commit(a_run(2, 2))
    assert store.head().size == 4
    other.close()


def test_who_lost_the_session_with_the_head_cannot_commit(store: PostgresStore, database_url: str) -> None:
    store.begin()
    with psycopg.connect(database_url, autocommit=True) as superuser:
        superuser.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
    with pytest.raises(StoreError):
        store.run("run_1")
    assert store.run("run_1") is None, "the next question has a session of its own"
    with pytest.raises(StoreError, match="session that held the log was lost"):
        store.commit(a_run(1, 0))
    assert store.head().size == 0
    store.commit(a_run(1, 0))
    assert store.head().size == 2


def test_a_head_that_moved_takes_no_batch(store: PostgresStore, database_url: str) -> None:
    store.begin()
    store._head = store.head()._replace(epoch=7)
    with pytest.raises(StoreError):
        store.commit(a_run(1, 0))
    assert store.leaves(0, 9) == []


def test_replicas_may_prepare_an_empty_database_at_once(database: Database) -> None:
    gate = threading.Barrier(5)

    def start(number: int) -> None:
        replica = PostgresStore(database)
        gate.wait(30)
        replica.open()
        for _ in range(3):
            while True:
                try:
                    size = replica.begin().size
                except StoreBusyError:
                    continue
                break
            replica.commit(a_run(size // 2 + 1, size))
        replica.close()

    with ThreadPoolExecutor(5) as threads:
        list(threads.map(start, range(5)))
    store = PostgresStore(database)
    store.open()
    assert store.head().size == 30
    assert store.leaves(0, 99) == [b"leaf %d" % index for index in range(30)]
    store.close()


def test_an_upgrade_cut_half_way_is_finished_by_the_next(database: Database) -> None:
    owner = database.owner()
    broken = (*log_schema.STEPS[0], "SELECT 1 / 0")
    with pytest.raises(StoreError):
        migrate(owner, "log", (broken, *log_schema.STEPS[1:]))
    with owner.use() as connection:
        assert connection.execute("SELECT to_regclass('leaves')").fetchone() == (None,)
    migrate(owner, "log", log_schema.STEPS[:1])
    owner.close()
    store = PostgresStore(database)
    store.open()
    store.commit(a_run(1, 0))
    assert store.reads("acme", before_index=None, limit=1) == []
    store.close()


def test_a_newer_schema_is_refused_even_by_whoever_runs_already(
    store: PostgresStore, database: Database, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as superuser:
        superuser.execute("UPDATE podium_schema SET version = 99 WHERE part = 'log'")
    with pytest.raises(StoreError, match="newer program"):
        store.open()
    late = PostgresStore(database)
    with pytest.raises(StoreError, match="schema version 99"):
        late.open()
    late.close()


def test_a_shelf_is_dropped_whole_and_proofs_stay(store: PostgresStore, database_url: str) -> None:
    store.commit(a_run(1, 0, leaves=2))
    store.commit(a_run(2, 2, opened_us=JUNE, leaves=250))
    may, june = shelf_of(MAY), shelf_of(JUNE)
    assert june == next_shelf(may)
    with pytest.raises(StoreError, match="is open"):
        store.shelves.drop(may, 9)
    store.commit(sealed(1))
    with pytest.raises(StoreError, match="newest 256"):
        store.shelves.drop(may, 9)
    before = store.tile(0, 0)
    store.commit(Batch(leaves=[LeafRow(252 + at, 2, b"x", "acme", june) for at in range(9)]))
    hashes = Batch(tiles=[])
    hashes.tiles.append(tile_of(store))
    store.commit(hashes)
    store.shelves.drop(may, 9)
    store.shelves.drop(may, 10)
    assert store.tile(0, 0)[: len(before)] == before
    assert (store.run("run_1"), store.leaves_of(1), store.content(0), store.events(["evt_1"])) == (
        None,
        [],
        None,
        {},
    )
    assert len(store.leaves_of(2)) == 259
    assert [row for row in store.shelves.all() if row.dropped_us] == [(may, 9)]
    with pytest.raises(StoreError):
        store.commit(a_run(3, 261, opened_us=MAY))
    with psycopg.connect(database_url) as superuser:
        left = superuser.execute(
            "SELECT (SELECT count(*) FROM events WHERE shelf = %(shelf)s) + (SELECT count(*) FROM runs WHERE"
            " shelf = %(shelf)s) + (SELECT count(*) FROM seals WHERE shelf = %(shelf)s)",
            {"shelf": may},
        ).fetchone()
    assert left == (0,), "nothing of a dropped shelf stays in the tables that are not split"


def tile_of(store: PostgresStore) -> TileRow:
    return TileRow(0, 0, store.tile(0, 0))


def test_months_follow_each_other() -> None:
    assert (shelf_of(MAY), next_shelf(1_202_512)) == (1_202_505, 1_202_601)


def test_errors_quote_nothing_that_was_written(store: PostgresStore) -> None:
    batch = a_run(1, 0, tenant="secret-tenant")
    store.commit(batch)
    batch.leaves = [row._replace(leaf_index=row.leaf_index + 2) for row in batch.leaves]
    with pytest.raises(StoreError) as caught:
        store.commit(batch)
    assert "secret" not in str(caught.value)
    assert "UniqueViolation" in str(caught.value)


def test_a_service_need_not_own_its_tables(database_url: str) -> None:
    name = f"t{secrets.token_hex(4)}"
    with psycopg.connect(database_url, autocommit=True) as superuser:
        for role in (WRITER, READER):
            if superuser.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                superuser.execute(f"CREATE ROLE {role}")
        superuser.execute(f"CREATE ROLE owner_{name} LOGIN CREATEROLE")
        superuser.execute(f"CREATE ROLE service_{name} LOGIN NOINHERIT")
        superuser.execute(f"GRANT {WRITER}, {READER} TO owner_{name}, service_{name} WITH ADMIN OPTION")
        superuser.execute(f"CREATE DATABASE {name} OWNER owner_{name}")
    place = database_url.rpartition("@")[2].rpartition("/")[0]
    url, owner_url = (f"postgresql://{who}_{name}@{place}/{name}" for who in ("service", "owner"))
    store = PostgresStore(Database(url, lock_s=1, owner_url=owner_url))
    try:
        check_apart(store, url)
    finally:
        store.close()
    with psycopg.connect(database_url, autocommit=True) as superuser:
        superuser.execute(f"DROP DATABASE {name} WITH (FORCE)")
        superuser.execute(f"DROP ROLE service_{name}")
        superuser.execute(f"DROP ROLE owner_{name}")


def check_apart(store: PostgresStore, url: str) -> None:
    store.open()
    store.commit(a_run(1, 0))
    store.commit(sealed(1))
    reader = Database(url, lock_s=1).reader()
    reader.show_only("acme")
    assert reader.run("run_1") is not None
    assert len(reader.tile(0, 0)) == 64
    reader.close()
    with psycopg.connect(url, autocommit=True) as service:
        for statement in (
            f"ALTER TABLE leaves_{shelf_of(MAY)} DISABLE TRIGGER ALL",
            "DROP TRIGGER append_only ON events",
            "SELECT * FROM leaves",
            "CREATE TABLE mine (x int)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                service.execute(statement)
