"""One step's attempts: retry with back-off, then the recorded fallback worker, all within the caps."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Step
from podium_core.domain.pool import Worker
from podium_core.domain.run import AttemptKind, AttemptOutcome
from podium_core.domain.usage import Usage, UsageSource, read_failure_facts
from podium_core.orchestration.adaptation import Change, adapt
from podium_core.orchestration.context import RunContext
from podium_core.orchestration.contract import AnswerContract, Breach, is_bound, repair_prompt
from podium_core.orchestration.events import AnswerDelta, RunEvent, StepResult
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
_WORKER_TROUBLE = frozenset({Code.PROVIDER_FAILED, Code.RATE_LIMITED, Code.DEADLINE, Code.UNAVAILABLE})
_RUN_TROUBLE = frozenset({Code.AUDIT_UNAVAILABLE, Code.CONFLICT, Code.CANCELLED})


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


@dataclass(slots=True)
class _Attempt:
    """One attempt under way, and what became of it."""

    call: StepCall
    reservation: Reservation
    started_us: int
    output: Output = field(default_factory=Output)
    held: list[Delta] = field(default_factory=list)
    sent: bool = False
    permitted: bool = False
    completion: Completion | None = None
    error: PodiumError | None = None
    result: AttemptResult | None = None


def ends_run(error: PodiumError | None) -> bool:
    """Return whether a step's error dooms every later step too, so that none need be tried."""
    return error is not None and (error.code in _RUN_TROUBLE or error.reason == "RUN_DEADLINE")


class AttemptMaker:
    """Makes the attempts of one round's steps."""

    def __init__(self, context: RunContext, emit: Callable[[RunEvent], Awaitable[None]]) -> None:
        self._context = context
        self._emit = emit

    async def perform(self, task: StepTask) -> StepResult:
        """Make attempts until one completes, a rule forbids more, or the caps are used up."""
        step, cap = task.step, self._context.caps.max_attempts_per_step
        tries_of = {step.worker_id: cap}
        if step.fallback_worker_id is not None and cap > 1:
            tries_of = {step.worker_id: cap - 1, step.fallback_worker_id: 1}
        started_us = self._context.elapsed_us
        made: list[_Attempt] = []
        for worker_id, tries in tries_of.items():
            for number in range(tries):
                attempt = await self._attempt(task, worker_id)
                made.append(attempt)
                if attempt.completion is not None or self._is_final(attempt):
                    breach = await self._hold_to_contract(task, made)
                    return self._result(task, made, started_us, breach)
                pause_s = self._pause_s(attempt.error, number)
                if number + 1 == tries or pause_s is None:
                    break
                await asyncio.sleep(pause_s)
        return self._result(task, made, started_us)

    async def _hold_to_contract(self, task: StepTask, made: list[_Attempt]) -> PodiumError | None:
        """Return how the answer breaks its contract after one repair, added to `made`; None: it keeps it."""
        contract, last = self._context.contract if task.is_answer else None, made[-1]
        if contract is None or last.completion is None:
            return None
        breach = await self._breach(contract, last)
        if breach is not None and not last.sent and len(made) < self._context.caps.max_attempts_per_step:
            prompt = repair_prompt(task.prompt, last.output.text, breach.advice)
            again = replace(task, prompt=prompt, kind=AttemptKind.REPAIR)
            repair = await self._attempt(again, last.call.worker_id)
            made.append(repair)
            if repair.completion is not None:
                last, breach = repair, await self._breach(contract, repair)
        if breach is None and task.live:
            await self._give(task, last, *last.held)
        return breach.error if breach is not None else None

    @staticmethod
    async def _breach(contract: AnswerContract, attempt: _Attempt) -> Breach | None:
        if attempt.completion is None or not is_bound(attempt.output, attempt.completion.finish_reason):
            return None
        try:
            return await contract.breach(attempt.output)
        except PodiumError as error:
            return Breach(error, "")

    async def _give(self, task: StepTask, attempt: _Attempt, *deltas: Delta) -> None:
        """Give output out; from then on the attempt is the answer."""
        attempt.held.clear()
        for delta in deltas:
            attempt.sent = True
            await self._emit(AnswerDelta(delta, task.choice))

    def _is_final(self, attempt: _Attempt) -> bool:
        """Whether nobody may try again: bytes are out, the run is over, or it is not the worker's fault."""
        error = attempt.error
        return (
            attempt.sent
            or error is None
            or error.code not in _WORKER_TROUBLE
            or error.reason == "RUN_DEADLINE"
        )

    def _pause_s(self, error: PodiumError | None, number: int) -> float | None:
        """Return how long to wait before the same worker is asked again; None: do not ask it again."""
        if error is None or error.metadata.get("retryable") == "false" or error.code is Code.DEADLINE:
            return None
        limits = self._context.limits
        jitter = 0.5 + self._context.ids.seed() % 1_000 / 2_000
        pause_s = min(limits.retry_max_s, limits.retry_base_s * 2**number) * jitter
        if error.retry_after_s is not None:
            pause_s = max(pause_s, error.retry_after_s)
        return pause_s if pause_s <= min(limits.retry_max_s, self._context.left_s) else None

    async def _attempt(self, task: StepTask, worker_id: str) -> _Attempt:
        context = self._context
        worker = context.pool.by_id[worker_id]
        started_us = context.elapsed_us
        try:
            reservation = context.ledger.reserve(
                context.fixed_input_tokens + _prompt_bytes(task.prompt),
                self._output_limit(task, worker),
                worker.price,
            )
        except PodiumError as error:
            return _Attempt(self._call(task, worker, 0), _NOTHING, started_us, error=error)
        call = self._call(task, worker, reservation.max_output_tokens)
        attempt = _Attempt(call, reservation, started_us)
        try:
            await self._listen(task, attempt)
        except PodiumError as error:
            attempt.error = error
        except TimeoutError:
            attempt.error = self._timeout()
        except asyncio.CancelledError:
            attempt.error = PodiumError(Code.CANCELLED, "the run was cancelled")
            raise
        finally:
            attempt.result = self._account(attempt)
        return attempt

    async def _listen(self, task: StepTask, attempt: _Attempt) -> None:
        stream = self._context.workers.complete(attempt.call)
        async with asyncio.timeout(attempt.call.timeout_s), aclosing(stream) as events:
            async for event in events:
                if isinstance(event, Permitted):
                    attempt.permitted = True
                    continue
                delta = event if isinstance(event, Delta) else event.message
                if delta.has_output:
                    attempt.output.add(delta)
                    if task.live:
                        await self._hear(task, attempt, delta)
                if isinstance(event, Completion):
                    attempt.completion = event
        if attempt.completion is None:
            raise PodiumError(
                Code.PROVIDER_FAILED, "the worker's answer ended early", reason="STREAM_INCOMPLETE"
            )

    async def _hear(self, task: StepTask, attempt: _Attempt, delta: Delta) -> None:
        """Give output out as it comes, or hold it back while it may yet break the answer's contract."""
        contract = self._context.contract
        attempt.held.append(delta)
        if contract is None or attempt.sent or contract.opens(delta):
            await self._give(task, attempt, *attempt.held)

    def _call(self, task: StepTask, worker: Worker, max_output_tokens: int) -> StepCall:
        context = self._context
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

    def _output_limit(self, task: StepTask, worker: Worker) -> int:
        wanted = self._context.max_output_tokens if task.is_answer else None
        limit = wanted if wanted is not None else self._context.limits.inner_step_output_tokens
        return min(limit, worker.card.max_output_tokens or limit)

    def _timeout(self) -> PodiumError:
        if self._context.left_s <= 0:
            return PodiumError(
                Code.DEADLINE, "the run's time is over; raise podium.max_seconds", reason="RUN_DEADLINE"
            )
        return PodiumError(Code.DEADLINE, "the worker did not answer in time", reason="STEP_DEADLINE")

    def _account(self, attempt: _Attempt) -> AttemptResult:
        """Settle the attempt in the ledger and add it to the run's attempts."""
        context, error = self._context, attempt.error
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

    def _result(
        self, task: StepTask, made: list[_Attempt], started_us: int, breach: PodiumError | None = None
    ) -> StepResult:
        last = next((attempt for attempt in reversed(made) if attempt.completion is not None), made[-1])
        completion = last.completion
        return StepResult(
            round=task.round,
            step_index=task.step_index,
            worker_id=last.call.worker_id,
            ok=completion is not None and breach is None,
            text=last.output.text if completion else "",
            reasoning=last.output.reasoning if completion else "",
            tool_calls=last.output.tool_calls if completion else (),
            finish_reason=completion.finish_reason if completion else "error",
            attempts=tuple(attempt.result for attempt in made if attempt.result is not None),
            started_us=started_us,
            ended_us=self._context.elapsed_us,
            error=breach if completion else last.error,
            choice=task.choice,
            refusal=last.output.refusal if completion else "",
            logprobs=last.output.logprobs if completion else (),
            changes=self._changes(task, last.call.worker_id),
        )

    def _changes(self, task: StepTask, worker_id: str) -> Mapping[str, Change]:
        card = self._context.pool.by_id[worker_id].card
        return adapt(self._context.parameters, card, is_answer=task.is_answer).changes


def _known_account(attempt: _Attempt) -> tuple[Usage, int] | None:
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
