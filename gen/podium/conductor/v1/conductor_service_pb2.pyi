from podium.plan.v1 import plan_pb2 as _plan_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlanRequest(_message.Message):
    __slots__ = ("run_id", "messages", "cards", "caps", "tier", "round", "previous_plan", "previous_answer", "seed")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    CAPS_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_PLAN_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_ANSWER_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    cards: _containers.RepeatedCompositeFieldContainer[Card]
    caps: _plan_pb2.Caps
    tier: str
    round: int
    previous_plan: _plan_pb2.Plan
    previous_answer: str
    seed: int
    def __init__(self, run_id: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., cards: _Optional[_Iterable[_Union[Card, _Mapping]]] = ..., caps: _Optional[_Union[_plan_pb2.Caps, _Mapping]] = ..., tier: _Optional[str] = ..., round: _Optional[int] = ..., previous_plan: _Optional[_Union[_plan_pb2.Plan, _Mapping]] = ..., previous_answer: _Optional[str] = ..., seed: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("worker_id", "skills", "input_usd_micros_per_mtok", "output_usd_micros_per_mtok", "context_tokens", "output_tokens_per_second", "modalities", "is_demo")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    INPUT_USD_MICROS_PER_MTOK_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_USD_MICROS_PER_MTOK_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MODALITIES_FIELD_NUMBER: _ClassVar[int]
    IS_DEMO_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    skills: _containers.RepeatedCompositeFieldContainer[_plan_pb2.Skill]
    input_usd_micros_per_mtok: int
    output_usd_micros_per_mtok: int
    context_tokens: int
    output_tokens_per_second: int
    modalities: _containers.RepeatedScalarFieldContainer[str]
    is_demo: bool
    def __init__(self, worker_id: _Optional[str] = ..., skills: _Optional[_Iterable[_Union[_plan_pb2.Skill, _Mapping]]] = ..., input_usd_micros_per_mtok: _Optional[int] = ..., output_usd_micros_per_mtok: _Optional[int] = ..., context_tokens: _Optional[int] = ..., output_tokens_per_second: _Optional[int] = ..., modalities: _Optional[_Iterable[str]] = ..., is_demo: _Optional[bool] = ...) -> None: ...

class PlanResponse(_message.Message):
    __slots__ = ("plan", "raw_text", "choices", "usage", "model_digest", "latency_us", "generation_count")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    RAW_TEXT_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LATENCY_US_FIELD_NUMBER: _ClassVar[int]
    GENERATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    plan: _plan_pb2.Plan
    raw_text: str
    choices: _containers.RepeatedCompositeFieldContainer[_plan_pb2.StepChoice]
    usage: _plan_pb2.Usage
    model_digest: str
    latency_us: int
    generation_count: int
    def __init__(self, plan: _Optional[_Union[_plan_pb2.Plan, _Mapping]] = ..., raw_text: _Optional[str] = ..., choices: _Optional[_Iterable[_Union[_plan_pb2.StepChoice, _Mapping]]] = ..., usage: _Optional[_Union[_plan_pb2.Usage, _Mapping]] = ..., model_digest: _Optional[str] = ..., latency_us: _Optional[int] = ..., generation_count: _Optional[int] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("engine", "source", "model_digest", "tokenizer_digest", "template_digest", "max_steps", "tiers")
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    engine: str
    source: _plan_pb2.PlanSource
    model_digest: str
    tokenizer_digest: str
    template_digest: str
    max_steps: int
    tiers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, engine: _Optional[str] = ..., source: _Optional[_Union[_plan_pb2.PlanSource, str]] = ..., model_digest: _Optional[str] = ..., tokenizer_digest: _Optional[str] = ..., template_digest: _Optional[str] = ..., max_steps: _Optional[int] = ..., tiers: _Optional[_Iterable[str]] = ...) -> None: ...
