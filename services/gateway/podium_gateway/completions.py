"""Stored chat completions: those that their client wanted stored, for its key to list, read and delete.

They lie in audit (class `conversation`), sealed, under ids that begin with their key's: for every other key
they do not exist. The messages that they answer lie beside them, so that a list is light.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from podium_core.config.tenants import Principal
from podium_core.domain.clock import Clock
from podium_core.domain.conversation import Item, ItemKey, ItemKind, ItemRange
from podium_core.domain.errors import Code, PodiumError
from podium_gateway.codecs.fields import refuse
from podium_gateway.codecs.listing import MAX_LISTED, ListWanted
from podium_gateway.codecs.strict_json import shown
from podium_gateway.ports import ConversationPort

Fields = Mapping[str, object]

_ID = re.compile(r"chatcmpl-[A-Za-z0-9]{1,64}")
_MAX_LOOKED_AT = 1_000
_MS_PER_S = 1_000
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class CompletionFilter:
    """Which completions a list shows: those of one model (empty: any) that have all of some metadata."""

    model: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    def fits(self, completion: Fields) -> bool:
        """Say whether the list shows a completion."""
        held = completion["metadata"]
        is_right = isinstance(held, Mapping) and all(held.get(k) == v for k, v in self.metadata.items())
        return is_right and self.model in ("", completion["model"])


class StoredCompletions:
    """Keeps completions for `ttl_s` seconds. Every method may raise PodiumError (AUDIT_UNAVAILABLE)."""

    def __init__(self, kept: ConversationPort, clock: Clock, ttl_s: float) -> None:
        self._kept = kept
        self._clock = clock
        self._ttl_s = ttl_s

    async def put(
        self, principal: Principal, completion: Fields, messages: Sequence[Fields], run_id: str
    ) -> None:
        """Keep a completion with the messages that it answers; raise PodiumError (TOO_LARGE)."""
        name = str(completion["id"])
        # In this order, so that whatever is listed has its messages.
        for kind, held in ((ItemKind.COMPLETION_MESSAGES, list(messages)), (ItemKind.COMPLETION, completion)):
            await self._kept.put(_key(principal, kind, name), _data(held), ttl_s=self._ttl_s, run_id=run_id)

    async def get(self, principal: Principal, name: str) -> Fields:
        """Return a completion; its owner's reading is recorded. Raises PodiumError (NOT_FOUND)."""
        return _fields((await self._item(principal, ItemKind.COMPLETION, name)).data)

    async def messages(self, principal: Principal, name: str) -> list[Fields]:
        """Return the messages that a completion answers, as recorded; raise PodiumError (NOT_FOUND)."""
        item = await self._item(principal, ItemKind.COMPLETION_MESSAGES, name)
        held: list[Fields] = json.loads(item.data)
        return [{**_plain(message), "id": f"{name}-{place}"} for place, message in enumerate(held)]

    async def listed(
        self, principal: Principal, wanted: ListWanted, only: CompletionFilter
    ) -> tuple[list[Fields], bool]:
        """Return a part of the list, oldest first unless descending, and whether there is more behind it.

        Looks through a thousand completions at most; then there is more, though nothing else may fit.
        """
        first = _key(principal, ItemKind.COMPLETION, "")
        if wanted.after and not _ID.fullmatch(wanted.after):
            raise refuse("after", "must be the id of a completion")
        after = _key(principal, ItemKind.COMPLETION, wanted.after).item_id if wanted.after else ""
        found: list[str] = []
        at_once = min(wanted.limit + 1, MAX_LISTED) if only == CompletionFilter() else MAX_LISTED
        for _ in range(_MAX_LOOKED_AT // MAX_LISTED):
            page = await self._kept.page(
                ItemRange(
                    first.tenant_id,
                    first.kind,
                    first.item_id,
                    after,
                    is_descending=wanted.is_descending,
                ),
                at_once,
            )
            for item_id, item in page.items:
                if not only.fits(_fields(item.data)):
                    continue
                if len(found) == wanted.limit:
                    return await self._shown(principal, found), True
                found.append(item_id.partition(":")[2])
            if not page.has_more:
                return await self._shown(principal, found), False
            after = page.items[-1][0]
        return await self._shown(principal, found), True

    async def update(self, principal: Principal, name: str, metadata: Mapping[str, str]) -> Fields:
        """Give a completion other metadata, and return it; raise PodiumError (NOT_FOUND)."""
        key = _key(principal, ItemKind.COMPLETION, name)
        while True:
            item = await self._item(principal, ItemKind.COMPLETION, name)
            changed = {**_fields(item.data), "metadata": dict(metadata)}
            left_s = (item.expires_at_ms - self._clock.now_ns() // _NS_PER_MS) / _MS_PER_S
            try:
                await self._kept.put(
                    key, _data(changed), ttl_s=max(left_s, 1.0), run_id=item.run_id, if_version=item.version
                )
            except PodiumError as error:
                if error.code is not Code.CONFLICT:
                    raise
            else:
                return changed

    async def delete(self, principal: Principal, name: str) -> None:
        """Delete a completion and its messages for good; raise PodiumError (NOT_FOUND)."""
        for kind in (ItemKind.COMPLETION, ItemKind.COMPLETION_MESSAGES):
            was_there = await self._kept.delete(_key(principal, kind, name), principal_id=principal.key_id)
            if kind is ItemKind.COMPLETION and not was_there:
                raise _unknown(name)

    async def _shown(self, principal: Principal, names: Sequence[str]) -> list[Fields]:
        """Return completions as they are read one by one, so that each reading is recorded."""
        keys = [_key(principal, ItemKind.COMPLETION, name) for name in names]
        items = await asyncio.gather(*(self._kept.get(key, principal_id=principal.key_id) for key in keys))
        return [_fields(item.data) for item in items if item is not None]

    async def _item(self, principal: Principal, kind: ItemKind, name: str) -> Item:
        if not _ID.fullmatch(name):
            raise _unknown(name)
        item = await self._kept.get(_key(principal, kind, name), principal_id=principal.key_id)
        if item is None:
            raise _unknown(name)
        return item


def _key(principal: Principal, kind: ItemKind, name: str) -> ItemKey:
    if name and not _ID.fullmatch(name):
        raise _unknown(name)
    owner = sha256(principal.key_id.encode()).hexdigest()[:32]
    return ItemKey(principal.tenant.tenant_id, kind, f"{owner}:{name}")


def _plain(message: Fields) -> dict[str, object]:
    """Return a message as OpenAI's clients list it: its content is a text, its parts stand beside it."""
    content = message.get("content")
    shown = {"name": None, **message, "content_parts": None}
    return {**shown, "content": None, "content_parts": content} if isinstance(content, list) else shown


def _data(held: object) -> bytes:
    return json.dumps(held, ensure_ascii=False).encode(errors="replace")


def _fields(data: bytes) -> Fields:
    fields: Fields = json.loads(data)
    return fields


def _unknown(name: str) -> PodiumError:
    return PodiumError(
        Code.NOT_FOUND,
        f"there is no stored completion {shown(name)}, or none any more, for this key",
        reason="COMPLETION_NOT_FOUND",
    )
