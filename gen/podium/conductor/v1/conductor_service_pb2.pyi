from podium.plan.v1 import plan_pb2 as _plan_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlanRequest(_message.Message):
    __slots__ = ("run_id", "messages", "cards", "caps", "tier", "round", "previous_plan", "previous_answer", "seed", "tenant_id", "pool_digest", "run_is_open", "explain")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    CAPS_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_PLAN_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_ANSWER_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RUN_IS_OPEN_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    cards: _containers.RepeatedCompositeFieldContainer[Card]
    caps: _plan_pb2.Caps
    tier: str
    round: int
    previous_plan: _plan_pb2.Plan
    previous_answer: str
    seed: int
    tenant_id: str
    pool_digest: str
    run_is_open: bool
    explain: bool
    def __init__(self, run_id: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., cards: _Optional[_Iterable[_Union[Card, _Mapping]]] = ..., caps: _Optional[_Union[_plan_pb2.Caps, _Mapping]] = ..., tier: _Optional[str] = ..., round: _Optional[int] = ..., previous_plan: _Optional[_Union[_plan_pb2.Plan, _Mapping]] = ..., previous_answer: _Optional[str] = ..., seed: _Optional[int] = ..., tenant_id: _Optional[str] = ..., pool_digest: _Optional[str] = ..., run_is_open: _Optional[bool] = ..., explain: _Optional[bool] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("role", "text", "image_count")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    role: str
    text: str
    image_count: int
    def __init__(self, role: _Optional[str] = ..., text: _Optional[str] = ..., image_count: _Optional[int] = ...) -> None: ...

class Card(_message.Message):
    __slots__ = ("worker_id", "skills", "input_usd_micros_per_mtok", "output_usd_micros_per_mtok", "context_tokens", "output_tokens_per_second", "modalities", "is_demo", "provider", "provider_model", "max_output_tokens", "has_price")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    INPUT_USD_MICROS_PER_MTOK_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_USD_MICROS_PER_MTOK_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MODALITIES_FIELD_NUMBER: _ClassVar[int]
    IS_DEMO_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    HAS_PRICE_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    skills: _containers.RepeatedCompositeFieldContainer[_plan_pb2.Skill]
    input_usd_micros_per_mtok: int
    output_usd_micros_per_mtok: int
    context_tokens: int
    output_tokens_per_second: int
    modalities: _containers.RepeatedScalarFieldContainer[str]
    is_demo: bool
    provider: str
    provider_model: str
    max_output_tokens: int
    has_price: bool
    def __init__(self, worker_id: _Optional[str] = ..., skills: _Optional[_Iterable[_Union[_plan_pb2.Skill, _Mapping]]] = ..., input_usd_micros_per_mtok: _Optional[int] = ..., output_usd_micros_per_mtok: _Optional[int] = ..., context_tokens: _Optional[int] = ..., output_tokens_per_second: _Optional[int] = ..., modalities: _Optional[_Iterable[str]] = ..., is_demo: _Optional[bool] = ..., provider: _Optional[str] = ..., provider_model: _Optional[str] = ..., max_output_tokens: _Optional[int] = ..., has_price: _Optional[bool] = ...) -> None: ...

class PlanResponse(_message.Message):
    __slots__ = ("plan", "raw_text", "choices", "usage", "model_digest", "latency_us", "generation_count", "attempts", "fallback_reason", "prompt", "tokenizer_digest", "template_digest")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    RAW_TEXT_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LATENCY_US_FIELD_NUMBER: _ClassVar[int]
    GENERATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_REASON_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    plan: _plan_pb2.Plan
    raw_text: str
    choices: _containers.RepeatedCompositeFieldContainer[_plan_pb2.StepChoice]
    usage: _plan_pb2.Usage
    model_digest: str
    latency_us: int
    generation_count: int
    attempts: _containers.RepeatedCompositeFieldContainer[PlanAttempt]
    fallback_reason: str
    prompt: Prompt
    tokenizer_digest: str
    template_digest: str
    def __init__(self, plan: _Optional[_Union[_plan_pb2.Plan, _Mapping]] = ..., raw_text: _Optional[str] = ..., choices: _Optional[_Iterable[_Union[_plan_pb2.StepChoice, _Mapping]]] = ..., usage: _Optional[_Union[_plan_pb2.Usage, _Mapping]] = ..., model_digest: _Optional[str] = ..., latency_us: _Optional[int] = ..., generation_count: _Optional[int] = ..., attempts: _Optional[_Iterable[_Union[PlanAttempt, _Mapping]]] = ..., fallback_reason: _Optional[str] = ..., prompt: _Optional[_Union[Prompt, _Mapping]] = ..., tokenizer_digest: _Optional[str] = ..., template_digest: _Optional[str] = ...) -> None: ...

class PlanAttempt(_message.Message):
    __slots__ = ("attempt_id", "worker_id", "outcome", "usage", "cost_usd_micros", "latency_us", "error_reason")
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COST_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_US_FIELD_NUMBER: _ClassVar[int]
    ERROR_REASON_FIELD_NUMBER: _ClassVar[int]
    attempt_id: str
    worker_id: str
    outcome: _plan_pb2.AttemptOutcome
    usage: _plan_pb2.Usage
    cost_usd_micros: int
    latency_us: int
    error_reason: str
    def __init__(self, attempt_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., outcome: _Optional[_Union[_plan_pb2.AttemptOutcome, str]] = ..., usage: _Optional[_Union[_plan_pb2.Usage, _Mapping]] = ..., cost_usd_micros: _Optional[int] = ..., latency_us: _Optional[int] = ..., error_reason: _Optional[str] = ...) -> None: ...

class Prompt(_message.Message):
    __slots__ = ("system", "user", "prefill", "worker_ids")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PREFILL_FIELD_NUMBER: _ClassVar[int]
    WORKER_IDS_FIELD_NUMBER: _ClassVar[int]
    system: str
    user: str
    prefill: str
    worker_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, system: _Optional[str] = ..., user: _Optional[str] = ..., prefill: _Optional[str] = ..., worker_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("engine", "source", "model_digest", "tokenizer_digest", "template_digest", "max_steps", "tiers", "has_probabilities", "makes_attempts")
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    HAS_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    MAKES_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    engine: str
    source: _plan_pb2.PlanSource
    model_digest: str
    tokenizer_digest: str
    template_digest: str
    max_steps: int
    tiers: _containers.RepeatedScalarFieldContainer[str]
    has_probabilities: bool
    makes_attempts: bool
    def __init__(self, engine: _Optional[str] = ..., source: _Optional[_Union[_plan_pb2.PlanSource, str]] = ..., model_digest: _Optional[str] = ..., tokenizer_digest: _Optional[str] = ..., template_digest: _Optional[str] = ..., max_steps: _Optional[int] = ..., tiers: _Optional[_Iterable[str]] = ..., has_probabilities: _Optional[bool] = ..., makes_attempts: _Optional[bool] = ...) -> None: ...
