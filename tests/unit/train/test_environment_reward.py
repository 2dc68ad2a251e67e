"""Between trainer and environment: what is masked, what stops the run, and what it says."""

import asyncio

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan_prompt import PlanPrompt
from podium_train.environments.port import Environment, Outcome, Task, Verdict
from podium_train.learning.environment_reward import EnvironmentReward
from podium_train.learning.prompts import Draw
from tests.fakes.pools import worker

TASK = Task("t1", "What is 1 plus 1?", "2", "sums", "arithmetic", "easy", (worker("w0"),), seed=1)
DRAW = Draw(TASK, PlanPrompt("system", "user", "", ("w0",)), "text")


class Scripted:
    """Does what a completion says: a number is a reward, `hang` waits for ever, `raise` fails."""

    def __init__(self) -> None:
        self.at_once = 0
        self.most = 0
        self.ended = 0

    async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
        assert prompt.worker_ids == ("w0",)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(0)
            if completion == "hang":
                await asyncio.Event().wait()
            if completion == "raise":
                raise ValueError("a secret of the question")
            if completion == "refuse":
                raise PodiumError(Code.BUDGET_EXHAUSTED, "no money is left", reason="BUDGET_SPENT")
            return Outcome(Verdict.SCORED, float(completion), is_right=completion == "1")
        finally:
            self.at_once -= 1
            self.ended += 1


async def rewards(
    environment: Environment,
    *completions: str,
    metrics: dict[str, float] | None = None,
    max_concurrent: int = 8,
) -> list[float | None]:
    reward = EnvironmentReward(
        environment, [DRAW], timeout_s=0.05, max_concurrent=max_concurrent, max_unscorable_share=0.2
    )
    kept = {} if metrics is None else metrics
    return await reward(
        completions=completions, row=[0] * len(completions), log_metric=kept.__setitem__, prompts=[], unused=1
    )


async def test_rewards_come_in_the_order_of_the_completions_with_the_batch_figures() -> None:
    metrics: dict[str, float] = {}
    assert await rewards(Scripted(), "1", "0.5", "0", metrics=metrics) == [1.0, 0.5, 0.0]
    assert metrics["validity"] == 1.0
    assert metrics["accuracy"] == pytest.approx(1 / 3)


async def test_a_worker_that_never_answers_is_masked_and_its_call_is_ended() -> None:
    environment = Scripted()
    assert await rewards(environment, "1", "hang", "0.5", "0.5", "1") == [1.0, None, 0.5, 0.5, 1.0]
    assert environment.ended == 5


async def test_a_batch_of_which_too_much_is_unscorable_is_refused() -> None:
    with pytest.raises(PodiumError) as caught:
        await rewards(Scripted(), "1", "hang", "hang", "1")
    assert caught.value.reason == "TRAIN_BATCH_UNSCORABLE"
    assert "50% of a batch" in caught.value.message
    assert "DEADLINE" in caught.value.message


async def test_an_environment_that_raises_stops_the_run_without_its_text() -> None:
    with pytest.raises(PodiumError) as caught:
        await rewards(Scripted(), "1", "raise")
    assert (caught.value.code, caught.value.reason) == (Code.INTERNAL, "TRAIN_ENVIRONMENT_FAILED")
    assert "ValueError" in caught.value.message
    assert "t1" in caught.value.message
    assert "secret" not in caught.value.message


async def test_an_error_of_ours_passes_as_it_is() -> None:
    with pytest.raises(PodiumError) as caught:
        await rewards(Scripted(), "refuse")
    assert caught.value.reason == "BUDGET_SPENT"


async def test_no_more_than_allowed_are_scored_at_once() -> None:
    environment = Scripted()
    await rewards(environment, *["1"] * 12, max_concurrent=3)
    assert environment.most == 3
