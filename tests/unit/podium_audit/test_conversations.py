"""Conversation items over a real store: who finds them, who comes first, and that what is deleted is gone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from sqlite3 import connect

import pytest

from podium_audit.conversations import Conversations
from podium_audit.keys import ENCRYPTION_KEY_FILE, FileKeyWrapper, init_keys
from podium_audit.ports import ItemRow, StoreError
from podium_audit.stores.conversations import SqliteConversations
from podium_core.domain.conversation import ItemKey, ItemKind, ItemRange
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.ids import FakeClock
from tests.fakes.waiting import until

KEY = ItemKey("acme", ItemKind.RESPONSE, "resp_1")
SECRET = b"the words of a client, which must not stay"


class Scene:
    """Conversations in a folder, which can be closed and opened again."""

    def __init__(self, home: Path) -> None:
        self.home, self.file = home, home / "conversations.db"
        init_keys(home / "keys", log_exists=False)
        self.clock = FakeClock()
        self.open()

    def open(self) -> None:
        """Open them anew."""
        wrapper = FileKeyWrapper(self.home / "keys" / ENCRYPTION_KEY_FILE)
        store = SqliteConversations(self.file, busy_s=0.1)
        self.kept = Conversations(store, wrapper, self.clock, wait_s=5, sweep_every_s=0.01)

    def bytes_on_disk(self) -> bytes:
        """Return every byte of the store's files."""
        return b"".join(path.read_bytes() for path in sorted(self.home.glob("conversations.db*")))

    def sealed(self) -> bytes:
        """Return the one item's ciphertext."""
        with connect(self.file) as database:
            (row,) = database.execute("SELECT sealed FROM items").fetchall()
        return bytes(row[0])


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    made = Scene(tmp_path)
    yield made
    await made.kept.close()


async def test_an_item_comes_back_as_it_was_and_is_sealed_at_rest(scene: Scene) -> None:
    version = await scene.kept.put(KEY, SECRET, ttl_ms=1_000, run_id="run_1")
    item = await scene.kept.get(KEY)
    assert item is not None
    assert (item.data, item.version, item.run_id) == (SECRET, version, "run_1")
    assert SECRET not in scene.bytes_on_disk()


async def test_another_tenant_kind_or_id_finds_nothing(scene: Scene) -> None:
    await scene.kept.put(KEY, SECRET, ttl_ms=0)
    for other in (
        ItemKey("other", KEY.kind, KEY.item_id),
        ItemKey(KEY.tenant_id, ItemKind.CONTINUATION, KEY.item_id),
        ItemKey(KEY.tenant_id, KEY.kind, "resp_2"),
    ):
        assert await scene.kept.get(other) is None
        assert not await scene.kept.delete(other)
    assert await scene.kept.get(KEY) is not None


async def test_a_row_moved_to_another_tenant_cannot_be_read(scene: Scene) -> None:
    await scene.kept.put(KEY, SECRET, ttl_ms=0)
    with connect(scene.file) as database:
        database.execute("UPDATE items SET tenant_id = 'other'")
    with pytest.raises(PodiumError) as caught:
        await scene.kept.get(ItemKey("other", KEY.kind, KEY.item_id))
    assert caught.value.code is Code.AUDIT_UNAVAILABLE


async def test_items_outlive_a_restart(scene: Scene) -> None:
    await scene.kept.put(KEY, SECRET, ttl_ms=0)
    await scene.kept.close()
    scene.open()
    item = await scene.kept.get(KEY)
    assert item is not None
    assert item.data == SECRET


async def test_of_many_that_join_one_comes_first(scene: Scene) -> None:
    answers = await asyncio.gather(
        *(scene.kept.join(KEY, b"caller %d" % number, ttl_ms=1_000) for number in range(20))
    )
    firsts = [version for version, holder in answers if holder is None]
    assert len(firsts) == 1
    holders = {holder.data for _, holder in answers if holder is not None}
    assert len(holders) == 1
    assert {version for version, _ in answers} == set(firsts)


async def test_an_expired_item_is_nobodys_and_the_next_may_join(scene: Scene) -> None:
    await scene.kept.join(KEY, b"first", ttl_ms=1_000)
    scene.clock.advance(0.999)
    assert (await scene.kept.join(KEY, b"second", ttl_ms=1_000))[1] is not None
    scene.clock.advance(0.001)
    assert await scene.kept.get(KEY) is None
    assert (await scene.kept.join(KEY, b"third", ttl_ms=1_000))[1] is None


async def test_only_the_version_that_was_read_is_replaced_or_deleted(scene: Scene) -> None:
    old = await scene.kept.put(KEY, b"one", ttl_ms=0)
    new = await scene.kept.put(KEY, b"two", ttl_ms=0, if_version=old)
    assert new > old
    for change in (
        scene.kept.put(KEY, b"three", ttl_ms=0, if_version=old),
        scene.kept.delete(KEY, if_version=old),
    ):
        with pytest.raises(PodiumError) as caught:
            await change
        assert (caught.value.code, caught.value.reason) == (Code.CONFLICT, "ITEM_CHANGED")
    assert await scene.kept.delete(KEY, if_version=new)


async def test_a_repeated_change_is_no_conflict(scene: Scene) -> None:
    old = await scene.kept.put(KEY, b"one", ttl_ms=0)
    new = await scene.kept.put(KEY, b"two", ttl_ms=0, if_version=old)
    assert await scene.kept.put(KEY, b"two", ttl_ms=0, if_version=old) == new


async def test_a_version_is_never_used_again(scene: Scene) -> None:
    first = await scene.kept.put(KEY, b"one", ttl_ms=0)
    await scene.kept.delete(KEY)
    await scene.kept.close()
    scene.open()
    assert await scene.kept.put(KEY, b"two", ttl_ms=0) > first


async def test_what_is_deleted_leaves_no_byte_behind(scene: Scene) -> None:
    await scene.kept.put(KEY, SECRET, ttl_ms=0)
    sealed = scene.sealed()
    assert sealed in scene.bytes_on_disk()
    assert await scene.kept.delete(KEY)
    assert sealed not in scene.bytes_on_disk()
    assert not await scene.kept.delete(KEY)


async def test_what_has_expired_is_swept_and_leaves_no_byte_behind(scene: Scene) -> None:
    await scene.kept.put(KEY, SECRET, ttl_ms=1_000)
    sealed = scene.sealed()
    stays = ItemKey("acme", ItemKind.RESPONSE, "resp_2")
    await scene.kept.put(stays, SECRET, ttl_ms=0)
    sweeping = asyncio.create_task(scene.kept.keep_swept())
    scene.clock.advance(2)
    await until(lambda: sealed not in scene.bytes_on_disk())
    sweeping.cancel()
    assert await scene.kept.get(stays) is not None


async def test_the_items_of_erased_runs_go_and_leave_no_byte_behind(scene: Scene) -> None:
    await scene.kept.put(KEY, SECRET, ttl_ms=0, run_id="run_1")
    sealed = scene.sealed()
    stays = ItemKey("acme", ItemKind.RESPONSE, "resp_2")
    await scene.kept.put(stays, SECRET, ttl_ms=0, run_id="run_2")
    assert await scene.kept.delete_of_runs([("other", "run_1")]) == 0
    assert await scene.kept.delete_of_runs([("acme", "run_1"), ("acme", "run_9")]) == 1
    assert sealed not in scene.bytes_on_disk()
    assert await scene.kept.get(KEY) is None
    assert await scene.kept.get(stays) is not None


async def test_a_store_of_the_version_before_is_taken_over(scene: Scene) -> None:
    await scene.kept.put(KEY, SECRET, ttl_ms=0, run_id="run_1")
    await scene.kept.close()
    with connect(scene.file) as database:
        database.execute("DROP INDEX items_by_run")
        database.execute("PRAGMA user_version = 1")
    scene.open()
    assert await scene.kept.delete_of_runs([("acme", "run_1")]) == 1


async def test_a_store_of_another_version_is_refused(scene: Scene) -> None:
    with connect(scene.file) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(StoreError, match="schema version 9"):
        await scene.kept.open()


async def test_a_file_that_vanished_is_noticed_and_nothing_is_promised(scene: Scene) -> None:
    await scene.kept.put(KEY, b"one", ttl_ms=0)
    for path in scene.home.glob("conversations.db*"):
        path.unlink()
    with pytest.raises(PodiumError) as caught:
        await scene.kept.put(KEY, b"two", ttl_ms=0)
    assert caught.value.code is Code.AUDIT_UNAVAILABLE


class Broken:
    """A store that can do nothing, `failures` times."""

    def __init__(self, store: SqliteConversations) -> None:
        self.store, self.failures = store, 0

    def open(self) -> None:
        """Fail, or open."""
        if self.failures:
            self.failures -= 1
            raise StoreError("cannot open")
        self.store.open()

    def close(self) -> None:
        """Close."""
        self.store.close()

    def find(self, tenant_id: str, kind: str, item_id: str) -> tuple[int, ItemRow] | None:
        """Fail while failures are left."""
        if self.failures:
            self.failures -= 1
            raise StoreError("cannot read")
        return self.store.find(tenant_id, kind, item_id)

    def page(self, wanted: ItemRange, now_ms: int, limit: int) -> Sequence[tuple[int, ItemRow]]:
        """Pass on."""
        return self.store.page(wanted, now_ms, limit)

    def replace(self, row: ItemRow, over: int) -> int | None:
        """Pass on."""
        return self.store.replace(row, over)

    def delete(self, version: int) -> bool:
        """Pass on."""
        return self.store.delete(version)

    def delete_of_runs(self, runs: Sequence[tuple[str, str]]) -> int:
        """Pass on."""
        return self.store.delete_of_runs(runs)

    def sweep(self, now_ms: int, limit: int) -> int:
        """Pass on."""
        return self.store.sweep(now_ms, limit)


async def test_a_store_that_recovers_is_used_again_without_a_restart(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    store = Broken(SqliteConversations(scene.file, busy_s=0.1))
    wrapper = FileKeyWrapper(tmp_path / "keys" / ENCRYPTION_KEY_FILE)
    kept = Conversations(store, wrapper, scene.clock, wait_s=5, sweep_every_s=60)
    await kept.put(KEY, b"one", ttl_ms=0)
    store.failures = 2
    for _ in range(2):
        with pytest.raises(PodiumError) as caught:
            await kept.get(KEY)
        assert caught.value.code is Code.AUDIT_UNAVAILABLE
    item = await kept.get(KEY)
    assert item is not None
    assert item.data == b"one"
    await kept.close()
    await scene.kept.close()
