"""Tasks and environments small enough for real training steps."""

import asyncio
from collections.abc import Callable

from podium_core.domain.plan_format import PlanFormatError, parse_plan
from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.domain.usage import Usage
from podium_train.environments.port import Outcome, PerformedStep, Task, Verdict
from tests.fakes.pools import worker

POOL = (worker("w0", skills={"sums": 900_000}), worker("w1", skills={"sums": 300_000}))


def tasks(count: int = 4) -> list[Task]:
    return [
        Task(f"t{n}", f"What is {n} plus {n}?", str(2 * n), "sums", "arithmetic", "easy", POOL, seed=n)
        for n in range(count)
    ]


class Parsed:
    """Right when the plan's last step goes to w0. Every score takes one turn of the loop."""

    async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
        await asyncio.sleep(0)
        try:
            steps = parse_plan(completion, prompt.worker_ids)
        except PlanFormatError as error:
            return Outcome(Verdict.INVALID, 0.0, reason=error.reason)
        right = steps[-1].worker_id == "w0"
        performed = tuple(PerformedStep(s.worker_id, "", right, Usage(), 0, 0) for s in steps)
        return Outcome(Verdict.SCORED, 1.0 if right else 0.5, is_right=right, steps=performed)


class Judged:
    """Gives each completion the reward of a function of its text."""

    def __init__(self, reward: Callable[[str], float | None]) -> None:
        self._reward = reward

    async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
        reward = self._reward(completion)
        if reward is None:
            return Outcome(Verdict.UNSCORABLE, None, reason="FAKE_OUTAGE")
        return Outcome(Verdict.SCORED, reward, is_right=reward == 1.0)
