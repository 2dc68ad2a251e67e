"""One attempt of a step: reserve its worst case, call the worker, pass on what comes, account for it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Step
from podium_core.domain.pool import Worker
from podium_core.domain.run import AttemptKind, AttemptOutcome
from podium_core.domain.usage import Usage, UsageSource, read_failure_facts
from podium_core.orchestration.adaptation import adapt
from podium_core.orchestration.context import RunContext
from podium_core.orchestration.events import AnswerDelta, RunEvent
from podium_core.orchestration.ledger import Reservation
from podium_core.orchestration.outputs import Output
from podium_core.orchestration.ports import (
    AttemptResult,
    Completion,
    Delta,
    Permitted,
    StepCall,
    StepPrompt,
)

_NOTHING = Reservation(0, 0, 0)

Emit = Callable[[RunEvent], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StepTask:
    """A step that is ready to start: everything it may see is in its prompt.

    `choice` counts the answers where several were asked for.
    """

    round: int
    step_index: int
    step: Step
    prompt: StepPrompt
    is_answer: bool
    live: bool
    choice: int = 0
    kind: AttemptKind = AttemptKind.STEP


class Floor:
    """Lets one of several attempts at a step speak to the client: the first that has something to say."""

    def __init__(self) -> None:
        self.speaker: Attempt | None = None
        self.on_taken: Callable[[Attempt], None] | None = None

    def take(self, attempt: "Attempt") -> bool:
        """Say whether this attempt may speak."""
        if self.speaker is None:
            self.speaker = attempt
            if self.on_taken is not None:
                self.on_taken(attempt)
        return self.speaker is attempt


@dataclass(eq=False, slots=True)
class Attempt:
    """One attempt under way, and what became of it."""

    call: StepCall
    reservation: Reservation
    started_us: int
    floor: Floor = field(default_factory=Floor)
    output: Output = field(default_factory=Output)
    held: list[Delta] = field(default_factory=list)
    sent: bool = False
    permitted: bool = False
    completion: Completion | None = None
    error: PodiumError | None = None
    result: AttemptResult | None = None


def begin_attempt(context: RunContext, task: StepTask, worker_id: str) -> Attempt:
    """Return an attempt with its worst case reserved; or with the error that forbids it."""
    worker = context.pool.by_id[worker_id]
    started_us = context.elapsed_us
    try:
        reservation = context.ledger.reserve(
            context.fixed_input_tokens + _prompt_bytes(task.prompt),
            _output_limit(context, task, worker),
            worker.price,
        )
    except PodiumError as error:
        return Attempt(_call(context, task, worker, 0), _NOTHING, started_us, error=error)
    return Attempt(_call(context, task, worker, reservation.max_output_tokens), reservation, started_us)


async def make_attempt(context: RunContext, task: StepTask, attempt: Attempt, emit: Emit) -> None:
    """Make an attempt that was begun; its error and its account stay with it. Only cancellation is raised."""
    if attempt.error is not None:
        return
    try:
        await _listen(context, task, attempt, emit)
    except PodiumError as error:
        attempt.error = error
    except TimeoutError:
        attempt.error = context.out_of_time()
    except asyncio.CancelledError:
        attempt.error = PodiumError(Code.CANCELLED, "the attempt was cancelled")
        raise
    finally:
        attempt.result = _account(context, attempt)


async def give(task: StepTask, attempt: Attempt, emit: Emit) -> None:
    """Give out what was held back; from then on the attempt is the answer.

    Raises PodiumError (HEDGE_LOST) when another attempt already is.
    """
    deltas, attempt.held = attempt.held, []
    for delta in deltas:
        if not attempt.floor.take(attempt):
            raise PodiumError(Code.CANCELLED, "another attempt was faster", reason="HEDGE_LOST")
        attempt.sent = True
        await emit(AnswerDelta(delta, task.choice))


async def _listen(context: RunContext, task: StepTask, attempt: Attempt, emit: Emit) -> None:
    stream = context.workers.complete(attempt.call)
    async with asyncio.timeout(attempt.call.timeout_s), aclosing(stream) as events:
        async for event in events:
            if isinstance(event, Permitted):
                attempt.permitted = True
                continue
            delta = event if isinstance(event, Delta) else event.message
            if delta.has_output:
                attempt.output.add(delta)
                if task.live:
                    attempt.held.append(delta)
                    # What may yet break the answer's contract is held back.
                    if context.contract is None or attempt.sent or context.contract.opens(delta):
                        await give(task, attempt, emit)
            if isinstance(event, Completion):
                attempt.completion = event
    if attempt.completion is None:
        raise PodiumError(Code.PROVIDER_FAILED, "the worker's answer ended early", reason="STREAM_INCOMPLETE")


def _call(context: RunContext, task: StepTask, worker: Worker, max_output_tokens: int) -> StepCall:
    told = adapt(context.parameters, worker.card, is_answer=task.is_answer)
    return StepCall(
        attempt_id=context.ids.new("att"),
        run_id=context.run_id,
        tenant_id=context.tenant_id,
        kind=task.kind,
        round=task.round,
        step_index=task.step_index,
        worker_id=worker.worker_id,
        pool_digest=context.pool.pool_digest,
        prompt=task.prompt,
        access=task.step.access,
        parameters=told.parameters,
        max_output_tokens=max_output_tokens,
        stream=task.live,
        timeout_s=max(0.0, min(context.limits.step_timeout_s, context.left_s)),
    )


def _output_limit(context: RunContext, task: StepTask, worker: Worker) -> int:
    wanted = context.max_output_tokens if task.is_answer else None
    limit = wanted if wanted is not None else context.limits.inner_step_output_tokens
    return min(limit, worker.card.max_output_tokens or limit)


def _account(context: RunContext, attempt: Attempt) -> AttemptResult:
    """Settle the attempt in the ledger and add it to the run's attempts."""
    error = attempt.error
    usage, cost_usd_micros = _known_account(attempt) or (
        Usage(source=UsageSource.UNKNOWN),
        attempt.reservation.cost_usd_micros,
    )
    if attempt.completion or usage.source is not UsageSource.UNKNOWN:
        context.ledger.settle(attempt.reservation, usage, cost_usd_micros)
    # Otherwise nobody can say what was used: its worst case stays reserved.
    result = AttemptResult(
        attempt.call.attempt_id,
        attempt.call.kind,
        attempt.call.worker_id,
        _outcome(error),
        usage,
        cost_usd_micros,
        context.elapsed_us - attempt.started_us,
        error.reason if error else "",
    )
    context.attempts.append(result)
    return result


def _known_account(attempt: Attempt) -> tuple[Usage, int] | None:
    """Return what an attempt used and cost, as the log has it; None when nobody has said."""
    if attempt.completion is not None:
        return attempt.completion.usage, attempt.completion.cost_usd_micros
    if not attempt.permitted:
        return Usage(source=UsageSource.ESTIMATED), 0
    return read_failure_facts(attempt.error.metadata) if attempt.error else None


def _prompt_bytes(prompt: StepPrompt) -> int:
    texts = [piece.text for piece in prompt.pieces] + [turn.text for turn in prompt.turns]
    return sum(len(text.encode(errors="replace")) for text in texts)


def _outcome(error: PodiumError | None) -> AttemptOutcome:
    if error is None:
        return AttemptOutcome.COMPLETED
    if error.code is Code.DEADLINE:
        return AttemptOutcome.TIMED_OUT
    return AttemptOutcome.CANCELLED if error.code is Code.CANCELLED else AttemptOutcome.FAILED
