from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GradeRequest(_message.Message):
    __slots__ = ("event_id", "tenant_id", "run_id", "principal_id", "score_ppm", "comment", "of_any_key")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    SCORE_PPM_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    OF_ANY_KEY_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    tenant_id: str
    run_id: str
    principal_id: str
    score_ppm: int
    comment: str
    of_any_key: bool
    def __init__(self, event_id: _Optional[str] = ..., tenant_id: _Optional[str] = ..., run_id: _Optional[str] = ..., principal_id: _Optional[str] = ..., score_ppm: _Optional[int] = ..., comment: _Optional[str] = ..., of_any_key: _Optional[bool] = ...) -> None: ...

class GradeResponse(_message.Message):
    __slots__ = ("leaf_index",)
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    def __init__(self, leaf_index: _Optional[int] = ...) -> None: ...

class ListGradeTalliesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGradeTalliesResponse(_message.Message):
    __slots__ = ("tallies",)
    TALLIES_FIELD_NUMBER: _ClassVar[int]
    tallies: _containers.RepeatedCompositeFieldContainer[GradeTally]
    def __init__(self, tallies: _Optional[_Iterable[_Union[GradeTally, _Mapping]]] = ...) -> None: ...

class GradeTally(_message.Message):
    __slots__ = ("tenant_id", "tier", "step_count", "grade_count", "sum_ppm", "sum_squares_ppm")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNT_FIELD_NUMBER: _ClassVar[int]
    GRADE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUM_PPM_FIELD_NUMBER: _ClassVar[int]
    SUM_SQUARES_PPM_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    tier: str
    step_count: int
    grade_count: int
    sum_ppm: int
    sum_squares_ppm: int
    def __init__(self, tenant_id: _Optional[str] = ..., tier: _Optional[str] = ..., step_count: _Optional[int] = ..., grade_count: _Optional[int] = ..., sum_ppm: _Optional[int] = ..., sum_squares_ppm: _Optional[int] = ...) -> None: ...
