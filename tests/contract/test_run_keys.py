"""What the log needs from any store of run keys, held against SQLite's and PostgreSQL's."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from podium_audit.keys import ENCRYPTION_KEY_FILE, FileKeyWrapper, init_keys, write_private
from podium_audit.ports import RunKeys, StoreError
from podium_audit.stores.postgres.connection import Session
from podium_audit.stores.postgres.run_keys import PostgresKeyReader, PostgresRunKeys
from podium_audit.stores.run_keys import SqliteRunKeys
from tests.fakes.postgres_server import PostgresServer

Open = Callable[[], RunKeys]


@pytest.fixture
def wrapper(tmp_path: Path) -> FileKeyWrapper:
    init_keys(tmp_path / "keys", log_exists=False)
    return FileKeyWrapper(tmp_path / "keys" / ENCRYPTION_KEY_FILE)


@pytest.fixture(params=["sqlite", "postgres"])
def another(request: pytest.FixtureRequest, tmp_path: Path, wrapper: FileKeyWrapper) -> Iterator[Open]:
    """Returns the store as one more process would see it; SQLite's has one process at a time."""
    made: list[RunKeys] = []

    def make() -> RunKeys:
        if request.param == "sqlite":
            made.append(SqliteRunKeys(tmp_path / "run-keys.db", wrapper, pool_size=3))
        else:
            session = Session(request.getfixturevalue("database_url"), wait_s=5)
            made.append(PostgresRunKeys(session, wrapper, pool_size=3))
        return made[-1]

    yield make
    for store in made:
        store.close()


def test_keys_differ_and_are_found_again(another: Open) -> None:
    store = another()
    store.open(0)
    taken = dict(store.take() for _ in range(7))
    assert len(taken) == len(set(taken.values())) == 7
    assert all(len(key) == 32 for key in taken.values())
    store.close()
    later = another()
    later.open(max(taken))
    assert {key_no: later.get(key_no) for key_no in taken} == taken
    assert later.take()[0] not in taken


def test_an_erased_key_is_gone_and_its_number_is_not_used_again(another: Open) -> None:
    store = another()
    store.open(0)
    (lost, _), (kept, key) = store.take(), store.take()
    store.erase([lost])
    store.erase([lost])
    assert (store.get(lost), store.get(kept)) == (None, key)
    store.close()
    later = another()
    later.open(kept)
    assert (later.get(lost), later.get(kept)) == (None, key)
    assert all(later.take()[0] > kept for _ in range(5))


def test_a_store_that_never_made_the_keys_in_use_is_refused(another: Open) -> None:
    with pytest.raises(StoreError, match=r"holds keys up to 0, but the log uses keys up to 5: restore"):
        another().open(5)


def test_keys_of_another_encryption_key_are_refused(
    another: Open, wrapper: FileKeyWrapper, tmp_path: Path
) -> None:
    store = another()
    store.open(0)
    key_no, _ = store.take()
    file = tmp_path / "other.key"
    write_private(file, "ab" * 32)
    wrapper._cipher = FileKeyWrapper(file)._cipher
    with pytest.raises(StoreError, match="another key-encryption key"):
        store.get(key_no)


class TestPostgresAlone:
    """What only a shared database can promise."""

    def test_replicas_never_share_a_key(self, database_url: str, wrapper: FileKeyWrapper) -> None:
        taken: list[tuple[int, bytes]] = []

        def replica() -> None:
            store = PostgresRunKeys(Session(database_url, wait_s=20), wrapper, pool_size=7)
            store.open(0)
            mine = [store.take() for _ in range(40)]
            store.close()
            taken.extend(mine)

        threads = [threading.Thread(target=replica) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(taken) == len(dict(taken)) == len({key for _, key in taken}) == 200
        reader = PostgresKeyReader(Session(database_url, wait_s=5), wrapper)
        assert {key_no: reader.get(key_no) for key_no, _ in taken} == dict(taken)
        reader.close()

    def test_a_cut_connection_is_made_anew(self, database_url: str, wrapper: FileKeyWrapper) -> None:
        store = PostgresRunKeys(Session(database_url, wait_s=5), wrapper, pool_size=1)
        store.open(0)
        key_no, key = store.take()
        cut_all(database_url)
        with pytest.raises(StoreError, match="57P01"):
            store.get(key_no)
        assert store.get(key_no) == key
        store.close()

    def test_keys_beside_the_log_are_refused(self, database_url: str, wrapper: FileKeyWrapper) -> None:
        with psycopg.connect(database_url) as connection:
            connection.execute("CREATE TABLE leaves (leaf_index bigint)")
        store = PostgresRunKeys(Session(database_url, wait_s=5), wrapper)
        with pytest.raises(StoreError, match="database of its own"):
            store.open(0)
        store.close()

    def test_an_erased_key_is_in_no_file_of_the_tables_once_they_are_vacuumed(
        self, postgres: PostgresServer, wrapper: FileKeyWrapper
    ) -> None:
        url = postgres.new_database()
        store = PostgresRunKeys(Session(url, wait_s=5), wrapper, pool_size=3)
        store.open(0)
        erased, kept = store.take()[0], store.take()[0]
        with psycopg.connect(url, autocommit=True) as connection:
            wrapped: dict[int, bytes] = dict(
                connection.execute("SELECT key_no, wrapped FROM run_keys").fetchall()
            )
            (oid,) = (
                connection.execute(
                    "SELECT oid FROM pg_database WHERE datname = current_database()"
                ).fetchone()
                or ()
            )
            store.erase([erased])
            connection.execute("VACUUM FULL run_keys")
            connection.execute("CHECKPOINT")
        files = [file.read_bytes() for file in (postgres.home / "data" / "base" / str(oid)).iterdir()]
        assert any(wrapped[kept] in data for data in files), "else the search would find nothing at all"
        assert not any(wrapped[erased] in data for data in files)
        store.close()

    def test_an_error_tells_no_secret(self, wrapper: FileKeyWrapper) -> None:
        store = PostgresRunKeys(Session("postgresql://somebody:hunter2@127.0.0.1:1/keys", wait_s=1), wrapper)
        with pytest.raises(StoreError, match="OperationalError") as caught:
            store.open(0)
        assert "hunter2" not in str(caught.value)
        assert caught.value.__cause__ is None


def cut_all(url: str) -> None:
    """End every other session of the database, as a restart of the server does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
