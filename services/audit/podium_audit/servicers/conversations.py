"""The conversation service over gRPC: checks names and sizes, and records what clients read and delete."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc

from podium.audit.v1 import conversation_service_pb2 as pb
from podium.audit.v1 import conversation_service_pb2_grpc
from podium_audit.conversations import Conversations
from podium_audit.log.group_commit import GroupCommit
from podium_audit.records import limits
from podium_audit.records.commands import Event, RecordRead
from podium_core.domain.conversation import Item, ItemKey, ItemRange
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.ids import IdFactory
from podium_core.wire.conversation import ITEM_KIND, item_to_proto

_PREFIX: Final = "/podium.audit.v1.ConversationService/"
_MS_PER_DAY: Final = 86_400_000
_MAX_TTL_MS: Final = 400 * _MS_PER_DAY
_MAX_PAGE: Final = 100
_MAX_PAGE_BYTES: Final = 2 * 2**20
_GATEWAY: Final = frozenset({"gateway"})

PERMISSIONS: Final[Mapping[str, frozenset[str]]] = {
    f"{_PREFIX}PutItem": _GATEWAY,
    f"{_PREFIX}GetItem": _GATEWAY,
    f"{_PREFIX}ListItems": _GATEWAY,
    f"{_PREFIX}DeleteItem": _GATEWAY,
}

_Context = grpc.aio.ServicerContext[Any, Any]


class ConversationServicer(conversation_service_pb2_grpc.ConversationServiceServicer):
    """One instance serves every call."""

    def __init__(
        self,
        conversations: Conversations,
        commit: GroupCommit,
        ids: IdFactory,
        *,
        max_item_bytes: int,
        keeps_content: Callable[[str], bool] = lambda _: True,
        longest_days: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        self._conversations = conversations
        self._commit = commit
        self._ids = ids
        self._max_item_bytes = max_item_bytes
        self._keeps_content = keeps_content
        self._longest_days = longest_days

    async def PutItem(  # noqa: N802
        self,
        request: pb.PutItemRequest,
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.PutItemResponse:
        """Store an item."""
        key = _key(request.tenant_id, request.kind, request.item_id)
        self._check(request)
        ttl_ms = self._ttl_ms(request)
        if request.only_if_absent:
            version, holder = await self._conversations.join(
                key, request.data, ttl_ms=ttl_ms, run_id=request.run_id
            )
            return pb.PutItemResponse(version=version, holder=item_to_proto(key, holder) if holder else None)
        version = await self._conversations.put(
            key, request.data, ttl_ms=ttl_ms, run_id=request.run_id, if_version=request.if_version
        )
        return pb.PutItemResponse(version=version)

    async def GetItem(  # noqa: N802
        self,
        request: pb.GetItemRequest,
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.GetItemResponse:
        """Return an item; a client's own read is recorded before it is answered."""
        key = _key(request.tenant_id, request.kind, request.item_id)
        item = await self._conversations.get(key)
        if item is None:
            raise PodiumError(Code.NOT_FOUND, "there is no such item", reason="ITEM_UNKNOWN", param="item_id")
        await self._record("conversation_read", item, request.principal_id)
        return pb.GetItemResponse(item=item_to_proto(key, item))

    async def ListItems(  # noqa: N802
        self,
        request: pb.ListItemsRequest,
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.ListItemsResponse:
        """Return a page of items."""
        prefix = _key(request.tenant_id, request.kind, request.prefix)
        if request.after:
            limits.check_id("after", request.after)
        if not 1 <= request.limit <= _MAX_PAGE:
            raise invalid(f"a page holds 1 to {_MAX_PAGE} items", param="limit")
        wanted = ItemRange(
            prefix.tenant_id, prefix.kind, prefix.item_id, request.after, is_descending=request.descending
        )
        items, has_more = await self._conversations.page(wanted, request.limit, _MAX_PAGE_BYTES)
        told = [item_to_proto(ItemKey(prefix.tenant_id, prefix.kind, name), item) for name, item in items]
        return pb.ListItemsResponse(items=told, has_more=has_more)

    async def DeleteItem(  # noqa: N802
        self,
        request: pb.DeleteItemRequest,
        context: _Context,  # noqa: ARG002 - gRPC's signature
    ) -> pb.DeleteItemResponse:
        """Delete an item; a client's own deletion is recorded before it is done."""
        key = _key(request.tenant_id, request.kind, request.item_id)
        item = await self._conversations.get(key) if request.principal_id else None
        if item is not None:
            await self._record("conversation_deleted", item, request.principal_id)
        return pb.DeleteItemResponse(
            deleted=await self._conversations.delete(key, if_version=request.if_version)
        )

    def _check(self, request: pb.PutItemRequest) -> None:
        if not self._keeps_content(request.tenant_id):
            raise PodiumError(
                Code.POLICY_DENIED,
                "this tenant's content is never stored: send store: false and no Idempotency-Key",
                reason="CONTENT_NOT_KEPT",
            )
        if len(request.data) > self._max_item_bytes:
            raise PodiumError(
                Code.TOO_LARGE,
                f"an item may have {self._max_item_bytes} bytes, not {len(request.data)}",
                reason="CONTENT_TOO_LARGE",
                param="data",
            )
        if request.ttl_ms > _MAX_TTL_MS:
            raise invalid(f"an item may be kept for {_MAX_TTL_MS} milliseconds at most", param="ttl_ms")
        if request.only_if_absent and request.if_version:
            raise invalid("ask for only_if_absent or if_version, not both", param="if_version")
        if request.run_id:
            limits.check_id("run_id", request.run_id)

    def _ttl_ms(self, request: pb.PutItemRequest) -> int:
        """Return how long to keep an item: as asked, but no longer than the tenant's retention."""
        days = self._longest_days(request.tenant_id)
        if days is None:
            return request.ttl_ms
        return min(request.ttl_ms or _MAX_TTL_MS, days * _MS_PER_DAY)

    async def _record(self, action: str, item: Item, principal_id: str) -> None:
        if not (principal_id and item.run_id):
            return
        limits.check_texts((("principal_id", principal_id),))
        event = Event.own(self._ids.new("evt"))
        await self._commit.submit(RecordRead(event, item.run_id, principal_id, action, with_content=True))


def _key(tenant_id: str, kind: int, item_id: str) -> ItemKey:
    limits.check_id("tenant_id", tenant_id)
    limits.check_id("item_id", item_id)
    return ItemKey(tenant_id, ITEM_KIND.from_proto(kind), item_id)
