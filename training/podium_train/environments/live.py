"""The live environment: real workers through a port, and a grader, that the caller composes.

Infrastructure that fails (a call refused or timed out twice, a grader that cannot say, money that is gone) is
masked: such an outcome is unscorable, so no plan is blamed for it. A reward function that raises is the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.domain.plan import Step
from podium_core.domain.plan_format import PlanFormatError
from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.orchestration.events import RunFinished
from podium_core.orchestration.limits import RunnerLimits
from podium_train.environments.live_limits import LiveLimits
from podium_train.environments.live_workers import GuardedWorkers
from podium_train.environments.performing import (
    Performer,
    Rounds,
    first_failure,
    in_order,
    invalid_outcome,
    parsed,
    performed_step,
    unscorable_outcome,
)
from podium_train.environments.port import Outcome, Task, Verdict
from podium_train.rewards.reward import RewardTerms, reward_of

Grade = Callable[[str, Task], Awaitable[bool | None]]
"""Says whether an answer text is right; None when nobody can say."""
Trace = Callable[[Mapping[str, object]], None]
"""Takes the facts of one rollout: ids, tokens, cost, latency, outcome; no content."""


def untraced(facts: Mapping[str, object]) -> None:
    """Forget the facts of a rollout."""
    del facts


def live_performer(limits: LiveLimits, clock: Clock, ids: IdFactory) -> Performer:
    """Return a performer whose own deadlines leave room for waiting and for the one retry of a call."""
    timeout_s = limits.rollout_timeout_s
    return Performer(clock, ids, RunnerLimits(step_timeout_s=timeout_s, run_timeout_s=timeout_s))


@dataclass(frozen=True, slots=True)
class LiveEnvironment:
    """Scores plans over real workers. `live_performer` makes the performer that goes with the limits."""

    performer: Performer
    workers: GuardedWorkers
    grade: Grade
    limits: LiveLimits
    terms: RewardTerms = RewardTerms()
    trace: Trace = untraced

    async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
        """Return what became of `completion`. Cancelling closes every call that only it waits for."""
        try:
            steps = parsed(prompt, completion)
        except PlanFormatError as error:
            return self._traced(task, (), invalid_outcome(error))
        return await self.score_rounds((steps,), task)

    async def score_rounds(self, rounds: Rounds, task: Task) -> Outcome:
        """Return what became of plans in rounds; a later round without steps accepts the answer before it."""
        try:
            async with asyncio.timeout(self.limits.rollout_timeout_s):
                finished = await self.performer.perform(rounds, task, self.workers)
        except TimeoutError:
            return self._traced(task, rounds[0], unscorable_outcome("ROLLOUT_DEADLINE"))
        except PodiumError as error:
            return self._traced(task, rounds[0], unscorable_outcome(error.reason))
        return self._traced(task, rounds[0], await self._graded(finished, task))

    async def _graded(self, finished: RunFinished, task: Task) -> Outcome:
        steps = [performed_step(step) for step in in_order(finished)]
        failure = first_failure(finished)
        if failure or finished.answer is None:
            return unscorable_outcome(failure or "NO_ANSWER", steps, rounds=len(finished.rounds))
        grading = asyncio.create_task(self._judged(finished.answer.text, task))
        done, _ = await asyncio.wait([grading], timeout=self.limits.grading_timeout_s)
        if not done:
            grading.cancel()
            await asyncio.gather(grading, return_exceptions=True)
            return unscorable_outcome("GRADING_DEADLINE", steps, rounds=len(finished.rounds))
        if grading.exception() is not None:
            return unscorable_outcome("GRADER_RAISED", steps, rounds=len(finished.rounds))
        is_right = grading.result()
        if is_right is None:
            return unscorable_outcome("UNGRADABLE", steps, rounds=len(finished.rounds))
        reward = reward_of(
            is_right=is_right,
            cost_usd_micros=sum(step.cost_usd_micros for step in steps),
            step_count=len(steps),
            terms=self.terms,
        )
        return Outcome(
            Verdict.SCORED, reward, is_right=is_right, steps=tuple(steps), rounds=len(finished.rounds)
        )

    async def _judged(self, text: str, task: Task) -> bool | None:
        return await self.grade(text, task)

    def _traced(self, task: Task, steps: Sequence[Step], outcome: Outcome) -> Outcome:
        usage = outcome.usage
        self.trace(
            {
                "task_id": task.task_id,
                "planned": len(steps),
                "verdict": outcome.verdict.value,
                "reward": outcome.reward,
                "reason": outcome.reason,
                "workers": [step.worker_id for step in outcome.steps],
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cost_usd_micros": sum(step.cost_usd_micros for step in outcome.steps),
                "latency_us": max((step.latency_us for step in outcome.steps), default=0),
            }
        )
        return outcome
