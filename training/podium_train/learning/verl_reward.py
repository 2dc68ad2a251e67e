"""The seam to verl: rows that it reads, and the reward function that its workers call.

A row carries a task's number and the order of its workers; the tasks themselves are made again in every
reward worker from the same data folder and seed. Raising for what cannot be scored is on purpose: verl then
leaves that rollout out of its group, as TRL does for None.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan_prompt import PlanPrompt
from podium_train.environments.port import Environment, Task, Verdict
from podium_train.learning.prompts import Draw

DATA_SOURCE = "podium"


def rows_of(drawn: Iterable[Draw], tasks: Sequence[Task], split: str) -> list[dict[str, Any]]:
    """Return every draw as a row of verl's data format; its task is named by its place in `tasks`.

    verl writes the chat with the model's template and begins the reply with nothing, so the prompts must be
    without a prefill (`free_reasoning=False`), as they are when serving without reasoning tokens.
    """
    places = {task.task_id: place for place, task in enumerate(tasks)}
    return [_row(draw, places[draw.task.task_id], split) for draw in drawn]


def _row(draw: Draw, place: int, split: str) -> dict[str, Any]:
    if draw.prompt.prefill:
        raise ValueError("verl's chats cannot carry the beginning of a reply")
    return {
        "data_source": DATA_SOURCE,
        "prompt": [
            {"role": "system", "content": draw.prompt.system},
            {"role": "user", "content": draw.prompt.user},
        ],
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {"index": place, "split": split, "worker_ids": list(draw.prompt.worker_ids)},
    }


class VerlReward:
    """Scores one completion at a time, at most `max_concurrent` at once in this process."""

    def __init__(
        self, environment: Environment, tasks: Sequence[Task], *, timeout_s: float, max_concurrent: int
    ) -> None:
        self._environment = environment
        self._tasks = tasks
        self._timeout_s = timeout_s
        self._at_once = asyncio.Semaphore(max_concurrent)

    async def score(self, completion: str, extra_info: Mapping[str, Any]) -> dict[str, float]:
        """Return verl's `score` and the figures that it logs.

        Raises PodiumError UNAVAILABLE (TRAIN_UNSCORABLE) when the surroundings failed or took too long.
        """
        prompt = PlanPrompt("", "", "", tuple(str(name) for name in extra_info["worker_ids"]))
        task = self._tasks[int(extra_info["index"])]
        try:
            async with self._at_once, asyncio.timeout(self._timeout_s):
                outcome = await self._environment.score(prompt, completion, task)
        except TimeoutError:
            raise _unscorable("DEADLINE") from None
        if outcome.reward is None:
            raise _unscorable(outcome.reason)
        return {
            "score": outcome.reward,
            "acc": float(outcome.is_right),
            "valid": float(outcome.verdict is Verdict.SCORED),
            "steps": float(len(outcome.steps)),
        }


def _unscorable(reason: str) -> PodiumError:
    return PodiumError(
        Code.UNAVAILABLE,
        f"a rollout could not be scored ({reason}); it is left out",
        reason="TRAIN_UNSCORABLE",
    )
