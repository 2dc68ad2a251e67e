"""How fixed strategies fare over recorded answers when one assumed effect after the other takes other values.

The strategies are those of the parametric sweep. What takes no assumed effect (one step, a vote) is the same
in every row: it shows what the others have to beat under each value.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from podium_core.domain.errors import invalid
from podium_train.environments.assumptions import REPLAY_SWEEP, SimulatedEffects
from podium_train.environments.parametric_sweep import STRATEGIES
from podium_train.environments.port import Task, Verdict
from podium_train.environments.replay import ReplayEnvironment
from podium_train.outcomes.items import RecordedSet

AS_ASSUMED = SimulatedEffects()


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """One value of one effect and each strategy's accuracy, 0..1."""

    constant: str
    value: float
    is_assumed: bool
    accuracies: Mapping[str, float]


def swept_replay(
    recorded: RecordedSet, tasks: Sequence[Task], constants: Iterable[str] = ()
) -> list[ReplayRow]:
    """Return a row for every value of every effect that is named (all of them when none is).

    The same tasks, samples and luck are used throughout, so that rows differ by the effect alone.
    """
    names = tuple(constants) or tuple(REPLAY_SWEEP)
    unknown = next((name for name in names if name not in REPLAY_SWEEP), None)
    if unknown is not None:
        known = ", ".join(REPLAY_SWEEP)
        raise invalid(f"replay assumes nothing called {unknown!r}; there are: {known}", param="only")
    if not tasks:
        raise invalid("a sweep needs a task at least", param="items")
    return [
        ReplayRow(
            name,
            value,
            getattr(AS_ASSUMED, name) == value,
            _accuracies(recorded, tasks, replace(AS_ASSUMED, **{name: value})),
        )
        for name in names
        for value in REPLAY_SWEEP[name]
    ]


def _accuracies(recorded: RecordedSet, tasks: Sequence[Task], effects: SimulatedEffects) -> dict[str, float]:
    environment = ReplayEnvironment(recorded, effects=effects)
    found = {}
    for label, strategy in STRATEGIES.items():
        outcomes = [environment.score_plan(strategy(task), task) for task in tasks]
        scored = [one.is_right for one in outcomes if one.verdict is Verdict.SCORED]
        found[label] = sum(scored) / len(scored) if scored else 0.0
    return found
