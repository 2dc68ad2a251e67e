"""Tasks and environments small enough for real training steps."""

from collections.abc import Callable

from podium_core.domain.plan_prompt import PlanPrompt
from podium_train.environments.port import Outcome, Task, Verdict
from tests.fakes.pools import worker

POOL = (worker("w0", skills={"sums": 900_000}), worker("w1", skills={"sums": 300_000}))


def tasks(count: int = 4) -> list[Task]:
    return [
        Task(f"t{n}", f"What is {n} plus {n}?", str(2 * n), "sums", "arithmetic", "easy", POOL, seed=n)
        for n in range(count)
    ]


class Judged:
    """Gives each completion the reward of a function of its text."""

    def __init__(self, reward: Callable[[str], float | None]) -> None:
        self._reward = reward

    async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
        reward = self._reward(completion)
        if reward is None:
            return Outcome(Verdict.UNSCORABLE, None, reason="FAKE_OUTAGE")
        return Outcome(Verdict.SCORED, reward, is_right=reward == 1.0)


def length(text: str) -> float:
    """Vary between completions, so that every group has something to learn from."""
    return (len(text) % 7) / 7


class FailsAfter:
    """An environment with a defect that shows after some calls."""

    def __init__(self, calls: int) -> None:
        self._left = calls
        self._inner = Judged(length)

    async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("defect")
        return await self._inner.score(prompt, completion, task)
