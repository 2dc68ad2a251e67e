"""Conversation items in memory, for several gateways at once if a test wants."""

import itertools
from dataclasses import dataclass, field

from podium_core.domain.clock import Clock, SystemClock
from podium_core.domain.conversation import Item, ItemKey, ItemRange
from podium_core.domain.errors import Code, PodiumError
from podium_gateway.ports import ItemPage, Joined

_NS_PER_MS = 1_000_000
_MS_PER_S = 1_000


@dataclass(slots=True)
class FakeConversations:
    """Keeps items as audit does. `error` is raised by every call while it is set."""

    clock: Clock = field(default_factory=SystemClock)
    items: dict[ItemKey, Item] = field(default_factory=dict)
    recorded: list[tuple[str, ItemKey, str]] = field(default_factory=list)
    stopped: list[tuple[str, str, str]] = field(default_factory=list)
    error: PodiumError | None = None
    _versions: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def get(self, key: ItemKey, *, principal_id: str = "") -> Item | None:
        """Return what is kept and has not expired."""
        item = self._find(key)
        if item is not None and principal_id:
            self.recorded.append(("read", key, principal_id))
        return item

    async def page(self, wanted: ItemRange, limit: int) -> ItemPage:
        """Return what has not expired, by id."""
        names = sorted(
            (key.item_id for key in tuple(self.items) if self._is_in(key, wanted)),
            reverse=wanted.is_descending,
        )
        found = [(name, self._find(ItemKey(wanted.tenant_id, wanted.kind, name))) for name in names]
        live = [(name, item) for name, item in found if item is not None]
        return ItemPage(live[:limit], len(live) > limit)

    async def put(
        self, key: ItemKey, data: bytes, *, ttl_s: float | None, run_id: str = "", if_version: int = 0
    ) -> int:
        """Keep data."""
        self._check_version(key, if_version)
        return self._keep(key, data, ttl_s, run_id).version

    async def join(self, key: ItemKey, data: bytes, *, ttl_s: float | None, run_id: str = "") -> Joined:
        """Keep data unless somebody came first."""
        holder = self._find(key)
        if holder is not None:
            return Joined(holder.version, holder)
        return Joined(self._keep(key, data, ttl_s, run_id).version)

    async def delete(self, key: ItemKey, *, if_version: int = 0, principal_id: str = "") -> bool:
        """Delete."""
        self._check_version(key, if_version)
        item = self._find(key)
        self.items.pop(key, None)
        if item is not None and principal_id:
            self.recorded.append(("deleted", key, principal_id))
        return item is not None

    async def stop_run(self, tenant_id: str, run_id: str, principal_id: str) -> None:
        """Remember the stop."""
        if self.error is not None:
            raise self.error
        self.stopped.append((tenant_id, run_id, principal_id))

    @staticmethod
    def _is_in(key: ItemKey, wanted: ItemRange) -> bool:
        is_behind = not wanted.after or (
            key.item_id < wanted.after if wanted.is_descending else key.item_id > wanted.after
        )
        is_alike = (key.tenant_id, key.kind) == (wanted.tenant_id, wanted.kind)
        return is_alike and key.item_id.startswith(wanted.prefix) and is_behind

    def _find(self, key: ItemKey) -> Item | None:
        if self.error is not None:
            raise self.error
        item = self.items.get(key)
        if item is not None and 0 < item.expires_at_ms <= self.clock.now_ns() // _NS_PER_MS:
            del self.items[key]
            return None
        return item

    def _keep(self, key: ItemKey, data: bytes, ttl_s: float | None, run_id: str) -> Item:
        now_ms = self.clock.now_ns() // _NS_PER_MS
        expires_at_ms = 0 if ttl_s is None else now_ms + round(ttl_s * _MS_PER_S)
        self.items[key] = item = Item(data, next(self._versions), expires_at_ms, run_id)
        return item

    def _check_version(self, key: ItemKey, if_version: int) -> None:
        item = self._find(key)
        if if_version and (item is None or item.version != if_version):
            raise PodiumError(Code.CONFLICT, "the item was changed meanwhile", reason="ITEM_CHANGED")
