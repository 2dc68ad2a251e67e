from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LimitKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIMIT_KIND_UNSPECIFIED: _ClassVar[LimitKind]
    LIMIT_KIND_REQUESTS: _ClassVar[LimitKind]
    LIMIT_KIND_TOKENS: _ClassVar[LimitKind]
    LIMIT_KIND_RUNS: _ClassVar[LimitKind]
LIMIT_KIND_UNSPECIFIED: LimitKind
LIMIT_KIND_REQUESTS: LimitKind
LIMIT_KIND_TOKENS: LimitKind
LIMIT_KIND_RUNS: LimitKind

class LimitName(_message.Message):
    __slots__ = ("tenant_id", "key_id", "kind")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    key_id: str
    kind: LimitKind
    def __init__(self, tenant_id: _Optional[str] = ..., key_id: _Optional[str] = ..., kind: _Optional[_Union[LimitKind, str]] = ...) -> None: ...

class LeaseSlicesRequest(_message.Message):
    __slots__ = ("holder_id", "slices")
    HOLDER_ID_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    holder_id: str
    slices: _containers.RepeatedCompositeFieldContainer[SliceRequest]
    def __init__(self, holder_id: _Optional[str] = ..., slices: _Optional[_Iterable[_Union[SliceRequest, _Mapping]]] = ...) -> None: ...

class SliceRequest(_message.Message):
    __slots__ = ("limit", "used_total", "reported_total", "in_use", "needed", "wanted")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    USED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    REPORTED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    NEEDED_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    limit: LimitName
    used_total: int
    reported_total: int
    in_use: int
    needed: int
    wanted: int
    def __init__(self, limit: _Optional[_Union[LimitName, _Mapping]] = ..., used_total: _Optional[int] = ..., reported_total: _Optional[int] = ..., in_use: _Optional[int] = ..., needed: _Optional[int] = ..., wanted: _Optional[int] = ...) -> None: ...

class LeaseSlicesResponse(_message.Message):
    __slots__ = ("slices",)
    SLICES_FIELD_NUMBER: _ClassVar[int]
    slices: _containers.RepeatedCompositeFieldContainer[Slice]
    def __init__(self, slices: _Optional[_Iterable[_Union[Slice, _Mapping]]] = ...) -> None: ...

class Slice(_message.Message):
    __slots__ = ("granted", "valid_ms", "is_limited", "limit", "left", "reset_ms", "retry_after_ms")
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    VALID_MS_FIELD_NUMBER: _ClassVar[int]
    IS_LIMITED_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RESET_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    granted: int
    valid_ms: int
    is_limited: bool
    limit: int
    left: int
    reset_ms: int
    retry_after_ms: int
    def __init__(self, granted: _Optional[int] = ..., valid_ms: _Optional[int] = ..., is_limited: _Optional[bool] = ..., limit: _Optional[int] = ..., left: _Optional[int] = ..., reset_ms: _Optional[int] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...
