"""Conversation items: sealed one by one, found by their tenant only, gone when they expire or are deleted."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from podium_audit.key_ports import KeyWrapper
from podium_audit.log.store_thread import StoreThread
from podium_audit.ports import ConversationStore, ItemRow, StoreError
from podium_core.domain.clock import Clock
from podium_core.domain.conversation import Item, ItemKey, ItemRange
from podium_core.domain.errors import Code, PodiumError

T = TypeVar("T")

_KEY_BYTES = 32
_NONCE_BYTES = 12
_NS_PER_MS = 1_000_000
_SWEPT_AT_ONCE = 256


class Conversations:
    """Keeps items over a store. Use it from one event loop."""

    def __init__(
        self,
        store: ConversationStore,
        wrapper: KeyWrapper,
        clock: Clock,
        *,
        wait_s: float,
        sweep_every_s: float,
    ) -> None:
        self._store = store
        self._wrapper = wrapper
        self._clock = clock
        self._sweep_every_s = sweep_every_s
        self._is_open = False
        self._thread = StoreThread("conversations", wait_s=wait_s)

    async def get(self, key: ItemKey) -> Item | None:
        """Return what is kept; None when there is nothing, or nothing any more.

        Raises PodiumError (AUDIT_UNAVAILABLE), as every method here.
        """
        return await self._ask(lambda: self._get(key))

    async def page(
        self, wanted: ItemRange, limit: int, max_bytes: int
    ) -> tuple[list[tuple[str, Item]], bool]:
        """Return items of a range with their ids, as many as fit, and whether there are more behind them."""
        return await self._ask(lambda: self._page(wanted, limit, max_bytes))

    async def put(
        self, key: ItemKey, data: bytes, *, ttl_ms: int, run_id: str = "", if_version: int = 0
    ) -> int:
        """Keep data durably and return its version. Raises PodiumError (CONFLICT, ITEM_CHANGED)."""
        return await self._ask(lambda: self._put(key, data, ttl_ms, run_id, if_version))

    async def join(
        self, key: ItemKey, data: bytes, *, ttl_ms: int, run_id: str = ""
    ) -> tuple[int, Item | None]:
        """Keep data if nothing is kept; return the version that is kept now, and what was there before."""
        return await self._ask(lambda: self._join(key, data, ttl_ms, run_id))

    async def delete(self, key: ItemKey, *, if_version: int = 0) -> bool:
        """Delete for good; say whether there was anything. Raises PodiumError (CONFLICT, ITEM_CHANGED)."""
        return await self._ask(lambda: self._delete(key, if_version))

    async def delete_of_runs(self, runs: Sequence[tuple[str, str]]) -> int:
        """Delete for good what is kept of these (tenant_id, run_id); return how many items."""
        return await self._ask(lambda: self._store.delete_of_runs(runs))

    async def open(self) -> None:
        """Open the store. Raises StoreError when it cannot be used."""
        await self._thread.do(self._open)

    async def keep_swept(self) -> None:
        """Delete what has expired, now and then, until cancelled."""
        while True:
            await asyncio.sleep(self._sweep_every_s)
            try:
                while await self.sweep() == _SWEPT_AT_ONCE:
                    pass
            except PodiumError:
                continue  # it is logged; the next time will do

    async def sweep(self) -> int:
        """Delete some of what has expired; return how many items."""
        return await self._ask(lambda: self._store.sweep(self._now_ms, _SWEPT_AT_ONCE))

    async def close(self) -> None:
        """Finish what is under way and let go of the store."""
        await self._thread.close(self._store.close)

    # --- in the store's thread -------------------------------------------------------------------

    def _open(self) -> None:
        if not self._is_open:
            self._store.open()
            self._is_open = True

    def _get(self, key: ItemKey) -> Item | None:
        found = self._find(key)
        if found is None or self._is_expired(found[1]):
            return None
        return self._unsealed(key, *found)

    def _page(self, wanted: ItemRange, limit: int, max_bytes: int) -> tuple[list[tuple[str, Item]], bool]:
        items: list[tuple[str, Item]] = []
        size = 0
        for version, row in self._store.page(wanted, self._now_ms, limit + 1):
            size += len(row.sealed)
            if len(items) == limit or (items and size > max_bytes):
                return items, True
            key = ItemKey(wanted.tenant_id, wanted.kind, row.item_id)
            items.append((row.item_id, self._unsealed(key, version, row)))
        return items, False

    def _put(self, key: ItemKey, data: bytes, ttl_ms: int, run_id: str, if_version: int) -> int:
        while True:
            found = self._find(key)
            if if_version:
                live = found if found is not None and not self._is_expired(found[1]) else None
                if live is None or live[0] != if_version:
                    if live is not None and self._unsealed(key, *live).data == data:
                        return live[0]  # a repeated call, whose first try was heard
                    raise _changed()
            version = self._replace(key, data, ttl_ms, run_id, found[0] if found else 0)
            if version is not None:
                return version

    def _join(self, key: ItemKey, data: bytes, ttl_ms: int, run_id: str) -> tuple[int, Item | None]:
        while True:
            found = self._find(key)
            if found is not None and not self._is_expired(found[1]):
                return found[0], self._unsealed(key, *found)
            version = self._replace(key, data, ttl_ms, run_id, found[0] if found else 0)
            if version is not None:
                return version, None

    def _delete(self, key: ItemKey, if_version: int) -> bool:
        found = self._find(key)
        if found is None:
            return False
        if if_version and found[0] != if_version:
            raise _changed()
        return self._store.delete(found[0]) and not self._is_expired(found[1])

    def _find(self, key: ItemKey) -> tuple[int, ItemRow] | None:
        return self._store.find(key.tenant_id, key.kind.value, key.item_id)

    def _replace(self, key: ItemKey, data: bytes, ttl_ms: int, run_id: str, over: int) -> int | None:
        data_key, nonce = secrets.token_bytes(_KEY_BYTES), secrets.token_bytes(_NONCE_BYTES)
        context = _context(key)
        row = ItemRow(
            key.tenant_id,
            key.kind.value,
            key.item_id,
            run_id,
            self._now_ms + ttl_ms if ttl_ms else 0,
            self._wrapper.wrap(data_key, context),
            nonce + AESGCM(data_key).encrypt(nonce, data, context),
        )
        return self._store.replace(row, over)

    def _unsealed(self, key: ItemKey, version: int, row: ItemRow) -> Item:
        context = _context(key)
        data_key = self._wrapper.unwrap(row.wrapped_key, context)
        nonce, ciphertext = row.sealed[:_NONCE_BYTES], row.sealed[_NONCE_BYTES:]
        try:
            data = AESGCM(data_key).decrypt(nonce, ciphertext, context)
        except InvalidTag:
            raise StoreError("a stored item does not fit its key and name") from None
        return Item(data, version, row.expires_ms, row.run_id)

    def _is_expired(self, row: ItemRow) -> bool:
        return 0 < row.expires_ms <= self._now_ms

    @property
    def _now_ms(self) -> int:
        return self._clock.now_ns() // _NS_PER_MS

    async def _ask(self, work: Callable[[], T]) -> T:
        return await self._thread.ask(lambda: self._work(work))

    def _work(self, work: Callable[[], T]) -> T:
        try:
            self._open()
            return work()
        except StoreError:
            self._is_open = False
            raise


def _context(key: ItemKey) -> bytes:
    return b"podium-item/1\x00" + f"{key.tenant_id}\x00{key.kind.value}\x00{key.item_id}".encode()


def _changed() -> PodiumError:
    return PodiumError(Code.CONFLICT, "the item was changed meanwhile", reason="ITEM_CHANGED")
