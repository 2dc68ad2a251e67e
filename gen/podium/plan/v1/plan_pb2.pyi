from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlanSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLAN_SOURCE_UNSPECIFIED: _ClassVar[PlanSource]
    PLAN_SOURCE_MODEL: _ClassVar[PlanSource]
    PLAN_SOURCE_EMBEDDED: _ClassVar[PlanSource]
    PLAN_SOURCE_WORKER: _ClassVar[PlanSource]
    PLAN_SOURCE_RULES: _ClassVar[PlanSource]
    PLAN_SOURCE_NAMED: _ClassVar[PlanSource]
    PLAN_SOURCE_STATIC: _ClassVar[PlanSource]
    PLAN_SOURCE_FALLBACK: _ClassVar[PlanSource]
    PLAN_SOURCE_FAST: _ClassVar[PlanSource]
    PLAN_SOURCE_CONTINUATION: _ClassVar[PlanSource]

class AttemptKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATTEMPT_KIND_UNSPECIFIED: _ClassVar[AttemptKind]
    ATTEMPT_KIND_PLAN: _ClassVar[AttemptKind]
    ATTEMPT_KIND_STEP: _ClassVar[AttemptKind]
    ATTEMPT_KIND_REPAIR: _ClassVar[AttemptKind]
    ATTEMPT_KIND_CONTINUATION: _ClassVar[AttemptKind]
    ATTEMPT_KIND_EMBED: _ClassVar[AttemptKind]
    ATTEMPT_KIND_PROBE: _ClassVar[AttemptKind]

class RunKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_KIND_UNSPECIFIED: _ClassVar[RunKind]
    RUN_KIND_CHAT: _ClassVar[RunKind]
    RUN_KIND_EMBED: _ClassVar[RunKind]
    RUN_KIND_CALIBRATE: _ClassVar[RunKind]
    RUN_KIND_TRAIN: _ClassVar[RunKind]
    RUN_KIND_PROBE: _ClassVar[RunKind]

class RunOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_OUTCOME_UNSPECIFIED: _ClassVar[RunOutcome]
    RUN_OUTCOME_ANSWERED: _ClassVar[RunOutcome]
    RUN_OUTCOME_REFUSED: _ClassVar[RunOutcome]
    RUN_OUTCOME_FAILED: _ClassVar[RunOutcome]
    RUN_OUTCOME_CANCELLED: _ClassVar[RunOutcome]
    RUN_OUTCOME_ABANDONED: _ClassVar[RunOutcome]

class AttemptOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATTEMPT_OUTCOME_UNSPECIFIED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_COMPLETED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_FAILED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_CANCELLED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_TIMED_OUT: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_UNKNOWN: _ClassVar[AttemptOutcome]

class UsageSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    USAGE_SOURCE_UNSPECIFIED: _ClassVar[UsageSource]
    USAGE_SOURCE_PROVIDER: _ClassVar[UsageSource]
    USAGE_SOURCE_ESTIMATED: _ClassVar[UsageSource]
    USAGE_SOURCE_UNKNOWN: _ClassVar[UsageSource]
PLAN_SOURCE_UNSPECIFIED: PlanSource
PLAN_SOURCE_MODEL: PlanSource
PLAN_SOURCE_EMBEDDED: PlanSource
PLAN_SOURCE_WORKER: PlanSource
PLAN_SOURCE_RULES: PlanSource
PLAN_SOURCE_NAMED: PlanSource
PLAN_SOURCE_STATIC: PlanSource
PLAN_SOURCE_FALLBACK: PlanSource
PLAN_SOURCE_FAST: PlanSource
PLAN_SOURCE_CONTINUATION: PlanSource
ATTEMPT_KIND_UNSPECIFIED: AttemptKind
ATTEMPT_KIND_PLAN: AttemptKind
ATTEMPT_KIND_STEP: AttemptKind
ATTEMPT_KIND_REPAIR: AttemptKind
ATTEMPT_KIND_CONTINUATION: AttemptKind
ATTEMPT_KIND_EMBED: AttemptKind
ATTEMPT_KIND_PROBE: AttemptKind
RUN_KIND_UNSPECIFIED: RunKind
RUN_KIND_CHAT: RunKind
RUN_KIND_EMBED: RunKind
RUN_KIND_CALIBRATE: RunKind
RUN_KIND_TRAIN: RunKind
RUN_KIND_PROBE: RunKind
RUN_OUTCOME_UNSPECIFIED: RunOutcome
RUN_OUTCOME_ANSWERED: RunOutcome
RUN_OUTCOME_REFUSED: RunOutcome
RUN_OUTCOME_FAILED: RunOutcome
RUN_OUTCOME_CANCELLED: RunOutcome
RUN_OUTCOME_ABANDONED: RunOutcome
ATTEMPT_OUTCOME_UNSPECIFIED: AttemptOutcome
ATTEMPT_OUTCOME_COMPLETED: AttemptOutcome
ATTEMPT_OUTCOME_FAILED: AttemptOutcome
ATTEMPT_OUTCOME_CANCELLED: AttemptOutcome
ATTEMPT_OUTCOME_TIMED_OUT: AttemptOutcome
ATTEMPT_OUTCOME_UNKNOWN: AttemptOutcome
USAGE_SOURCE_UNSPECIFIED: UsageSource
USAGE_SOURCE_PROVIDER: UsageSource
USAGE_SOURCE_ESTIMATED: UsageSource
USAGE_SOURCE_UNKNOWN: UsageSource

class Plan(_message.Message):
    __slots__ = ("steps", "source", "round")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    source: PlanSource
    round: int
    def __init__(self, steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., source: _Optional[_Union[PlanSource, str]] = ..., round: _Optional[int] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("worker_id", "subtask", "access", "sees_previous_round", "fallback_worker_id")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SUBTASK_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    SEES_PREVIOUS_ROUND_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    subtask: str
    access: _containers.RepeatedScalarFieldContainer[int]
    sees_previous_round: bool
    fallback_worker_id: str
    def __init__(self, worker_id: _Optional[str] = ..., subtask: _Optional[str] = ..., access: _Optional[_Iterable[int]] = ..., sees_previous_round: _Optional[bool] = ..., fallback_worker_id: _Optional[str] = ...) -> None: ...

class Caps(_message.Message):
    __slots__ = ("max_steps", "max_calls", "max_tokens", "max_cost_usd_micros", "has_max_cost", "max_duration_ms", "max_rounds", "max_attempts_per_step", "quorum", "straggler_wait_ms")
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_CALLS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_USD_MICROS_FIELD_NUMBER: _ClassVar[int]
    HAS_MAX_COST_FIELD_NUMBER: _ClassVar[int]
    MAX_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ROUNDS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    QUORUM_FIELD_NUMBER: _ClassVar[int]
    STRAGGLER_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    max_steps: int
    max_calls: int
    max_tokens: int
    max_cost_usd_micros: int
    has_max_cost: bool
    max_duration_ms: int
    max_rounds: int
    max_attempts_per_step: int
    quorum: int
    straggler_wait_ms: int
    def __init__(self, max_steps: _Optional[int] = ..., max_calls: _Optional[int] = ..., max_tokens: _Optional[int] = ..., max_cost_usd_micros: _Optional[int] = ..., has_max_cost: _Optional[bool] = ..., max_duration_ms: _Optional[int] = ..., max_rounds: _Optional[int] = ..., max_attempts_per_step: _Optional[int] = ..., quorum: _Optional[int] = ..., straggler_wait_ms: _Optional[int] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens", "reasoning_output_tokens", "source")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    cache_write_input_tokens: int
    reasoning_output_tokens: int
    source: UsageSource
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cached_input_tokens: _Optional[int] = ..., cache_write_input_tokens: _Optional[int] = ..., reasoning_output_tokens: _Optional[int] = ..., source: _Optional[_Union[UsageSource, str]] = ...) -> None: ...

class Skill(_message.Message):
    __slots__ = ("name", "accuracy_ppm", "sample_count", "measured_on")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_PPM_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEASURED_ON_FIELD_NUMBER: _ClassVar[int]
    name: str
    accuracy_ppm: int
    sample_count: int
    measured_on: str
    def __init__(self, name: _Optional[str] = ..., accuracy_ppm: _Optional[int] = ..., sample_count: _Optional[int] = ..., measured_on: _Optional[str] = ...) -> None: ...

class StepChoice(_message.Message):
    __slots__ = ("step_index", "chances")
    STEP_INDEX_FIELD_NUMBER: _ClassVar[int]
    CHANCES_FIELD_NUMBER: _ClassVar[int]
    step_index: int
    chances: _containers.RepeatedCompositeFieldContainer[WorkerChance]
    def __init__(self, step_index: _Optional[int] = ..., chances: _Optional[_Iterable[_Union[WorkerChance, _Mapping]]] = ...) -> None: ...

class WorkerChance(_message.Message):
    __slots__ = ("worker_id", "raw_ppm", "eligible_ppm")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    RAW_PPM_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_PPM_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    raw_ppm: int
    eligible_ppm: int
    def __init__(self, worker_id: _Optional[str] = ..., raw_ppm: _Optional[int] = ..., eligible_ppm: _Optional[int] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("worker_id", "allowed", "rule_id")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    allowed: bool
    rule_id: str
    def __init__(self, worker_id: _Optional[str] = ..., allowed: _Optional[bool] = ..., rule_id: _Optional[str] = ...) -> None: ...
