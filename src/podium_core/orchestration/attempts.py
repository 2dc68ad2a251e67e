"""One step's attempts: retry with back-off, then the recorded fallback worker, all within the caps."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import AttemptKind
from podium_core.orchestration.adaptation import Change, adapt
from podium_core.orchestration.context import RunContext
from podium_core.orchestration.contract import AnswerContract, Breach, is_bound, repair_prompt
from podium_core.orchestration.events import StepResult
from podium_core.orchestration.one_attempt import Attempt, Emit, StepTask, begin_attempt, give, make_attempt
from podium_core.orchestration.retrying import WORKER_STOPPED, given_up, pause_before_retry

_WORKER_TROUBLE = frozenset({Code.PROVIDER_FAILED, Code.RATE_LIMITED, Code.DEADLINE, Code.UNAVAILABLE})
_RUN_TROUBLE = frozenset({Code.AUDIT_UNAVAILABLE, Code.CONFLICT, Code.CANCELLED})


def ends_run(error: PodiumError | None) -> bool:
    """Return whether a step's error dooms every later step too, so that none need be tried."""
    return error is not None and (error.code in _RUN_TROUBLE or error.reason == "RUN_DEADLINE")


class StepAttempts:
    """The attempts at one step. `result` tells of all that were made, even when `make` was cancelled."""

    def __init__(self, context: RunContext, task: StepTask, emit: Emit) -> None:
        self._context = context
        self._task = task
        self._emit = emit
        self._made: list[Attempt] = []
        self._last: Attempt | None = None
        self._started_us = context.elapsed_us

    async def make(self) -> StepResult:
        """Make attempts until one completes, a rule forbids more, or the caps are used up."""
        step, cap = self._task.step, self._context.caps.max_attempts_per_step
        most_by = {step.worker_id: cap}
        if step.fallback_worker_id is not None and cap > 1:
            most_by = {step.worker_id: cap - 1, step.fallback_worker_id: cap}
        for worker_id, most in most_by.items():
            if await self._ask(worker_id, most):
                break
        return self.result(await self._hold_to_contract())

    async def _ask(self, worker_id: str, most: int) -> bool:
        """Ask one worker until `most` attempts are made in all; return whether nobody else need be asked."""
        context, number = self._context, 0
        context.retries.earn(worker_id)
        while len(self._made) < most:
            attempt = self._last = await self._try(worker_id, most)
            error = attempt.error
            if error is None or attempt.sent or not _is_workers_trouble(error):
                return True
            if len(self._made) < most:
                pause_s = pause_before_retry(context, error, number)
                if pause_s is None or not context.retries.spend(worker_id):
                    attempt.error = given_up(context, error)
                    return False
                await asyncio.sleep(pause_s)
                number += 1
        return False

    async def _try(self, worker_id: str, most: int) -> Attempt:
        """Make one attempt, or two that race where the worker is hedged; return the one that counts."""
        context, task = self._context, self._task
        attempt = begin_attempt(context, task, worker_id)
        self._made.append(attempt)
        hedge_after_s = context.pool.by_id[worker_id].hedge_delay_s(streamed=task.live)
        if hedge_after_s is not None and len(self._made) < most:
            return await self._race(attempt, hedge_after_s)
        await make_attempt(context, task, attempt, self._emit)
        return attempt

    async def _race(self, first: Attempt, hedge_after_s: float) -> Attempt:
        """Let a second attempt race one that says nothing for a while: whoever speaks or ends first counts.

        The other is cancelled. What it used is billed all the same.
        """
        running = {self._start(first): first}
        try:
            done, _ = await asyncio.wait(running, timeout=hedge_after_s)
            if not done and first.floor.speaker is None and (second := self._second(first)) is not None:
                running[self._start(second)] = second
                first.floor.on_taken = lambda speaker: _cancel_others(running, speaker)
            pending = set(running)
            while pending and not any(attempt.completion for attempt in running.values()):
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        finally:
            _cancel_others(running, None)
            ends = await asyncio.gather(*running, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end
        return max(running.values(), key=_weight)

    def _start(self, attempt: Attempt) -> "asyncio.Task[None]":
        return asyncio.create_task(make_attempt(self._context, self._task, attempt, self._emit))

    def _second(self, first: Attempt) -> Attempt | None:
        """Return a second attempt at the same worker; None when budget or caps have no room for it."""
        worker_id = first.call.worker_id
        if not self._context.retries.spend(worker_id):
            return None
        second = begin_attempt(self._context, self._task, worker_id)
        if second.error is not None:
            return None
        second.floor = first.floor
        self._made.append(second)
        return second

    async def _hold_to_contract(self) -> PodiumError | None:
        """Return how the answer breaks its contract, after a repair where one is allowed; None: no breach."""
        context, task, last = self._context, self._task, self._last
        contract = context.contract if task.is_answer else None
        if contract is None or last is None or last.completion is None:
            return None
        breach = await _breach(contract, last)
        if breach is not None and not last.sent and len(self._made) < context.caps.max_attempts_per_step:
            prompt = repair_prompt(task.prompt, last.output.text, breach.advice)
            again = replace(task, prompt=prompt, kind=AttemptKind.REPAIR)
            repair = begin_attempt(context, again, last.call.worker_id)
            self._made.append(repair)
            await make_attempt(context, again, repair, self._emit)
            if repair.completion is not None:
                self._last, breach = repair, await _breach(contract, repair)
        if breach is None and task.live and self._last is not None:
            await give(task, self._last, self._emit)
        return breach.error if breach is not None else None

    def result(self, failure: PodiumError | None = None) -> StepResult:
        """Return what the attempts came to; `failure` says why that is not good enough, if it is not."""
        task, last = self._task, self._last
        completion = last.completion if last is not None else None
        # The attempt that counts comes last.
        ordered = [attempt for attempt in self._made if attempt is not last]
        ordered += [last] if last is not None else []
        worker_id = ordered[-1].call.worker_id if ordered else task.step.worker_id
        return StepResult(
            round=task.round,
            step_index=task.step_index,
            worker_id=worker_id,
            ok=completion is not None and failure is None,
            text=last.output.text if last and completion else "",
            reasoning=last.output.reasoning if last and completion else "",
            tool_calls=last.output.tool_calls if last and completion else (),
            finish_reason=completion.finish_reason if completion else "error",
            attempts=tuple(attempt.result for attempt in ordered if attempt.result is not None),
            started_us=self._started_us,
            ended_us=self._context.elapsed_us,
            error=failure or (None if completion or last is None else last.error),
            choice=task.choice,
            prompt=last.call.prompt if last is not None and task.is_answer else None,
            replay=completion.replay if completion is not None else None,
            refusal=last.output.refusal if last and completion else "",
            logprobs=last.output.logprobs if last and completion else (),
            changes=self._changes(worker_id),
        )

    def _changes(self, worker_id: str) -> Mapping[str, Change]:
        card = self._context.pool.by_id[worker_id].card
        return adapt(self._context.parameters, card, is_answer=self._task.is_answer).changes


async def _breach(contract: AnswerContract, attempt: Attempt) -> Breach | None:
    if attempt.completion is None or not is_bound(attempt.output, attempt.completion.finish_reason):
        return None
    try:
        return await contract.breach(attempt.output)
    except PodiumError as error:
        return Breach(error, "")


def _is_workers_trouble(error: PodiumError) -> bool:
    """Whether another attempt may help: the run is not over, and it is the worker's fault."""
    is_trouble = error.code in _WORKER_TROUBLE or error.reason == WORKER_STOPPED
    return is_trouble and error.reason != "RUN_DEADLINE"


def _cancel_others(running: "dict[asyncio.Task[None], Attempt]", speaker: Attempt | None) -> None:
    for task, attempt in running.items():
        if attempt is not speaker:
            task.cancel()


def _weight(attempt: Attempt) -> tuple[bool, bool, bool]:
    """Order the attempts of a race: the completed one, else one that spoke, else one that failed itself."""
    error = attempt.error
    return attempt.completion is not None, attempt.sent, error is None or error.code is not Code.CANCELLED
