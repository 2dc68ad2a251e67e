"""The conversation and stop ports over audit. Calls may be repeated, so a restart of audit is waited out."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc

from podium.audit.v1 import (
    conversation_service_pb2,
    conversation_service_pb2_grpc,
    stop_service_pb2,
    stop_service_pb2_grpc,
)
from podium_core.domain.clock import Clock
from podium_core.domain.conversation import Item, ItemKey, ItemRange
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.runtime.grpc_client import call_metadata
from podium_core.wire.conversation import ITEM_KIND, item_from_proto
from podium_gateway.adapters.inside import asked_of_audit
from podium_gateway.ports import ConversationPort, ItemPage, Joined, StopPort

T = TypeVar("T")

_MS_PER_S = 1_000


class AuditConversations(ConversationPort, StopPort):
    """Keeps items, and stops runs, in audit. Waits `wait_s` for an answer."""

    def __init__(self, channel: grpc.aio.Channel, clock: Clock, ids: IdFactory, *, wait_s: float) -> None:
        self._items: conversation_service_pb2_grpc.ConversationServiceAsyncStub = (
            conversation_service_pb2_grpc.ConversationServiceStub(channel)
        )
        self._stops: stop_service_pb2_grpc.StopServiceAsyncStub = stop_service_pb2_grpc.StopServiceStub(
            channel
        )
        self._clock = clock
        self._ids = ids
        self._wait_s = wait_s

    async def get(self, key: ItemKey, *, principal_id: str = "") -> Item | None:
        """Return what is kept, if anything."""
        request = conversation_service_pb2.GetItemRequest(
            tenant_id=key.tenant_id,
            kind=ITEM_KIND.to_proto(key.kind),
            item_id=key.item_id,
            principal_id=principal_id,
        )
        metadata = call_metadata()
        try:
            answer = await self._retried(
                lambda timeout: self._items.GetItem(request, timeout=timeout, metadata=metadata)
            )
        except PodiumError as error:
            if error.reason == "ITEM_UNKNOWN":
                return None
            raise
        return item_from_proto(answer.item)

    async def page(self, wanted: ItemRange, limit: int) -> ItemPage:
        """Return a page of items."""
        request = conversation_service_pb2.ListItemsRequest(
            tenant_id=wanted.tenant_id,
            kind=ITEM_KIND.to_proto(wanted.kind),
            prefix=wanted.prefix,
            after=wanted.after,
            descending=wanted.is_descending,
            limit=limit,
        )
        metadata = call_metadata()
        answer = await self._retried(
            lambda timeout: self._items.ListItems(request, timeout=timeout, metadata=metadata)
        )
        return ItemPage([(item.item_id, item_from_proto(item)) for item in answer.items], answer.has_more)

    async def put(
        self, key: ItemKey, data: bytes, *, ttl_s: float | None, run_id: str = "", if_version: int = 0
    ) -> int:
        """Keep data and return its version."""
        request = _put_request(key, data, ttl_s, run_id)
        request.if_version = if_version
        return (await self._put(request)).version

    async def join(self, key: ItemKey, data: bytes, *, ttl_s: float | None, run_id: str = "") -> Joined:
        """Keep data unless somebody came first."""
        request = _put_request(key, data, ttl_s, run_id)
        request.only_if_absent = True
        answer = await self._put(request)
        # A repeated call meets what its first try stored.
        if not answer.HasField("holder") or answer.holder.data == data:
            return Joined(answer.version)
        return Joined(answer.version, item_from_proto(answer.holder))

    async def delete(self, key: ItemKey, *, if_version: int = 0, principal_id: str = "") -> bool:
        """Delete for good and say whether there was anything."""
        request = conversation_service_pb2.DeleteItemRequest(
            tenant_id=key.tenant_id,
            kind=ITEM_KIND.to_proto(key.kind),
            item_id=key.item_id,
            if_version=if_version,
            principal_id=principal_id,
        )
        metadata = call_metadata()
        answer = await self._retried(
            lambda timeout: self._items.DeleteItem(request, timeout=timeout, metadata=metadata)
        )
        return answer.deleted

    async def stop_run(self, tenant_id: str, run_id: str, principal_id: str) -> None:
        """Record that the run must stop."""
        request = stop_service_pb2.RequestStopRequest(
            event_id=self._ids.new("evt"), tenant_id=tenant_id, run_id=run_id, principal_id=principal_id
        )
        metadata = call_metadata()
        await self._retried(
            lambda timeout: self._stops.RequestStop(request, timeout=timeout, metadata=metadata)
        )

    async def _put(
        self, request: conversation_service_pb2.PutItemRequest
    ) -> conversation_service_pb2.PutItemResponse:
        metadata = call_metadata()
        return await self._retried(
            lambda timeout: self._items.PutItem(request, timeout=timeout, metadata=metadata)
        )

    async def _retried(self, call: Callable[[float], Awaitable[T]]) -> T:
        return await asked_of_audit(call, budget_s=self._wait_s, clock=self._clock)


def _put_request(
    key: ItemKey, data: bytes, ttl_s: float | None, run_id: str
) -> conversation_service_pb2.PutItemRequest:
    return conversation_service_pb2.PutItemRequest(
        tenant_id=key.tenant_id,
        kind=ITEM_KIND.to_proto(key.kind),
        item_id=key.item_id,
        data=data,
        ttl_ms=0 if ttl_s is None else max(1, round(ttl_s * _MS_PER_S)),
        run_id=run_id,
    )
