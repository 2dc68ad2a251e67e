from podium.plan.v1 import plan_pb2 as _plan_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Content(_message.Message):
    __slots__ = ("part_id", "name", "media_type", "data")
    PART_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    part_id: str
    name: str
    media_type: str
    data: bytes
    def __init__(self, part_id: _Optional[str] = ..., name: _Optional[str] = ..., media_type: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class OpenRunRequest(_message.Message):
    __slots__ = ("event_id", "run_id", "kind", "tenant_id", "principal_id", "requested_model", "verdicts", "caps", "plan", "contents", "pool_digest", "price_digest", "policy_digest", "trace_id", "lease_ms", "refusal_reason", "continues_run_id", "tenant_budget_usd_micros", "has_tenant_budget", "key_budget_usd_micros", "subject_id")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_MODEL_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    CAPS_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    POOL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PRICE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    POLICY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_REASON_FIELD_NUMBER: _ClassVar[int]
    CONTINUES_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TENANT_BUDGET_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    HAS_TENANT_BUDGET_FIELD_NUMBER: _ClassVar[int]
    KEY_BUDGET_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    run_id: str
    kind: _plan_pb2.RunKind
    tenant_id: str
    principal_id: str
    requested_model: str
    verdicts: _containers.RepeatedCompositeFieldContainer[_plan_pb2.Verdict]
    caps: _plan_pb2.Caps
    plan: PlanRecord
    contents: _containers.RepeatedCompositeFieldContainer[Content]
    pool_digest: str
    price_digest: str
    policy_digest: str
    trace_id: str
    lease_ms: int
    refusal_reason: str
    continues_run_id: str
    tenant_budget_usd_micros: int
    has_tenant_budget: bool
    key_budget_usd_micros: int
    subject_id: str
    def __init__(self, event_id: _Optional[str] = ..., run_id: _Optional[str] = ..., kind: _Optional[_Union[_plan_pb2.RunKind, str]] = ..., tenant_id: _Optional[str] = ..., principal_id: _Optional[str] = ..., requested_model: _Optional[str] = ..., verdicts: _Optional[_Iterable[_Union[_plan_pb2.Verdict, _Mapping]]] = ..., caps: _Optional[_Union[_plan_pb2.Caps, _Mapping]] = ..., plan: _Optional[_Union[PlanRecord, _Mapping]] = ..., contents: _Optional[_Iterable[_Union[Content, _Mapping]]] = ..., pool_digest: _Optional[str] = ..., price_digest: _Optional[str] = ..., policy_digest: _Optional[str] = ..., trace_id: _Optional[str] = ..., lease_ms: _Optional[int] = ..., refusal_reason: _Optional[str] = ..., continues_run_id: _Optional[str] = ..., tenant_budget_usd_micros: _Optional[int] = ..., has_tenant_budget: _Optional[bool] = ..., key_budget_usd_micros: _Optional[int] = ..., subject_id: _Optional[str] = ...) -> None: ...

class PlanRecord(_message.Message):
    __slots__ = ("plan", "model_digest", "choices", "usage", "seed", "generation_count", "fallback_reason", "tokenizer_digest", "template_digest")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    GENERATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_REASON_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    plan: _plan_pb2.Plan
    model_digest: str
    choices: _containers.RepeatedCompositeFieldContainer[_plan_pb2.StepChoice]
    usage: _plan_pb2.Usage
    seed: int
    generation_count: int
    fallback_reason: str
    tokenizer_digest: str
    template_digest: str
    def __init__(self, plan: _Optional[_Union[_plan_pb2.Plan, _Mapping]] = ..., model_digest: _Optional[str] = ..., choices: _Optional[_Iterable[_Union[_plan_pb2.StepChoice, _Mapping]]] = ..., usage: _Optional[_Union[_plan_pb2.Usage, _Mapping]] = ..., seed: _Optional[int] = ..., generation_count: _Optional[int] = ..., fallback_reason: _Optional[str] = ..., tokenizer_digest: _Optional[str] = ..., template_digest: _Optional[str] = ...) -> None: ...

class OpenRunResponse(_message.Message):
    __slots__ = ("leaf_indices", "receipt")
    LEAF_INDICES_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    leaf_indices: _containers.RepeatedScalarFieldContainer[int]
    receipt: Receipt
    def __init__(self, leaf_indices: _Optional[_Iterable[int]] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ...) -> None: ...

class AppendRequest(_message.Message):
    __slots__ = ("event_id", "run_id", "plan", "note", "contents")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    run_id: str
    plan: PlanRecord
    note: Note
    contents: _containers.RepeatedCompositeFieldContainer[Content]
    def __init__(self, event_id: _Optional[str] = ..., run_id: _Optional[str] = ..., plan: _Optional[_Union[PlanRecord, _Mapping]] = ..., note: _Optional[_Union[Note, _Mapping]] = ..., contents: _Optional[_Iterable[_Union[Content, _Mapping]]] = ...) -> None: ...

class Note(_message.Message):
    __slots__ = ("kind", "facts")
    class FactsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    facts: _containers.ScalarMap[str, str]
    def __init__(self, kind: _Optional[str] = ..., facts: _Optional[_Mapping[str, str]] = ...) -> None: ...

class AppendResponse(_message.Message):
    __slots__ = ("leaf_index",)
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    def __init__(self, leaf_index: _Optional[int] = ...) -> None: ...

class PutContentRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: PutContentHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[PutContentHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class PutContentHeader(_message.Message):
    __slots__ = ("event_id", "run_id", "part_id", "name", "media_type", "size_bytes")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PART_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    run_id: str
    part_id: str
    name: str
    media_type: str
    size_bytes: int
    def __init__(self, event_id: _Optional[str] = ..., run_id: _Optional[str] = ..., part_id: _Optional[str] = ..., name: _Optional[str] = ..., media_type: _Optional[str] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class PutContentResponse(_message.Message):
    __slots__ = ("leaf_index",)
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    def __init__(self, leaf_index: _Optional[int] = ...) -> None: ...

class BodyPart(_message.Message):
    __slots__ = ("part_id", "inline")
    PART_ID_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    part_id: str
    inline: bytes
    def __init__(self, part_id: _Optional[str] = ..., inline: _Optional[bytes] = ...) -> None: ...

class BeginAttemptRequest(_message.Message):
    __slots__ = ("attempt_id", "run_id", "kind", "round", "step_index", "worker_id", "provider", "provider_model", "region", "endpoint_host", "seen_steps", "sees_previous_round", "body", "max_cost_usd_micros", "price_digest", "pool_digest", "body_sha256", "dispatch_id")
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    STEP_INDEX_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_MODEL_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_HOST_FIELD_NUMBER: _ClassVar[int]
    SEEN_STEPS_FIELD_NUMBER: _ClassVar[int]
    SEES_PREVIOUS_ROUND_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    PRICE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    POOL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    BODY_SHA256_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_ID_FIELD_NUMBER: _ClassVar[int]
    attempt_id: str
    run_id: str
    kind: _plan_pb2.AttemptKind
    round: int
    step_index: int
    worker_id: str
    provider: str
    provider_model: str
    region: str
    endpoint_host: str
    seen_steps: _containers.RepeatedScalarFieldContainer[int]
    sees_previous_round: bool
    body: _containers.RepeatedCompositeFieldContainer[BodyPart]
    max_cost_usd_micros: int
    price_digest: str
    pool_digest: str
    body_sha256: bytes
    dispatch_id: str
    def __init__(self, attempt_id: _Optional[str] = ..., run_id: _Optional[str] = ..., kind: _Optional[_Union[_plan_pb2.AttemptKind, str]] = ..., round: _Optional[int] = ..., step_index: _Optional[int] = ..., worker_id: _Optional[str] = ..., provider: _Optional[str] = ..., provider_model: _Optional[str] = ..., region: _Optional[str] = ..., endpoint_host: _Optional[str] = ..., seen_steps: _Optional[_Iterable[int]] = ..., sees_previous_round: _Optional[bool] = ..., body: _Optional[_Iterable[_Union[BodyPart, _Mapping]]] = ..., max_cost_usd_micros: _Optional[int] = ..., price_digest: _Optional[str] = ..., pool_digest: _Optional[str] = ..., body_sha256: _Optional[bytes] = ..., dispatch_id: _Optional[str] = ...) -> None: ...

class BeginAttemptResponse(_message.Message):
    __slots__ = ("leaf_index",)
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    def __init__(self, leaf_index: _Optional[int] = ...) -> None: ...

class EndAttemptRequest(_message.Message):
    __slots__ = ("event_id", "attempt_id", "run_id", "outcome", "usage", "cost_usd_micros", "latency_us", "finish_reason", "error_reason", "provider_response_id", "served_model", "dispatched", "contents")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COST_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_US_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_REASON_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    SERVED_MODEL_FIELD_NUMBER: _ClassVar[int]
    DISPATCHED_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    attempt_id: str
    run_id: str
    outcome: _plan_pb2.AttemptOutcome
    usage: _plan_pb2.Usage
    cost_usd_micros: int
    latency_us: int
    finish_reason: str
    error_reason: str
    provider_response_id: str
    served_model: str
    dispatched: bool
    contents: _containers.RepeatedCompositeFieldContainer[Content]
    def __init__(self, event_id: _Optional[str] = ..., attempt_id: _Optional[str] = ..., run_id: _Optional[str] = ..., outcome: _Optional[_Union[_plan_pb2.AttemptOutcome, str]] = ..., usage: _Optional[_Union[_plan_pb2.Usage, _Mapping]] = ..., cost_usd_micros: _Optional[int] = ..., latency_us: _Optional[int] = ..., finish_reason: _Optional[str] = ..., error_reason: _Optional[str] = ..., provider_response_id: _Optional[str] = ..., served_model: _Optional[str] = ..., dispatched: _Optional[bool] = ..., contents: _Optional[_Iterable[_Union[Content, _Mapping]]] = ...) -> None: ...

class EndAttemptResponse(_message.Message):
    __slots__ = ("leaf_index", "late")
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    late: bool
    def __init__(self, leaf_index: _Optional[int] = ..., late: _Optional[bool] = ...) -> None: ...

class SealRequest(_message.Message):
    __slots__ = ("event_id", "run_id", "outcome", "error_reason", "contents")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_REASON_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    run_id: str
    outcome: _plan_pb2.RunOutcome
    error_reason: str
    contents: _containers.RepeatedCompositeFieldContainer[Content]
    def __init__(self, event_id: _Optional[str] = ..., run_id: _Optional[str] = ..., outcome: _Optional[_Union[_plan_pb2.RunOutcome, str]] = ..., error_reason: _Optional[str] = ..., contents: _Optional[_Iterable[_Union[Content, _Mapping]]] = ...) -> None: ...

class SealResponse(_message.Message):
    __slots__ = ("receipt", "cost_usd_micros", "budget", "key_budget")
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    COST_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    KEY_BUDGET_FIELD_NUMBER: _ClassVar[int]
    receipt: Receipt
    cost_usd_micros: int
    budget: BudgetState
    key_budget: BudgetState
    def __init__(self, receipt: _Optional[_Union[Receipt, _Mapping]] = ..., cost_usd_micros: _Optional[int] = ..., budget: _Optional[_Union[BudgetState, _Mapping]] = ..., key_budget: _Optional[_Union[BudgetState, _Mapping]] = ...) -> None: ...

class BudgetState(_message.Message):
    __slots__ = ("tenant_id", "month", "budget_usd_micros", "settled_usd_micros", "reserved_usd_micros", "warn_percent", "principal_id")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    MONTH_FIELD_NUMBER: _ClassVar[int]
    BUDGET_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    SETTLED_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    WARN_PERCENT_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    month: str
    budget_usd_micros: int
    settled_usd_micros: int
    reserved_usd_micros: int
    warn_percent: int
    principal_id: str
    def __init__(self, tenant_id: _Optional[str] = ..., month: _Optional[str] = ..., budget_usd_micros: _Optional[int] = ..., settled_usd_micros: _Optional[int] = ..., reserved_usd_micros: _Optional[int] = ..., warn_percent: _Optional[int] = ..., principal_id: _Optional[str] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("run_id", "leaf_indices", "checkpoint")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEAF_INDICES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    leaf_indices: _containers.RepeatedScalarFieldContainer[int]
    checkpoint: str
    def __init__(self, run_id: _Optional[str] = ..., leaf_indices: _Optional[_Iterable[int]] = ..., checkpoint: _Optional[str] = ...) -> None: ...

class RenewLeaseRequest(_message.Message):
    __slots__ = ("run_ids", "lease_ms")
    RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    run_ids: _containers.RepeatedScalarFieldContainer[str]
    lease_ms: int
    def __init__(self, run_ids: _Optional[_Iterable[str]] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class RenewLeaseResponse(_message.Message):
    __slots__ = ("lost_run_ids", "cancelled_run_ids")
    LOST_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    lost_run_ids: _containers.RepeatedScalarFieldContainer[str]
    cancelled_run_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, lost_run_ids: _Optional[_Iterable[str]] = ..., cancelled_run_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class PerformRequest(_message.Message):
    __slots__ = ("operations", "cancelled_ids")
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_IDS_FIELD_NUMBER: _ClassVar[int]
    operations: _containers.RepeatedCompositeFieldContainer[Operation]
    cancelled_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, operations: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ..., cancelled_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("operation_id", "traceparent", "open_run", "append", "begin_attempt", "end_attempt", "seal")
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    OPEN_RUN_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    BEGIN_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    END_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    operation_id: int
    traceparent: str
    open_run: OpenRunRequest
    append: AppendRequest
    begin_attempt: BeginAttemptRequest
    end_attempt: EndAttemptRequest
    seal: SealRequest
    def __init__(self, operation_id: _Optional[int] = ..., traceparent: _Optional[str] = ..., open_run: _Optional[_Union[OpenRunRequest, _Mapping]] = ..., append: _Optional[_Union[AppendRequest, _Mapping]] = ..., begin_attempt: _Optional[_Union[BeginAttemptRequest, _Mapping]] = ..., end_attempt: _Optional[_Union[EndAttemptRequest, _Mapping]] = ..., seal: _Optional[_Union[SealRequest, _Mapping]] = ...) -> None: ...

class PerformResponse(_message.Message):
    __slots__ = ("results", "is_closing", "untaken_ids")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    IS_CLOSING_FIELD_NUMBER: _ClassVar[int]
    UNTAKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[OperationResult]
    is_closing: bool
    untaken_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, results: _Optional[_Iterable[_Union[OperationResult, _Mapping]]] = ..., is_closing: _Optional[bool] = ..., untaken_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class OperationResult(_message.Message):
    __slots__ = ("operation_id", "open_run", "append", "begin_attempt", "end_attempt", "seal", "status")
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    OPEN_RUN_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    BEGIN_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    END_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    operation_id: int
    open_run: OpenRunResponse
    append: AppendResponse
    begin_attempt: BeginAttemptResponse
    end_attempt: EndAttemptResponse
    seal: SealResponse
    status: bytes
    def __init__(self, operation_id: _Optional[int] = ..., open_run: _Optional[_Union[OpenRunResponse, _Mapping]] = ..., append: _Optional[_Union[AppendResponse, _Mapping]] = ..., begin_attempt: _Optional[_Union[BeginAttemptResponse, _Mapping]] = ..., end_attempt: _Optional[_Union[EndAttemptResponse, _Mapping]] = ..., seal: _Optional[_Union[SealResponse, _Mapping]] = ..., status: _Optional[bytes] = ...) -> None: ...
