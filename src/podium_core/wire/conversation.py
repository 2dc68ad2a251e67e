"""Conversation items on the wire."""

from podium.audit.v1 import conversation_service_pb2 as pb
from podium_core.domain.conversation import Item, ItemKey, ItemKind
from podium_core.wire.enums import EnumTable

ITEM_KIND = EnumTable(ItemKind, pb.ItemKind, "ITEM_KIND")


def item_to_proto(key: ItemKey, item: Item) -> pb.Item:
    """Return an item with its name; its tenant is the caller's own and is not repeated."""
    return pb.Item(
        kind=ITEM_KIND.to_proto(key.kind),
        item_id=key.item_id,
        data=item.data,
        version=item.version,
        expires_at_ms=item.expires_at_ms,
        run_id=item.run_id,
    )


def item_from_proto(message: pb.Item) -> Item:
    """Return what an item holds."""
    return Item(message.data, message.version, message.expires_at_ms, message.run_id)
