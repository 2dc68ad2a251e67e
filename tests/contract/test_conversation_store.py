"""What conversation items need from any store, held against SQLite's and PostgreSQL's."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from podium_audit.ports import ConversationStore, ItemRow, StoreError
from podium_audit.stores.conversations import SqliteConversations
from podium_audit.stores.postgres.connection import Session
from podium_audit.stores.postgres.conversations import PostgresConversations
from podium_audit.stores.postgres.item_keys import PostgresItemKeys
from podium_audit.stores.postgres.log_schema import WRITER
from podium_core.domain.conversation import ItemKind, ItemRange
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.shared_database import shared_database

Another = Callable[[], ConversationStore]
KIND = ItemKind.RESPONSE


def row(
    item_id: str = "resp_1", sealed: bytes = b"sealed", expires_ms: int = 0, tenant: str = "acme"
) -> ItemRow:
    return ItemRow(tenant, KIND.value, item_id, "run_1", expires_ms, b"key of " + sealed, sealed)


class Databases:
    """A log's and a key database, and replicas' ways to them."""

    def __init__(self, postgres: PostgresServer) -> None:
        self.main, self.keys = postgres.new_database(), postgres.new_database()
        self.made: list[PostgresConversations] = []

    def replica(self) -> PostgresConversations:
        item_keys = PostgresItemKeys(Session(self.keys, wait_s=5))
        self.made.append(PostgresConversations(shared_database(self.main).session(WRITER), item_keys))
        self.made[-1].open()
        return self.made[-1]

    def ask(self, url: str, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    def key_count(self) -> int:
        return len(self.ask(self.keys, "SELECT 1 FROM item_keys"))


@pytest.fixture
def databases(postgres: PostgresServer) -> Iterator[Databases]:
    made = Databases(postgres)
    yield made
    for store in made.made:
        store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Another]:
    """Returns the store as one more process would see it."""
    if request.param == "postgres":
        yield request.getfixturevalue("databases").replica
        return
    made: list[SqliteConversations] = []

    def make() -> ConversationStore:
        made.append(SqliteConversations(tmp_path / "conversations.db", busy_s=1))
        made[-1].open()
        return made[-1]

    yield make
    for store in made:
        store.close()


def test_what_one_stores_another_finds_until_it_is_deleted(another: Another) -> None:
    one, two = another(), another()
    assert one.find("acme", KIND.value, "resp_1") is None
    version = one.replace(row(), 0)
    assert version is not None
    assert two.find("acme", KIND.value, "resp_1") == (version, row())
    assert two.find("other", KIND.value, "resp_1") is None
    assert two.delete(version)
    assert not one.delete(version)
    assert one.find("acme", KIND.value, "resp_1") is None


def test_versions_grow_and_only_the_newest_is_replaced(another: Another) -> None:
    one, two = another(), another()
    first = one.replace(row(sealed=b"one"), 0)
    assert first is not None
    assert two.replace(row(sealed=b"two"), 0) is None
    second = two.replace(row(sealed=b"two"), first)
    assert second is not None
    assert second > first
    assert one.replace(row(sealed=b"three"), first) is None
    assert one.find("acme", KIND.value, "resp_1") == (second, row(sealed=b"two"))
    assert one.delete(second)
    third = one.replace(row(), 0)
    assert third is not None
    assert third > second


def test_the_items_of_erased_runs_go_and_no_others(another: Another) -> None:
    store = another()
    others = [row("resp_2", tenant="other"), row("resp_3")._replace(run_id="run_2")]
    for item in (row(), row("resp_4"), *others):
        assert store.replace(item, 0)
    assert store.delete_of_runs([("acme", "run_1"), ("acme", "run_9")]) == 2
    assert store.find("acme", KIND.value, "resp_1") is None
    assert all(store.find(item.tenant_id, KIND.value, item.item_id) for item in others)


def test_large_and_odd_bytes_come_back(another: Another) -> None:
    sealed = bytes(range(256)) * 4_096
    store = another()
    version = store.replace(row(sealed=sealed), 0)
    assert store.find("acme", KIND.value, "resp_1") == (version, row(sealed=sealed))


def test_what_has_expired_is_swept_and_nothing_else(another: Another) -> None:
    store = another()
    for number in range(5):
        store.replace(row(f"old_{number}", expires_ms=1_000 + number), 0)
    store.replace(row("later", expires_ms=2_000), 0)
    store.replace(row("kept"), 0)
    assert [store.sweep(1_500, 3), store.sweep(1_500, 3), store.sweep(1_500, 3)] == [3, 2, 0]
    assert store.find("acme", KIND.value, "old_0") is None
    assert store.find("acme", KIND.value, "later") is not None
    assert store.find("acme", KIND.value, "kept") is not None


@pytest.mark.parametrize("is_descending", [False, True])
def test_a_range_is_told_by_its_prefix_in_the_order_of_bytes(another: Another, is_descending: bool) -> None:
    store = another()
    for item_id in ("a.10", "a.9", "a.B", "a.a", "a.c", "b.1", "a"):
        store.replace(row(item_id, expires_ms=1_000 if item_id == "a.c" else 0), 0)
    store.replace(row("a.other", tenant="other"), 0)
    inside = ["a.10", "a.9", "a.B", "a.a"]
    inside = inside[::-1] if is_descending else inside

    def ids(after: str, limit: int) -> list[str]:
        wanted = ItemRange("acme", KIND, "a.", after, is_descending)
        return [found.item_id for _, found in store.page(wanted, 1_000, limit)]

    assert ids("", 9) == inside
    assert ids(inside[0], 2) == inside[1:3]
    assert ids(inside[3], 2) == []


class TestPostgresAlone:
    """An item and its key are in two databases; whatever comes in between, no key outlives its item's end."""

    def test_the_key_is_not_in_the_items_database(self, databases: Databases) -> None:
        store = databases.replica()
        store.replace(row(), 0)
        dumped = databases.ask(databases.main, "SELECT items::text FROM items")
        assert b"key of sealed".hex() not in str(dumped)
        assert databases.key_count() == 1

    def test_a_key_goes_with_its_item(self, databases: Databases) -> None:
        store = databases.replica()
        first = store.replace(row(sealed=b"one"), 0)
        assert first is not None
        assert store.replace(row(sealed=b"lost race"), 0) is None
        second = store.replace(row(sealed=b"two"), first)
        assert databases.key_count() == 1
        assert second is not None
        store.delete(second)
        store.replace(row(expires_ms=5), 0)
        store.sweep(10, 9)
        assert databases.key_count() == 0

    def test_an_item_whose_key_is_destroyed_is_not_there(self, databases: Databases) -> None:
        """A replica was killed in the middle of a deletion."""
        store = databases.replica()
        store.replace(row(), 0)
        store.replace(row("resp_2"), 0)
        databases.ask(databases.keys, "DELETE FROM item_keys WHERE key_no = 1")
        page = store.page(ItemRange("acme", KIND, "resp_"), 0, 2)
        assert [found.item_id for _, found in page] == ["resp_2"]
        assert store.find("acme", KIND.value, "resp_1") is None
        assert store.replace(row(sealed=b"again"), 0) is not None

    def test_what_a_crash_left_between_the_databases_is_settled(self, databases: Databases) -> None:
        store = databases.replica()
        first = store.replace(row(sealed=b"one"), 0)
        store.replace(row(sealed=b"two"), first or 0)
        made = "made_at = clock_timestamp() - interval '1 hour'"
        # Killed before the item was stored; and after the second was, but before the first's key was destroyed.
        databases.ask(
            databases.keys,
            "INSERT INTO item_keys (key_no, wrapped) OVERRIDING SYSTEM VALUE VALUES (1, 'old'), (9, 'orphan')",
        )
        databases.ask(databases.keys, "UPDATE item_keys SET is_settled = key_no = 1")
        store.sweep(0, 9)
        assert databases.key_count() == 3, "whoever made them may still be at work"
        databases.ask(databases.keys, f"UPDATE item_keys SET {made}")
        store.sweep(0, 9)
        assert databases.ask(databases.keys, "SELECT key_no, is_settled FROM item_keys") == [(2, True)]
        assert store.find("acme", KIND.value, "resp_1") is not None

    def test_an_item_whose_key_was_given_up_is_not_called_stored(self, databases: Databases) -> None:
        store = databases.replica()

        class FrozenBeforeSettling(PostgresItemKeys):
            def settle(self, key_nos: object) -> int:
                databases.ask(databases.keys, "DELETE FROM item_keys")
                return super().settle(key_nos)  # type: ignore[arg-type]

        frozen = PostgresConversations(
            Session(databases.main, wait_s=5), FrozenBeforeSettling(Session(databases.keys, wait_s=5))
        )
        with pytest.raises(StoreError, match="given up"):
            frozen.replace(row(), 0)
        frozen.close()
        assert store.find("acme", KIND.value, "resp_1") is None
