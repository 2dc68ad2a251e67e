"""What a run tells its caller while it happens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podium_core.domain.errors import PodiumError
from podium_core.domain.plan import Plan
from podium_core.domain.policy import Verdict
from podium_core.domain.run import RunOutcome
from podium_core.domain.usage import Usage
from podium_core.orchestration.adaptation import Change
from podium_core.orchestration.ports import AttemptResult, Delta, PlanReply, Receipt, StepPrompt


@dataclass(frozen=True, slots=True)
class StepResult:
    """A finished step: data even when it failed. `started_us` and `ended_us` count from the run's start.

    `changes` are the parameters that its worker was told otherwise than they were asked. `prompt` is what
    the answering step was sent, and `replay` what its worker wants to get back as its own message, for
    whoever continues it. `vectors` are what a run of kind embed is for; it has no text.
    """

    round: int
    step_index: int
    worker_id: str
    ok: bool
    text: str
    reasoning: str
    tool_calls: tuple[dict[str, object], ...]
    finish_reason: str
    attempts: tuple[AttemptResult, ...]
    started_us: int
    ended_us: int
    error: PodiumError | None = None
    refusal: str = ""
    logprobs: tuple[Mapping[str, object], ...] = ()
    changes: Mapping[str, Change] = field(default_factory=dict)
    choice: int = 0
    prompt: StepPrompt | None = None
    replay: Mapping[str, object] | None = None
    vectors: tuple[bytes, ...] = ()

    @property
    def words(self) -> str:
        """What it said, be it an answer or a refusal."""
        return self.text or self.refusal

    @property
    def delta(self) -> Delta:
        """The whole output as one delta."""
        return Delta(self.text, self.reasoning, self.tool_calls, self.refusal, self.logprobs)


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of a round is recorded; steps start next. `verdicts` cover the whole pool."""

    run_id: str
    reply: PlanReply
    verdicts: tuple[Verdict, ...]

    @property
    def plan(self) -> Plan:
        """The plan itself."""
        return self.reply.plan


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step's inputs are complete and its first attempt begins."""

    round: int
    step_index: int
    worker_id: str


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """Output of the answering step, as it arrives; `choice` counts answers where several were asked for."""

    delta: Delta
    choice: int = 0


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step is done."""

    result: StepResult


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What one round came to.

    `accepted` means that its plan was three empty lists: the answer stands. `changed` says whether its answer
    differs from the one before, apart from white space; the first round changes nothing. `failure` is why
    there was no plan for the round, so that the answer before it stands.
    """

    round: int
    step_count: int
    accepted: bool = False
    changed: bool = False
    failure: str = ""

    @property
    def effect(self) -> str:
        """What the round did to the answer: `accepted`, `changed`, `kept` or `unplanned`."""
        if self.failure:
            return "unplanned"
        return "accepted" if self.accepted else "changed" if self.changed else "kept"


def round_facts(rounds: Sequence[RoundResult]) -> dict[str, str]:
    """Return what the record says of the rounds; without grades a flip can only be told as a change."""
    facts = {
        "round_count": str(len(rounds)),
        "flip_count": str(sum(result.changed for result in rounds)),
        "accepted": "yes" if rounds[-1].accepted else "no",
    }
    for result in rounds[1:]:
        failure = f" {result.failure}" if result.failure else ""
        facts[f"round.{result.round}"] = f"{result.effect}{failure}"
    return facts


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is sealed (or could not be: then `receipt` is None and `error` says so).

    `answers` are the answering step's, as many as were asked for, and `answer` is the first of them. `usage`
    is the answering attempt's, with the output of all answers; `other_usage` is everything else's (planning,
    earlier steps, retries, a prompt read again for another answer). Costs add up all attempts; `planning` are
    those of kind plan.
    """

    run_id: str
    outcome: RunOutcome
    answer: StepResult | None
    steps: tuple[StepResult, ...]
    usage: Usage
    other_usage: Usage
    cost_usd_micros: int
    duration_us: int
    receipt: Receipt | None
    error: PodiumError | None = None
    rounds: tuple[RoundResult, ...] = ()
    planning: tuple[AttemptResult, ...] = ()
    more_answers: tuple[StepResult, ...] = ()

    @property
    def answers(self) -> tuple[StepResult, ...]:
        """All answers, in the order of their choices; none when the run gave none."""
        return () if self.answer is None else (self.answer, *self.more_answers)

    @property
    def flip_count(self) -> int:
        """How many rounds changed the answer."""
        return sum(result.changed for result in self.rounds)


RunEvent = Planned | StepStarted | AnswerDelta | StepEnded | RunFinished
