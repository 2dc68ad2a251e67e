from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RequestStopRequest(_message.Message):
    __slots__ = ("event_id", "tenant_id", "run_id", "worker_id", "everything", "principal_id")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    EVERYTHING_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    tenant_id: str
    run_id: str
    worker_id: str
    everything: bool
    principal_id: str
    def __init__(self, event_id: _Optional[str] = ..., tenant_id: _Optional[str] = ..., run_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., everything: _Optional[bool] = ..., principal_id: _Optional[str] = ...) -> None: ...

class RequestStopResponse(_message.Message):
    __slots__ = ("leaf_index",)
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    def __init__(self, leaf_index: _Optional[int] = ...) -> None: ...

class ClearStopRequest(_message.Message):
    __slots__ = ("event_id", "tenant_id", "worker_id", "everything", "principal_id")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    EVERYTHING_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    tenant_id: str
    worker_id: str
    everything: bool
    principal_id: str
    def __init__(self, event_id: _Optional[str] = ..., tenant_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., everything: _Optional[bool] = ..., principal_id: _Optional[str] = ...) -> None: ...

class ClearStopResponse(_message.Message):
    __slots__ = ("leaf_index",)
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    def __init__(self, leaf_index: _Optional[int] = ...) -> None: ...

class ListStopsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Stop(_message.Message):
    __slots__ = ("tenant_id", "worker_id", "since_us")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_US_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    worker_id: str
    since_us: int
    def __init__(self, tenant_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., since_us: _Optional[int] = ...) -> None: ...

class ListStopsResponse(_message.Message):
    __slots__ = ("stops",)
    STOPS_FIELD_NUMBER: _ClassVar[int]
    stops: _containers.RepeatedCompositeFieldContainer[Stop]
    def __init__(self, stops: _Optional[_Iterable[_Union[Stop, _Mapping]]] = ...) -> None: ...
