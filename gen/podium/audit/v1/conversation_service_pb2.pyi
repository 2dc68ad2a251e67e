from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ItemKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ITEM_KIND_UNSPECIFIED: _ClassVar[ItemKind]
    ITEM_KIND_RESPONSE: _ClassVar[ItemKind]
    ITEM_KIND_BACKGROUND: _ClassVar[ItemKind]
    ITEM_KIND_CONTINUATION: _ClassVar[ItemKind]
    ITEM_KIND_IDEMPOTENCY: _ClassVar[ItemKind]
    ITEM_KIND_SHARED_KEY: _ClassVar[ItemKind]
    ITEM_KIND_COMPLETION: _ClassVar[ItemKind]
    ITEM_KIND_COMPLETION_MESSAGES: _ClassVar[ItemKind]
ITEM_KIND_UNSPECIFIED: ItemKind
ITEM_KIND_RESPONSE: ItemKind
ITEM_KIND_BACKGROUND: ItemKind
ITEM_KIND_CONTINUATION: ItemKind
ITEM_KIND_IDEMPOTENCY: ItemKind
ITEM_KIND_SHARED_KEY: ItemKind
ITEM_KIND_COMPLETION: ItemKind
ITEM_KIND_COMPLETION_MESSAGES: ItemKind

class Item(_message.Message):
    __slots__ = ("kind", "item_id", "data", "version", "expires_at_ms", "run_id")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    kind: ItemKind
    item_id: str
    data: bytes
    version: int
    expires_at_ms: int
    run_id: str
    def __init__(self, kind: _Optional[_Union[ItemKind, str]] = ..., item_id: _Optional[str] = ..., data: _Optional[bytes] = ..., version: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., run_id: _Optional[str] = ...) -> None: ...

class PutItemRequest(_message.Message):
    __slots__ = ("tenant_id", "kind", "item_id", "data", "ttl_ms", "run_id", "only_if_absent", "if_version")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ONLY_IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    kind: ItemKind
    item_id: str
    data: bytes
    ttl_ms: int
    run_id: str
    only_if_absent: bool
    if_version: int
    def __init__(self, tenant_id: _Optional[str] = ..., kind: _Optional[_Union[ItemKind, str]] = ..., item_id: _Optional[str] = ..., data: _Optional[bytes] = ..., ttl_ms: _Optional[int] = ..., run_id: _Optional[str] = ..., only_if_absent: _Optional[bool] = ..., if_version: _Optional[int] = ...) -> None: ...

class PutItemResponse(_message.Message):
    __slots__ = ("version", "holder")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    version: int
    holder: Item
    def __init__(self, version: _Optional[int] = ..., holder: _Optional[_Union[Item, _Mapping]] = ...) -> None: ...

class GetItemRequest(_message.Message):
    __slots__ = ("tenant_id", "kind", "item_id", "principal_id")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    kind: ItemKind
    item_id: str
    principal_id: str
    def __init__(self, tenant_id: _Optional[str] = ..., kind: _Optional[_Union[ItemKind, str]] = ..., item_id: _Optional[str] = ..., principal_id: _Optional[str] = ...) -> None: ...

class GetItemResponse(_message.Message):
    __slots__ = ("item",)
    ITEM_FIELD_NUMBER: _ClassVar[int]
    item: Item
    def __init__(self, item: _Optional[_Union[Item, _Mapping]] = ...) -> None: ...

class ListItemsRequest(_message.Message):
    __slots__ = ("tenant_id", "kind", "prefix", "after", "descending", "limit")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    DESCENDING_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    kind: ItemKind
    prefix: str
    after: str
    descending: bool
    limit: int
    def __init__(self, tenant_id: _Optional[str] = ..., kind: _Optional[_Union[ItemKind, str]] = ..., prefix: _Optional[str] = ..., after: _Optional[str] = ..., descending: _Optional[bool] = ..., limit: _Optional[int] = ...) -> None: ...

class ListItemsResponse(_message.Message):
    __slots__ = ("items", "has_more")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Item]
    has_more: bool
    def __init__(self, items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., has_more: _Optional[bool] = ...) -> None: ...

class DeleteItemRequest(_message.Message):
    __slots__ = ("tenant_id", "kind", "item_id", "if_version", "principal_id")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    kind: ItemKind
    item_id: str
    if_version: int
    principal_id: str
    def __init__(self, tenant_id: _Optional[str] = ..., kind: _Optional[_Union[ItemKind, str]] = ..., item_id: _Optional[str] = ..., if_version: _Optional[int] = ..., principal_id: _Optional[str] = ...) -> None: ...

class DeleteItemResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    def __init__(self, deleted: _Optional[bool] = ...) -> None: ...
