"""The seam between a trainer and an environment: completions go in, rewards come out, failures are masked.

TRL calls it as an asynchronous reward function (`GRPOTrainer.reward_funcs`). None leaves a completion out of
its group's baseline; a failure of the surroundings is never counted as a wrong answer.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from podium_core.domain.errors import Code, PodiumError
from podium_train.environments.port import Environment, Outcome, Verdict
from podium_train.learning.collapse import figures_of
from podium_train.learning.later_rounds import RoundsEnvironment, score_later
from podium_train.learning.prompts import Draw


class EnvironmentReward:
    """Scores batches of completions. `draws[row]` is what a completion was written for."""

    __name__ = "outcome"

    def __init__(
        self,
        environment: Environment,
        draws: Sequence[Draw],
        *,
        timeout_s: float,
        max_concurrent: int,
        max_unscorable_share: float,
    ) -> None:
        self._environment = environment
        self._draws = draws
        self._timeout_s = timeout_s
        self._max_concurrent = max_concurrent
        self._max_unscorable_share = max_unscorable_share

    async def __call__(
        self,
        *,
        completions: Sequence[str],
        row: Sequence[int],
        log_metric: Callable[[str, float], None],
        **_: Any,
    ) -> list[float | None]:
        """Return one reward per completion; None where it could not be scored.

        Raises PodiumError UNAVAILABLE when more of the batch is unscorable than allowed: nothing is learnt
        from such a batch. Raises PodiumError INTERNAL when the environment itself fails.
        """
        at_once = asyncio.Semaphore(self._max_concurrent)
        scored = await asyncio.gather(
            *(
                self._score(self._draws[index], text, at_once)
                for index, text in zip(row, completions, strict=True)
            ),
            return_exceptions=True,
        )
        outcomes = [_outcome(found, self._draws[index]) for index, found in zip(row, scored, strict=True)]
        figures = figures_of(outcomes)
        if figures.unscorable_share > self._max_unscorable_share:
            reasons = sorted({outcome.reason for outcome in outcomes if outcome.reward is None})
            raise PodiumError(
                Code.UNAVAILABLE,
                f"{figures.unscorable_share:.0%} of a batch could not be scored ({', '.join(reasons)}); "
                "nothing was learnt from it. Mend the workers and resume the run from its last checkpoint",
                reason="TRAIN_BATCH_UNSCORABLE",
            )
        for name, value in figures.as_metrics().items():
            log_metric(name, value)
        return [outcome.reward for outcome in outcomes]

    async def _score(self, draw: Draw, completion: str, at_once: asyncio.Semaphore) -> Outcome:
        async with at_once:
            try:
                async with asyncio.timeout(self._timeout_s):
                    if draw.earlier is None:
                        return await self._environment.score(draw.prompt, completion, draw.task)
                    assert isinstance(self._environment, RoundsEnvironment), (
                        "who drew it could perform rounds"
                    )
                    return score_later(self._environment, draw, draw.earlier, completion)
            except TimeoutError:
                return Outcome(Verdict.UNSCORABLE, None, reason="DEADLINE")


def _outcome(found: Outcome | BaseException, draw: Draw) -> Outcome:
    if isinstance(found, Outcome):
        return found
    if isinstance(found, (PodiumError, asyncio.CancelledError)):
        raise found
    raise PodiumError(
        Code.INTERNAL,
        f"the environment raised {type(found).__name__} for task {draw.task.task_id}; nothing was learnt "
        "from its batch. Mend the environment and resume the run from its last checkpoint",
        reason="TRAIN_ENVIRONMENT_FAILED",
    ) from found
