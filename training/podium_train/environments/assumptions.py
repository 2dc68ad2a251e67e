"""Every constant that simulated workers assume, in one place, with the values that a sweep tries.

Where recorded answers tell something, the value is fitted to it and said so; the rest is assumed, and a
result that depends on it is reported with the sweep (`podium-train sweep`), never as one number.

Strength is measured in standard deviations: a worker is right when its strength on the family, minus the
item's difficulty, its own luck with the item and the luck of the sample, is above zero. All luck together has
the variance 1, so the share of right answers over items is exactly the worker's accuracy. (A probit link: the
logistic one differs by less than 0.02 and has no such simple sum.)
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from podium_core.domain.errors import invalid


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumed constants. Shares and rates are 0..1, lifts and losses in standard deviations."""

    # --- who is right on what -------------------------------------------------------------------
    item_share: float = 0.26
    """Share of variance that all workers have in common on an item. Fitted: two workers' results on the
    items of one family correlate by 0.15 to 0.19."""
    sample_share: float = 0.07
    """Share of variance between two samples of one worker. Fitted: a second sample is right after a wrong one
    in 4 to 21 % of cases and after a right one in 82 to 95 %."""
    wrong_answers: int = 8
    """How many wrong answers to an item are plausible, the trap included."""
    trap_rate: float = 0.4
    """How often a wrong answer is the trap. With 8 wrong answers two wrong workers agree in 21 % of cases;
    recorded: 11 to 31 %."""

    # --- what roles do --------------------------------------------------------------------------
    plan_lift: float = 0.15
    """What a solver gains that sees a plan."""
    refine_lift: float = 0.25
    """What a refiner gains that sees a justified objection."""
    distraction: float = 0.3
    """What a solver loses that sees a wrong answer and no right one."""
    attraction: float = 0.5
    """What a solver gains that sees a right answer."""
    detect_base: float = 0.45
    detect_slope: float = 0.5
    """A verifier whose own accuracy is p objects to a wrong answer at the rate base + slope * p."""
    false_alarm_base: float = 0.25
    false_alarm_slope: float = 0.2
    """It objects to a right answer at the rate base - slope * p."""
    discern_base: float = 0.1
    discern_slope: float = 0.3
    """An aggregator whose own accuracy is p tells the right answer among those it sees at this rate;
    otherwise it takes the most frequent."""

    # --- made-up pools ---------------------------------------------------------------------------
    mean_strength: float = 0.2
    family_spread: float = 1.0
    worker_spread: float = 0.4
    residual_spread: float = 0.7
    """Standard deviations of families' difficulty, of workers' overall strength, and of what is left. Fitted:
    families explain about half of the variance, and the best of ten real workers leads by 10 to 20 points."""

    # --- length, price, time --------------------------------------------------------------------
    solve_tokens: float = 350.0
    """Median output tokens of a solution."""
    other_tokens: float = 160.0
    """Median output tokens of a plan, a check or a comparison."""
    token_spread: float = 0.45
    """Standard deviation of the logarithm of output tokens."""
    thinking_multiplier: float = 6.0
    """How many times the tokens a worker with the feature `thinking` writes."""
    default_tokens_per_second: float = 60.0
    first_token_s: float = 0.6
    latency_spread: float = 0.35
    """Standard deviation of the logarithm of a call's time."""
    straggler_rate: float = 0.01
    straggler_factor: float = 12.0

    # --- what goes wrong ------------------------------------------------------------------------
    rate_limit_rate: float = 0.002
    failure_rate: float = 0.002
    """Calls that are refused (429) or fail at the provider: nobody's fault, so the outcome is unscorable."""
    empty_rate: float = 0.005
    refusal_rate: float = 0.005
    format_break_rate: float = 0.02
    """Replies without any answer, refusals, and answers that cannot be found in the reply: wrong."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            lowest = {"mean_strength": -sys.float_info.max, "wrong_answers": 1}.get(each.name, 0.0)
            highest = 1.0 if each.name.endswith(("_rate", "_share")) else sys.float_info.max
            if not lowest <= value <= highest:
                raise invalid(f"the assumption {each.name} cannot be {value}", param=each.name)
        if self.item_share + self.sample_share > 1:
            raise invalid("item_share and sample_share together must not be above 1", param="item_share")

    def changed(self, name: str, value: float) -> "Assumptions":
        """Return these assumptions with another value of one of them."""
        if name == "wrong_answers":
            return replace(self, wrong_answers=int(value))
        changes: dict[str, Any] = {name: value}
        return replace(self, **changes)

    @property
    def worker_share(self) -> float:
        """Share of variance of one worker's own luck with an item."""
        return 1.0 - self.item_share - self.sample_share

    def flag_rate(self, accuracy: float, *, is_right: bool) -> float:
        """Return how often a verifier of this accuracy objects to such an answer."""
        if is_right:
            return max(0.0, self.false_alarm_base - self.false_alarm_slope * accuracy)
        return min(1.0, self.detect_base + self.detect_slope * accuracy)

    def discern_rate(self, accuracy: float) -> float:
        """Return how often an aggregator of this accuracy tells the right answer where there is one."""
        return min(1.0, self.discern_base + self.discern_slope * accuracy)


SWEEP: Mapping[str, Sequence[float]] = {
    "item_share": (0.1, 0.26, 0.4),
    "sample_share": (0.03, 0.07, 0.2, 0.4),
    "wrong_answers": (2, 8, 30),
    "trap_rate": (0.0, 0.4, 0.8),
    "plan_lift": (0.0, 0.15, 0.4),
    "refine_lift": (0.0, 0.25, 0.6),
    "distraction": (0.0, 0.3, 0.8),
    "attraction": (0.0, 0.5, 1.2),
    "detect_base": (0.1, 0.3, 0.45, 0.6),
    "detect_slope": (0.0, 0.5),
    "false_alarm_base": (0.05, 0.25, 0.45),
    "false_alarm_slope": (0.0, 0.2),
    "discern_base": (0.0, 0.1, 0.3, 0.6),
    "discern_slope": (0.0, 0.3, 0.6),
    "mean_strength": (-0.5, 0.2, 1.0),
    "family_spread": (0.3, 1.0, 1.5),
    "worker_spread": (0.0, 0.4, 1.0),
    "residual_spread": (0.0, 0.7, 1.2),
    "solve_tokens": (100.0, 350.0, 1_200.0),
    "other_tokens": (60.0, 160.0, 600.0),
    "token_spread": (0.0, 0.45, 0.9),
    "thinking_multiplier": (1.0, 6.0, 15.0),
    "default_tokens_per_second": (20.0, 60.0, 200.0),
    "first_token_s": (0.1, 0.6, 2.0),
    "latency_spread": (0.0, 0.35, 0.8),
    "straggler_rate": (0.0, 0.01, 0.1),
    "straggler_factor": (4.0, 12.0, 40.0),
    "rate_limit_rate": (0.0, 0.002, 0.05),
    "failure_rate": (0.0, 0.002, 0.05),
    "empty_rate": (0.0, 0.005, 0.1),
    "refusal_rate": (0.0, 0.005, 0.1),
    "format_break_rate": (0.0, 0.02, 0.2),
}
"""The values that a sweep tries, each alone, the others as assumed."""


@dataclass(frozen=True, slots=True)
class SimulatedEffects:
    """What replay assumes beside recorded answers. An outcome that used one of these is marked as not exact.

    A verifier with accuracy p on an item calls wrong answers wrong at the rate `detect_base +
    detect_slope * p` and right ones at `false_alarm_base - false_alarm_slope * p`. A refiner that re-solves
    after a true flag, and a solver that sees a plan, turn a wrong recorded answer into a right one at the
    rate of their lift.
    """

    detect_base: float = 0.45
    detect_slope: float = 0.5
    false_alarm_base: float = 0.25
    false_alarm_slope: float = 0.2
    refine_lift: float = 0.1
    plan_lift: float = 0.05

    def flag_rate(self, accuracy: float, *, answer_is_right: bool) -> float:
        """Return how often a verifier of this accuracy (0..1) calls such an answer wrong."""
        if answer_is_right:
            return self.false_alarm_base - self.false_alarm_slope * accuracy
        return self.detect_base + self.detect_slope * accuracy


REPLAY_SWEEP: Mapping[str, Sequence[float]] = {
    "detect_base": (0.1, 0.3, 0.45, 0.8),
    "detect_slope": (0.0, 0.2, 0.5),
    "false_alarm_base": (0.05, 0.25, 0.45),
    "false_alarm_slope": (0.0, 0.2),
    "refine_lift": (0.0, 0.1, 0.4),
    "plan_lift": (0.0, 0.05, 0.2),
}
"""The same for replay, tried over recorded answers."""
REPLAY_FIRST_TOKEN_US = 500_000
REPLAY_TOKENS_PER_SECOND = 60
"""Speed of a worker whose card tells none; recordings hold no times."""
CHARS_PER_TOKEN = 4
"""Tokens of recorded answers are estimated: recordings hold characters of visible text only."""
