"""What all rounds and steps of one run share."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.domain.pool import Pool
from podium_core.domain.run import AttemptKind, Caps, Question
from podium_core.domain.usage import Usage
from podium_core.orchestration.contract import AnswerContract
from podium_core.orchestration.eligible import token_bound
from podium_core.orchestration.ledger import Ledger
from podium_core.orchestration.limits import RunnerLimits
from podium_core.orchestration.ports import AttemptResult, ObserverPort, WorkerPort
from podium_core.orchestration.retry_budget import RetryBudget


@dataclass(slots=True)
class RunContext:
    """The run's request, limits, ledger and ports, and every attempt made so far.

    `planning_usage` is what planning took besides attempts: an engine of the Conductor's own.
    """

    run_id: str
    tenant_id: str
    question: Question
    parameters: Mapping[str, object]
    max_output_tokens: int | None
    caps: Caps
    pool: Pool
    workers: WorkerPort
    observer: ObserverPort
    clock: Clock
    ids: IdFactory
    limits: RunnerLimits
    started_ns: int
    deadline_ns: int
    ledger: Ledger
    retries: RetryBudget
    contract: AnswerContract | None = None
    answer_count: int = 1
    attempts: list[AttemptResult] = field(default_factory=list)
    planning_usage: Usage = Usage()
    step_kind: AttemptKind = AttemptKind.STEP
    fixed_input_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        # The client's conversation and parameters (tools and schemas can be long) go with every step.
        self.fixed_input_tokens = token_bound(self.question) + len(json.dumps(dict(self.parameters)))

    def count_planning(self, attempts: Iterable[AttemptResult]) -> None:
        """Take in attempts that the planner made, on the run's account."""
        for attempt in attempts:
            self.attempts.append(attempt)
            self.ledger.spend_call(attempt.usage, attempt.cost_usd_micros)

    @property
    def elapsed_us(self) -> int:
        """Microseconds since the run started."""
        return (self.clock.monotonic_ns() - self.started_ns) // 1_000

    @property
    def left_s(self) -> float:
        """Seconds until the run's deadline; negative when it is over."""
        return (self.deadline_ns - self.clock.monotonic_ns()) / 1e9

    def out_of_time(self) -> PodiumError:
        """Return what an attempt failed of whose time was over: the run's, or only its own."""
        if self.left_s <= 0:
            return PodiumError(
                Code.DEADLINE, "the run's time is over; raise podium.max_seconds", reason="RUN_DEADLINE"
            )
        return PodiumError(Code.DEADLINE, "the worker did not answer in time", reason="STEP_DEADLINE")
