from podium.plan.v1 import plan_pb2 as _plan_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerHealth(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKER_HEALTH_UNSPECIFIED: _ClassVar[WorkerHealth]
    WORKER_HEALTH_UP: _ClassVar[WorkerHealth]
    WORKER_HEALTH_DOWN: _ClassVar[WorkerHealth]
    WORKER_HEALTH_UNCONFIGURED: _ClassVar[WorkerHealth]
    WORKER_HEALTH_PAUSED: _ClassVar[WorkerHealth]
WORKER_HEALTH_UNSPECIFIED: WorkerHealth
WORKER_HEALTH_UP: WorkerHealth
WORKER_HEALTH_DOWN: WorkerHealth
WORKER_HEALTH_UNCONFIGURED: WorkerHealth
WORKER_HEALTH_PAUSED: WorkerHealth

class CompleteRequest(_message.Message):
    __slots__ = ("attempt_id", "run_id", "tenant_id", "kind", "round", "step_index", "worker_id", "pool_digest", "messages", "parameters_json", "max_output_tokens", "stream", "seen_steps", "sees_previous_round")
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    STEP_INDEX_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SEEN_STEPS_FIELD_NUMBER: _ClassVar[int]
    SEES_PREVIOUS_ROUND_FIELD_NUMBER: _ClassVar[int]
    attempt_id: str
    run_id: str
    tenant_id: str
    kind: _plan_pb2.AttemptKind
    round: int
    step_index: int
    worker_id: str
    pool_digest: str
    messages: _containers.RepeatedCompositeFieldContainer[Segment]
    parameters_json: bytes
    max_output_tokens: int
    stream: bool
    seen_steps: _containers.RepeatedScalarFieldContainer[int]
    sees_previous_round: bool
    def __init__(self, attempt_id: _Optional[str] = ..., run_id: _Optional[str] = ..., tenant_id: _Optional[str] = ..., kind: _Optional[_Union[_plan_pb2.AttemptKind, str]] = ..., round: _Optional[int] = ..., step_index: _Optional[int] = ..., worker_id: _Optional[str] = ..., pool_digest: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ..., parameters_json: _Optional[bytes] = ..., max_output_tokens: _Optional[int] = ..., stream: _Optional[bool] = ..., seen_steps: _Optional[_Iterable[int]] = ..., sees_previous_round: _Optional[bool] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("part_id", "data")
    PART_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    part_id: str
    data: bytes
    def __init__(self, part_id: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class CompleteResponse(_message.Message):
    __slots__ = ("permitted", "delta", "completed")
    PERMITTED_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    permitted: Permitted
    delta: Delta
    completed: Completed
    def __init__(self, permitted: _Optional[_Union[Permitted, _Mapping]] = ..., delta: _Optional[_Union[Delta, _Mapping]] = ..., completed: _Optional[_Union[Completed, _Mapping]] = ...) -> None: ...

class Permitted(_message.Message):
    __slots__ = ("leaf_index",)
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    def __init__(self, leaf_index: _Optional[int] = ...) -> None: ...

class Delta(_message.Message):
    __slots__ = ("text", "reasoning", "tool_calls_json", "refusal", "logprobs_json")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_JSON_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_JSON_FIELD_NUMBER: _ClassVar[int]
    text: str
    reasoning: str
    tool_calls_json: bytes
    refusal: str
    logprobs_json: bytes
    def __init__(self, text: _Optional[str] = ..., reasoning: _Optional[str] = ..., tool_calls_json: _Optional[bytes] = ..., refusal: _Optional[str] = ..., logprobs_json: _Optional[bytes] = ...) -> None: ...

class Completed(_message.Message):
    __slots__ = ("finish_reason", "usage", "cost_usd_micros", "latency_us", "first_delta_us", "provider_response_id", "served_model", "message", "replay_message_json")
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COST_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_US_FIELD_NUMBER: _ClassVar[int]
    FIRST_DELTA_US_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    SERVED_MODEL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REPLAY_MESSAGE_JSON_FIELD_NUMBER: _ClassVar[int]
    finish_reason: str
    usage: _plan_pb2.Usage
    cost_usd_micros: int
    latency_us: int
    first_delta_us: int
    provider_response_id: str
    served_model: str
    message: Delta
    replay_message_json: bytes
    def __init__(self, finish_reason: _Optional[str] = ..., usage: _Optional[_Union[_plan_pb2.Usage, _Mapping]] = ..., cost_usd_micros: _Optional[int] = ..., latency_us: _Optional[int] = ..., first_delta_us: _Optional[int] = ..., provider_response_id: _Optional[str] = ..., served_model: _Optional[str] = ..., message: _Optional[_Union[Delta, _Mapping]] = ..., replay_message_json: _Optional[bytes] = ...) -> None: ...

class PerformRequest(_message.Message):
    __slots__ = ("operations", "cancelled_ids", "taken")
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_IDS_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    operations: _containers.RepeatedCompositeFieldContainer[Operation]
    cancelled_ids: _containers.RepeatedScalarFieldContainer[int]
    taken: _containers.RepeatedCompositeFieldContainer[Taken]
    def __init__(self, operations: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ..., cancelled_ids: _Optional[_Iterable[int]] = ..., taken: _Optional[_Iterable[_Union[Taken, _Mapping]]] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("operation_id", "traceparent", "timeout_ms", "complete")
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    operation_id: int
    traceparent: str
    timeout_ms: int
    complete: CompleteRequest
    def __init__(self, operation_id: _Optional[int] = ..., traceparent: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., complete: _Optional[_Union[CompleteRequest, _Mapping]] = ...) -> None: ...

class Taken(_message.Message):
    __slots__ = ("operation_id", "event_count")
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    operation_id: int
    event_count: int
    def __init__(self, operation_id: _Optional[int] = ..., event_count: _Optional[int] = ...) -> None: ...

class PerformResponse(_message.Message):
    __slots__ = ("events", "is_closing", "untaken_ids")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    IS_CLOSING_FIELD_NUMBER: _ClassVar[int]
    UNTAKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[OperationEvent]
    is_closing: bool
    untaken_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, events: _Optional[_Iterable[_Union[OperationEvent, _Mapping]]] = ..., is_closing: _Optional[bool] = ..., untaken_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class OperationEvent(_message.Message):
    __slots__ = ("operation_id", "event", "status")
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    operation_id: int
    event: CompleteResponse
    status: bytes
    def __init__(self, operation_id: _Optional[int] = ..., event: _Optional[_Union[CompleteResponse, _Mapping]] = ..., status: _Optional[bytes] = ...) -> None: ...

class EmbedRequest(_message.Message):
    __slots__ = ("attempt_id", "run_id", "tenant_id", "worker_id", "pool_digest", "input_json", "dimensions")
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    INPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    attempt_id: str
    run_id: str
    tenant_id: str
    worker_id: str
    pool_digest: str
    input_json: bytes
    dimensions: int
    def __init__(self, attempt_id: _Optional[str] = ..., run_id: _Optional[str] = ..., tenant_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., pool_digest: _Optional[str] = ..., input_json: _Optional[bytes] = ..., dimensions: _Optional[int] = ...) -> None: ...

class EmbedResponse(_message.Message):
    __slots__ = ("leaf_index", "vectors", "usage", "cost_usd_micros", "latency_us", "provider_response_id", "served_model")
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COST_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_US_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    SERVED_MODEL_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    vectors: _containers.RepeatedScalarFieldContainer[bytes]
    usage: _plan_pb2.Usage
    cost_usd_micros: int
    latency_us: int
    provider_response_id: str
    served_model: str
    def __init__(self, leaf_index: _Optional[int] = ..., vectors: _Optional[_Iterable[bytes]] = ..., usage: _Optional[_Union[_plan_pb2.Usage, _Mapping]] = ..., cost_usd_micros: _Optional[int] = ..., latency_us: _Optional[int] = ..., provider_response_id: _Optional[str] = ..., served_model: _Optional[str] = ...) -> None: ...

class ListWorkersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ("workers", "pool_digest", "price_digest")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    POOL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PRICE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    pool_digest: str
    price_digest: str
    def __init__(self, workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ..., pool_digest: _Optional[str] = ..., price_digest: _Optional[str] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ("worker_id", "provider_model", "provider", "region", "is_demo", "health", "has_price", "input_usd_micros_per_mtok", "output_usd_micros_per_mtok", "context_tokens", "max_output_tokens", "modalities", "features", "skills", "output_tokens_per_second", "max_concurrency", "live", "reasoning_efforts", "hedge_after_ms", "cached_input_usd_micros_per_mtok", "cache_write_input_usd_micros_per_mtok", "hedge_is_learned")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_MODEL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    IS_DEMO_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    HAS_PRICE_FIELD_NUMBER: _ClassVar[int]
    INPUT_USD_MICROS_PER_MTOK_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_USD_MICROS_PER_MTOK_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MODALITIES_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    REASONING_EFFORTS_FIELD_NUMBER: _ClassVar[int]
    HEDGE_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    CACHED_INPUT_USD_MICROS_PER_MTOK_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_INPUT_USD_MICROS_PER_MTOK_FIELD_NUMBER: _ClassVar[int]
    HEDGE_IS_LEARNED_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    provider_model: str
    provider: str
    region: str
    is_demo: bool
    health: WorkerHealth
    has_price: bool
    input_usd_micros_per_mtok: int
    output_usd_micros_per_mtok: int
    context_tokens: int
    max_output_tokens: int
    modalities: _containers.RepeatedScalarFieldContainer[str]
    features: _containers.RepeatedScalarFieldContainer[str]
    skills: _containers.RepeatedCompositeFieldContainer[_plan_pb2.Skill]
    output_tokens_per_second: int
    max_concurrency: int
    live: LiveEstimate
    reasoning_efforts: _containers.RepeatedScalarFieldContainer[str]
    hedge_after_ms: int
    cached_input_usd_micros_per_mtok: int
    cache_write_input_usd_micros_per_mtok: int
    hedge_is_learned: bool
    def __init__(self, worker_id: _Optional[str] = ..., provider_model: _Optional[str] = ..., provider: _Optional[str] = ..., region: _Optional[str] = ..., is_demo: _Optional[bool] = ..., health: _Optional[_Union[WorkerHealth, str]] = ..., has_price: _Optional[bool] = ..., input_usd_micros_per_mtok: _Optional[int] = ..., output_usd_micros_per_mtok: _Optional[int] = ..., context_tokens: _Optional[int] = ..., max_output_tokens: _Optional[int] = ..., modalities: _Optional[_Iterable[str]] = ..., features: _Optional[_Iterable[str]] = ..., skills: _Optional[_Iterable[_Union[_plan_pb2.Skill, _Mapping]]] = ..., output_tokens_per_second: _Optional[int] = ..., max_concurrency: _Optional[int] = ..., live: _Optional[_Union[LiveEstimate, _Mapping]] = ..., reasoning_efforts: _Optional[_Iterable[str]] = ..., hedge_after_ms: _Optional[int] = ..., cached_input_usd_micros_per_mtok: _Optional[int] = ..., cache_write_input_usd_micros_per_mtok: _Optional[int] = ..., hedge_is_learned: _Optional[bool] = ...) -> None: ...

class LiveEstimate(_message.Message):
    __slots__ = ("answer_count", "output_tokens_per_second", "output_tokens_per_answer", "answer_p95_ms", "first_output_p95_ms")
    ANSWER_COUNT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_PER_ANSWER_FIELD_NUMBER: _ClassVar[int]
    ANSWER_P95_MS_FIELD_NUMBER: _ClassVar[int]
    FIRST_OUTPUT_P95_MS_FIELD_NUMBER: _ClassVar[int]
    answer_count: int
    output_tokens_per_second: int
    output_tokens_per_answer: int
    answer_p95_ms: int
    first_output_p95_ms: int
    def __init__(self, answer_count: _Optional[int] = ..., output_tokens_per_second: _Optional[int] = ..., output_tokens_per_answer: _Optional[int] = ..., answer_p95_ms: _Optional[int] = ..., first_output_p95_ms: _Optional[int] = ...) -> None: ...
