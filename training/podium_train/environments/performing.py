"""Performs plans through the runner that serves: the one path of every environment, with nothing recorded.

An environment gives a `WorkerPort` and reads the `RunFinished`. Plans are given, so no Conductor is asked.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.domain.plan import Plan, PlanSource, Step
from podium_core.domain.plan_format import parse_plan
from podium_core.domain.plan_prompt import TIER, PlanPrompt
from podium_core.domain.pool import Pool
from podium_core.domain.run import Caps, Message, Question, RunKind
from podium_core.domain.usage import Usage
from podium_core.orchestration.events import Planned, RunFinished, StepResult
from podium_core.orchestration.limits import RunnerLimits
from podium_core.orchestration.ports import (
    ObserverPort,
    OpenedRun,
    PlanQuery,
    PlanReply,
    Receipt,
    SealedRun,
    Unobserved,
    WorkerPort,
)
from podium_core.orchestration.request import RunRequest
from podium_core.orchestration.runner import Runner
from podium_train.environments.port import Outcome, PerformedStep, Task, Verdict
from podium_train.rewards.reward import NO_PLAN, reward_of

NO_FALLBACK = Caps(max_attempts_per_step=1)
"""Every step is done by the chosen worker or not at all: a stand-in would blur who earned a reward."""

Rounds = Sequence[Sequence[Step]]
"""The steps of each round; a later round without steps accepts the answer before it."""


@dataclass(frozen=True, slots=True)
class Performer:
    """Runs given plans. Stateless between runs, so one instance serves many tasks at once."""

    clock: Clock
    ids: IdFactory
    limits: RunnerLimits = RunnerLimits()
    caps: Caps = NO_FALLBACK

    async def perform(
        self, rounds: Rounds, task: Task, workers: WorkerPort, observer: ObserverPort = Unobserved()
    ) -> RunFinished:
        """Return the finished run of these plans over `task.workers`.

        A step that fails is in the result. Raises PodiumError for a defect of the task: no usable worker,
        or a plan that is not performed as it was given. Cancelling closes every open call.
        """
        caps = replace(self.caps, max_rounds=len(rounds))
        runner = Runner(
            _GivenPlans(rounds), workers, _Unrecorded(), self.clock, self.ids, self.limits, observer
        )
        request = RunRequest(
            run_id=self.ids.new("run"),
            kind=RunKind.TRAIN,
            tenant_id="training",
            principal_id="training",
            requested_model=TIER,
            tier=TIER,
            question=question_of(task),
            caps=caps,
        )
        pool = Pool(task.workers, pool_digest="training", price_digest="training")
        finished: RunFinished | None = None
        async with aclosing(runner.run(request, pool)) as events:
            async for event in events:
                if isinstance(event, Planned) and event.reply.fallback_reason:
                    raise _not_performed(event.reply.fallback_reason)
                if isinstance(event, RunFinished):
                    finished = event
        if finished is None or any(result.failure for result in finished.rounds):
            raise _not_performed("a later round's plan was not performed")
        return finished


def question_of(task: Task) -> Question:
    """Return the task's question as one user message, as a client would send it."""
    return Question((Message("user", task.question, {"role": "user", "content": task.question}),))


def parsed(prompt: PlanPrompt, completion: str, *, round_index: int = 0) -> tuple[Step, ...]:
    """Return the steps that a completion plans, as serving would read it; raise PlanFormatError."""
    return parse_plan(prompt.prefill + completion, prompt.worker_ids, round_index=round_index)


def invalid_outcome(error: PodiumError) -> Outcome:
    """Return the outcome of a completion that is no plan."""
    return Outcome(Verdict.INVALID, NO_PLAN, reason=error.reason)


def unscorable_outcome(reason: str, steps: Sequence[PerformedStep] = (), *, rounds: int = 0) -> Outcome:
    """Return the outcome of a run that says nothing about the plan, as its surroundings failed."""
    return Outcome(Verdict.UNSCORABLE, None, reason=reason, steps=tuple(steps), rounds=rounds)


def scored_outcome(
    *, is_right: bool, steps: Sequence[PerformedStep], rounds: int = 1, is_exact: bool = True
) -> Outcome:
    """Return the outcome of a plan that was performed."""
    return Outcome(
        Verdict.SCORED,
        reward_of(is_right=is_right),
        is_right=is_right,
        steps=tuple(steps),
        rounds=rounds,
        is_exact=is_exact,
    )


def in_order(finished: RunFinished) -> list[StepResult]:
    """Return the steps of all rounds, by round and number, whichever ended first."""
    return sorted(finished.steps, key=lambda step: (step.round, step.step_index))


def first_failure(finished: RunFinished) -> str:
    """Return the reason of the first step that failed, or of the run's end; empty when all went well."""
    failed = next((step.error for step in in_order(finished) if not step.ok), finished.error)
    return failed.reason if failed is not None else ""


def performed_step(result: StepResult, *, is_right: bool | None = None, role: str = "") -> PerformedStep:
    """Return a step as it was performed by a real worker: all its attempts together."""
    usage = Usage()
    for attempt in result.attempts:
        usage += attempt.usage
    return PerformedStep(
        worker_id=result.worker_id,
        answer=result.text,
        is_right=is_right,
        usage=usage,
        cost_usd_micros=sum(attempt.cost_usd_micros for attempt in result.attempts),
        latency_us=result.ended_us - result.started_us,
        role=role,
    )


def _not_performed(why: str) -> PodiumError:
    return PodiumError(Code.PLAN_INVALID, f"the given plan cannot be performed over this pool: {why}")


class _GivenPlans:
    """A planner that has its plans already."""

    opens_first = False

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds

    async def plan(self, query: PlanQuery) -> PlanReply:
        steps = tuple(self._rounds[query.round])
        return PlanReply(Plan(steps, PlanSource.MODEL, query.round))


class _Unrecorded:
    """A recorder that keeps nothing: a training run is no evidence."""

    async def open_run(self, opened: OpenedRun) -> Receipt | None:
        del opened
        return None

    async def append_plan(self, run_id: str, event_id: str, reply: PlanReply) -> None:
        del run_id, event_id, reply

    async def note(self, run_id: str, event_id: str, kind: str, facts: Mapping[str, str]) -> None:
        del run_id, event_id, kind, facts

    async def seal(self, sealed: SealedRun) -> Receipt:
        return Receipt(sealed.run_id, (), "")
