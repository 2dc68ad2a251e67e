"""The reward of one completion: 0 for no plan, 0.5 for a plan with a wrong answer, 1 for a right answer.

After the RL Conductor paper (arXiv 2512.04388): the format earns half, the answer the rest. Cost and length
terms exist for experiments and are off: with them off a reward is exactly one of the three numbers.
"""

from dataclasses import dataclass
from typing import Protocol

from podium_core.domain.errors import invalid

NO_PLAN = 0.0
WRONG = 0.5
RIGHT = 1.0
_MAX_PENALTY = 0.4
"""Below the half between the three rewards: no saving ever makes a wrong answer better than a right one."""
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class RewardTerms:
    """What a plan loses per US dollar spent by its workers and per step after its first. Off by default."""

    per_usd: float = 0.0
    per_extra_step: float = 0.0

    def __post_init__(self) -> None:
        if not (0.0 <= self.per_usd < float("inf") and 0.0 <= self.per_extra_step < float("inf")):
            raise invalid("reward terms are finite numbers that are not negative", param="reward_terms")


def reward_of(
    *, is_right: bool, cost_usd_micros: int = 0, step_count: int = 1, terms: RewardTerms = RewardTerms()
) -> float:
    """Return the reward of a valid plan; `NO_PLAN` is that of any other completion."""
    base = RIGHT if is_right else WRONG
    if terms == RewardTerms():
        return base
    penalty = terms.per_usd * cost_usd_micros / _MICROS + terms.per_extra_step * max(0, step_count - 1)
    return base - min(_MAX_PENALTY, penalty)


class AnswerGrader(Protocol):
    """Judges an answer where that takes a process or a sandbox. Never raises for what the text holds."""

    async def is_right(self, text: str) -> bool | None:
        """Return whether the answer is right; None when the surroundings failed, so that nobody can say."""
        ...
