"""Scores a batch of completions at once, and refuses it when too much of it cannot be scored."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan_prompt import PlanPrompt
from podium_train.environments.performing import unscorable_outcome
from podium_train.environments.port import Environment, Outcome, Task, Verdict

MAX_UNSCORABLE_SHARE = 0.2
RAISED = "ENVIRONMENT_RAISED"
DEADLINE = "BATCH_DEADLINE"


class BatchRefusedError(PodiumError):
    """Too many completions of a batch could not be scored, so that learning from the rest would mislead."""

    def __init__(self, outcomes: Sequence[Outcome], reasons: Counter[str]) -> None:
        lost = sum(reasons.values())
        listed = ", ".join(f"{count} of {reason}" for reason, count in reasons.most_common())
        super().__init__(
            Code.UNAVAILABLE,
            f"{lost} of {len(outcomes)} completions could not be scored ({listed}); mend that, then go on"
            " from the last checkpoint",
            reason="BATCH_UNSCORABLE",
            metadata={reason: str(count) for reason, count in reasons.items()},
        )
        self.outcomes = tuple(outcomes)


@dataclass(frozen=True, slots=True)
class Attempted:
    """One completion to score: written for `prompt`, about `task`."""

    prompt: PlanPrompt
    completion: str
    task: Task


async def score_batch(
    environment: Environment,
    batch: Sequence[Attempted],
    *,
    timeout_s: float,
    max_at_once: int = 64,
    max_unscorable_share: float = MAX_UNSCORABLE_SHARE,
) -> list[Outcome]:
    """Return the outcomes in the batch's order.

    What is not scored after `timeout_s`, and what an environment raised for, is unscorable. Raises
    BatchRefusedError when more than the share that may be unscorable is.
    """
    places = asyncio.Semaphore(max_at_once)

    async def scored(one: Attempted) -> Outcome:
        async with places:
            return await environment.score(one.prompt, one.completion, one.task)

    tasks = [asyncio.ensure_future(scored(one)) for one in batch]
    try:
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    outcomes = [_outcome_of(task) for task in tasks]
    reasons = Counter(one.reason for one in outcomes if one.verdict is Verdict.UNSCORABLE)
    if sum(reasons.values()) > max_unscorable_share * len(outcomes):
        raise BatchRefusedError(outcomes, reasons)
    return outcomes


def _outcome_of(task: "asyncio.Future[Outcome]") -> Outcome:
    if task.cancelled():
        return unscorable_outcome(DEADLINE)
    error = task.exception()
    if isinstance(error, PodiumError):
        return unscorable_outcome(error.reason)
    return unscorable_outcome(RAISED) if error is not None else task.result()
