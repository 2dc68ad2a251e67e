"""What recordings cannot tell and replay assumes: how well workers check, what checks and plans are worth.

Every number here is an assumption, to be swept and never reported as one figure: no public table of verifier
quality a model was found. Outcomes that used one are marked as not exact.
"""

from dataclasses import dataclass

from podium_train.environments.roles import Role


@dataclass(frozen=True, slots=True)
class SimulatedEffects:
    """The assumed constants.

    A verifier with accuracy p flags wrong answers at rate `detect_base + detect_slope * p` and right ones at
    rate `false_alarm_base - false_alarm_slope * p`. A refiner that re-solves after a true flag, and a solver
    that sees a plan, turn a wrong recorded answer into a right one at the rate of their lift.
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


FIRST_TOKEN_US = 500_000
"""Assumed time to the first token, microseconds."""
DEFAULT_TOKENS_PER_SECOND = 60
CHARS_PER_TOKEN = 4
"""Tokens are estimated: recordings hold characters of visible text only."""

EXACT_ROLES = frozenset({Role.SOLVE, Role.AGGREGATE})
"""Roles whose effect is recorded: a solution, and a vote over recorded answers."""
