# ruff: noqa: INP001 - verl loads it by its path
"""The function that verl's reward workers load (`reward.custom_reward_function.path`): a composition root.

Reads PODIUM_TRAIN_DATA, and PODIUM_TRAIN_SEED (default 0), which `podium-train rows` drew with.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

from podium_train.learning.replayed import replayed
from podium_train.learning.verl_reward import VerlReward
from podium_train.outcomes.splits import Split

_TIMEOUT_S = 120.0
_MAX_CONCURRENT = 16


@cache
def _reward(split: str) -> VerlReward:
    data = Path(os.environ["PODIUM_TRAIN_DATA"])  # noqa: TID251 - there is no settings module in a recipe
    seed = int(os.environ.get("PODIUM_TRAIN_SEED", "0"))  # noqa: TID251
    made = replayed(data, seed=seed, split=Split(split))
    return VerlReward(made.environment, made.tasks, timeout_s=_TIMEOUT_S, max_concurrent=_MAX_CONCURRENT)


async def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any], **_: Any
) -> dict[str, float]:
    """Return the score of one completion; raise when it cannot be scored, so that it is left out."""
    del data_source, ground_truth
    return await _reward(str(extra_info["split"])).score(solution_str, extra_info)
