"""What the runner needs from the outside: someone to plan, someone to work, someone to record.

The gateway gives gRPC adapters, training gives simulated or live workers, tests give fakes.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan
from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.domain.policy import Verdict
from podium_core.domain.pool import Pool, Worker
from podium_core.domain.run import (
    AttemptKind,
    AttemptOutcome,
    Caps,
    Message,
    Question,
    RunKind,
    RunOutcome,
)
from podium_core.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class PlanQuery:
    """What the Conductor is asked. `workers` is the eligible pool; its order carries no meaning.

    `tenant_id`, `pool_digest` and `run_is_open` matter to a planner that makes attempts of its own.
    `explain` asks for the prompt to come back with the plan.
    """

    run_id: str
    question: Question
    workers: tuple[Worker, ...]
    caps: Caps
    tier: str
    seed: int
    timeout_s: float
    round: int = 0
    previous_plan: Plan | None = None
    previous_answer: str = ""
    tenant_id: str = ""
    pool_digest: str = ""
    run_is_open: bool = False
    explain: bool = False


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """One finished attempt, good or bad, as usage accounting needs it."""

    attempt_id: str
    kind: AttemptKind
    worker_id: str
    outcome: AttemptOutcome
    usage: Usage
    cost_usd_micros: int
    latency_us: int
    error_reason: str = ""


@dataclass(frozen=True, slots=True)
class WorkerChance:
    """The probability of one worker at one choice, in millionths, raw and over the eligible pool."""

    worker_id: str
    raw_ppm: int
    eligible_ppm: int


@dataclass(frozen=True, slots=True)
class PlanReply:
    """A plan with its evidence. A plan without steps accepts the previous round's answer.

    `usage` includes that of `attempts`, the provider calls the plan took, if any.
    """

    plan: Plan
    raw_text: str = ""
    usage: Usage = Usage()
    model_digest: str = ""
    chances: tuple[tuple[WorkerChance, ...], ...] = ()
    generation_count: int = 1
    latency_us: int = 0
    seed: int = 0
    fallback_reason: str = ""
    attempts: tuple[AttemptResult, ...] = ()
    prompt: PlanPrompt | None = None
    tokenizer_digest: str = ""
    template_digest: str = ""


RUN_NOT_OPEN = "RUN_NOT_OPEN"
"""The reason of the error that asks for the run to be opened before it is planned."""


class PlanFailedError(PodiumError):
    """No plan came, and these `attempts` were made for it, which cost what they cost."""

    def __init__(
        self, code: Code, message: str, *, reason: str, attempts: tuple[AttemptResult, ...] = ()
    ) -> None:
        super().__init__(code, message, reason=reason)
        self.attempts = attempts


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """A stretch of a step's last user message; `is_question` marks the client's own words."""

    text: str
    is_question: bool = False


@dataclass(frozen=True, slots=True)
class StepPrompt:
    """What one worker is sent.

    `history` goes first, unchanged. Then the question's message: unchanged when `pieces` is empty,
    otherwise with its text replaced by the joined pieces (other content parts, such as images, stay). `turns`
    follow it: an answer that was not accepted, and why.
    """

    history: tuple[Message, ...]
    question: Message
    pieces: tuple[PromptPiece, ...] = ()
    turns: tuple[Message, ...] = ()

    @property
    def size_chars(self) -> int:
        """How long it is at most, images and sounds included."""
        pieces = sum(len(piece.text) for piece in self.pieces)
        return pieces + sum(m.size_chars for m in (*self.history, self.question, *self.turns))


@dataclass(frozen=True, slots=True)
class StepCall:
    """One attempt to make: one provider call, one permit."""

    attempt_id: str
    run_id: str
    tenant_id: str
    kind: AttemptKind
    round: int
    step_index: int
    worker_id: str
    pool_digest: str
    prompt: StepPrompt
    access: Access
    parameters: Mapping[str, object]
    max_output_tokens: int
    stream: bool
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Permitted:
    """The attempt is committed in the log; the provider is being called."""

    leaf_index: int


@dataclass(frozen=True, slots=True)
class Delta:
    """Output since the last delta. `tool_calls` are OpenAI tool call deltas with their indices.

    `refusal` is the text of a model that declines; `logprobs` are OpenAI's entries, one for each token of
    the text.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, object], ...] = ()
    refusal: str = ""
    logprobs: tuple[Mapping[str, object], ...] = ()

    @property
    def has_output(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.text or self.reasoning or self.tool_calls or self.refusal or self.logprobs)

    @property
    def size_chars(self) -> int:
        """Roughly how much there is of it, as far as that has no other bound."""
        said = len(self.text) + len(self.reasoning) + len(self.refusal)
        return said if not self.tool_calls else said + len(str(self.tool_calls))


@dataclass(frozen=True, slots=True)
class Completion:
    """The attempt's end. `message` holds the whole output of a call that was not streamed.

    `replay` is the assistant's message as the worker wants it back with tool results, if there is more to it
    than text and calls.
    """

    finish_reason: str
    usage: Usage
    cost_usd_micros: int
    latency_us: int
    first_delta_us: int = 0
    served_model: str = ""
    message: Delta = field(default_factory=Delta)
    replay: Mapping[str, object] | None = None


WorkerEvent = Permitted | Delta | Completion


@dataclass(frozen=True, slots=True)
class EmbedCall:
    """One attempt of kind embed to make. An input is a text, or the numbers of its tokens.

    `dimensions` is the length of each vector; 0 leaves it to the model.
    """

    attempt_id: str
    run_id: str
    tenant_id: str
    worker_id: str
    pool_digest: str
    inputs: tuple[object, ...]
    dimensions: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Embedded:
    """The end of an attempt of kind embed: one vector for each input, as 32-bit little-endian floats."""

    vectors: tuple[bytes, ...]
    usage: Usage
    cost_usd_micros: int
    latency_us: int
    served_model: str = ""


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """What is recorded before anything is dispatched."""

    event_id: str
    run_id: str
    kind: RunKind
    tenant_id: str
    principal_id: str
    requested_model: str
    question: Question
    verdicts: tuple[Verdict, ...]
    caps: Caps
    pool_digest: str
    price_digest: str
    policy_digest: str
    plan: PlanReply | None
    tenant_budget_usd_micros: int | None = None
    key_budget_usd_micros: int | None = None
    refusal_reason: str = ""
    continues_run_id: str = ""
    subject_id: str = ""


@dataclass(frozen=True, slots=True)
class SealedRun:
    """How a run ended, for the record that closes it."""

    event_id: str
    run_id: str
    outcome: RunOutcome
    answer: str = ""
    error_reason: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a client keeps: the run's leaves and a signed checkpoint (C2SP note) that covers them."""

    run_id: str
    leaf_indices: tuple[int, ...]
    checkpoint: str


class PlannerPort(Protocol):
    """Writes plans."""

    @property
    def opens_first(self) -> bool:
        """Whether the run should be open before its plan is made: the planner makes attempts of its own.

        Only a hint that saves a round trip: a planner that needs an open run and is not given one says so.
        """
        ...

    async def plan(self, query: PlanQuery) -> PlanReply:
        """Return a plan; raise PodiumError (PLAN_INVALID, DEADLINE, UNAVAILABLE) when there is none.

        PlanFailedError tells of attempts that were made in vain. The reason RUN_NOT_OPEN asks for the run to
        be opened first.
        """
        ...


class WorkerPort(Protocol):
    """Performs attempts."""

    def complete(self, call: StepCall) -> AsyncGenerator[WorkerEvent, None]:
        """Yield Permitted, any number of Deltas, then one Completion.

        Raises PodiumError: AUDIT_UNAVAILABLE or BUDGET_EXHAUSTED when no permit was given,
        PROVIDER_FAILED, RATE_LIMITED, DEADLINE, CONFLICT (stale pool). Closing the generator early
        cancels the provider call.
        """
        ...


class EmbedPort(Protocol):
    """Turns texts into vectors."""

    async def embed(self, call: EmbedCall) -> Embedded:
        """Make one attempt; raise PodiumError as WorkerPort does. Cancelling cancels the provider call."""
        ...


class NoEmbeddings(EmbedPort):
    """Nobody makes vectors."""

    async def embed(self, call: EmbedCall) -> Embedded:
        """Refuse."""
        raise PodiumError(
            Code.UNAVAILABLE, f"{call.worker_id} cannot make embeddings here", reason="NO_EMBEDDINGS"
        )


class FreshPoolPort(Protocol):
    """Knows whether the workers have changed since a run began."""

    async def newer(self, pool_digest: str, timeout_s: float) -> Pool | None:
        """Return the pool of now; None when that one is still it, or none can be had in time."""
        ...


class NoFreshPool(FreshPoolPort):
    """For runners whose pool never changes."""

    async def newer(self, pool_digest: str, timeout_s: float) -> Pool | None:
        """Return None."""
        del pool_digest, timeout_s
        return None


class RecorderPort(Protocol):
    """Writes the durable record. Every method is committed when it returns."""

    async def open_run(self, opened: OpenedRun) -> Receipt | None:
        """Record the opening; return a receipt only for a refused run, which is sealed at once."""
        ...

    async def append_plan(self, run_id: str, event_id: str, reply: PlanReply) -> None:
        """Record a later round's plan, or the first one when it came after the opening."""
        ...

    async def note(self, run_id: str, event_id: str, kind: str, facts: Mapping[str, str]) -> None:
        """Record short facts about an open run under a stable kind; never content."""
        ...

    async def seal(self, sealed: SealedRun) -> Receipt:
        """Close the run and return its receipt."""
        ...


Facts = Mapping[str, str | int | tuple[int, ...]]
"""What an observer is told of a stage: ids and counts, never content."""


class ObserverPort(Protocol):
    """Lets operators watch: a span around each stage. Observing never changes a run."""

    def span(self, stage: str, facts: Facts) -> AbstractContextManager[None]:
        """Return a context manager around one stage: `policy`, `plan` or `step`. Facts hold no content."""
        ...


class Unobserved:
    """Nobody watches."""

    def span(self, stage: str, facts: Facts) -> AbstractContextManager[None]:
        """Return a context manager that does nothing."""
        del stage, facts
        return nullcontext()
