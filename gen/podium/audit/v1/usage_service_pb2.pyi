from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReadUsageRequest(_message.Message):
    __slots__ = ("tenant_id", "principal_id", "first_day", "last_day")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_DAY_FIELD_NUMBER: _ClassVar[int]
    LAST_DAY_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    principal_id: str
    first_day: str
    last_day: str
    def __init__(self, tenant_id: _Optional[str] = ..., principal_id: _Optional[str] = ..., first_day: _Optional[str] = ..., last_day: _Optional[str] = ...) -> None: ...

class ReadUsageResponse(_message.Message):
    __slots__ = ("rows", "money", "key_money")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    MONEY_FIELD_NUMBER: _ClassVar[int]
    KEY_MONEY_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[UsageRow]
    money: MonthMoney
    key_money: MonthMoney
    def __init__(self, rows: _Optional[_Iterable[_Union[UsageRow, _Mapping]]] = ..., money: _Optional[_Union[MonthMoney, _Mapping]] = ..., key_money: _Optional[_Union[MonthMoney, _Mapping]] = ...) -> None: ...

class UsageRow(_message.Message):
    __slots__ = ("day", "principal_id", "worker_id", "model", "requests", "attempts", "estimated_attempts", "unknown_attempts", "input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens", "reasoning_output_tokens", "cost_usd_micros")
    DAY_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    day: str
    principal_id: str
    worker_id: str
    model: str
    requests: int
    attempts: int
    estimated_attempts: int
    unknown_attempts: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    cache_write_input_tokens: int
    reasoning_output_tokens: int
    cost_usd_micros: int
    def __init__(self, day: _Optional[str] = ..., principal_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., model: _Optional[str] = ..., requests: _Optional[int] = ..., attempts: _Optional[int] = ..., estimated_attempts: _Optional[int] = ..., unknown_attempts: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cached_input_tokens: _Optional[int] = ..., cache_write_input_tokens: _Optional[int] = ..., reasoning_output_tokens: _Optional[int] = ..., cost_usd_micros: _Optional[int] = ...) -> None: ...

class MonthMoney(_message.Message):
    __slots__ = ("month", "budget_usd_micros", "settled_usd_micros", "reserved_usd_micros")
    MONTH_FIELD_NUMBER: _ClassVar[int]
    BUDGET_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    SETTLED_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    month: str
    budget_usd_micros: int
    settled_usd_micros: int
    reserved_usd_micros: int
    def __init__(self, month: _Optional[str] = ..., budget_usd_micros: _Optional[int] = ..., settled_usd_micros: _Optional[int] = ..., reserved_usd_micros: _Optional[int] = ...) -> None: ...
