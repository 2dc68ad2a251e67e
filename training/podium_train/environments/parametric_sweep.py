"""How fixed strategies fare when one assumed constant after the other takes other values.

A strategy that wins only under some value of an assumption has not won: the sweep shows which depend on what.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from podium_core.domain.errors import invalid
from podium_core.domain.plan import Access, Step
from podium_core.domain.pool import Worker
from podium_train.environments.assumptions import SWEEP, Assumptions
from podium_train.environments.parametric import ParametricEnvironment, accuracy_by_card
from podium_train.environments.parametric_pools import MadeUpPool
from podium_train.environments.port import Outcome, Task, Verdict
from podium_train.environments.roles import EXAMPLES, Role

AS_ASSUMED = Assumptions()
Strategy = Callable[[Task], tuple[Step, ...]]


def _step(worker: Worker, role: Role, *seen: int) -> Step:
    return Step(worker.worker_id, EXAMPLES[role], Access(seen))


def _by_mean(task: Task) -> list[Worker]:
    return sorted(task.workers, key=lambda worker: -worker.card.mean_accuracy_ppm)


def _by_family(task: Task) -> list[Worker]:
    return sorted(task.workers, key=lambda worker: -accuracy_by_card(worker, task))


def _best_single(task: Task) -> tuple[Step, ...]:
    return (_step(_by_mean(task)[0], Role.SOLVE),)


def _card_router(task: Task) -> tuple[Step, ...]:
    return (_step(_by_family(task)[0], Role.SOLVE),)


def _plan_then_solve(task: Task) -> tuple[Step, ...]:
    first, *others = _by_family(task)
    return _step((others or [first])[0], Role.PLAN), _step(first, Role.SOLVE, 0)


def _verify_then_refine(task: Task) -> tuple[Step, ...]:
    first, *others = _by_family(task)
    second = (others or [first])[0]
    return (
        _step(first, Role.SOLVE),
        _step(second, Role.VERIFY, 0),
        _step(second, Role.REFINE, 0, 1),
    )


def _three_then_compare(task: Task) -> tuple[Step, ...]:
    ranked = _by_family(task)
    three = [ranked[index % len(ranked)] for index in range(3)]
    return (*(_step(worker, Role.SOLVE) for worker in three), _step(ranked[0], Role.AGGREGATE, 0, 1, 2))


def _same_three_times(task: Task) -> tuple[Step, ...]:
    best = _by_mean(task)[0]
    return (*(_step(best, Role.SOLVE) for _ in range(3)), _step(best, Role.AGGREGATE, 0, 1, 2))


STRATEGIES: Mapping[str, Strategy] = {
    "best single": _best_single,
    "card router": _card_router,
    "plan, solve": _plan_then_solve,
    "solve, verify, refine": _verify_then_refine,
    "three, compare": _three_then_compare,
    "same thrice, compare": _same_three_times,
}


@dataclass(frozen=True, slots=True)
class SweptRow:
    """One value of one constant: each strategy's accuracy, mean cost (millionths of a dollar), mean time (s).

    The time is the longest chain of steps that wait for each other.
    """

    constant: str
    value: float
    is_assumed: bool
    accuracies: Mapping[str, float]
    costs_usd_micros: Mapping[str, float]
    times_s: Mapping[str, float]
    unscorable_share: float


def swept(
    *, item_count: int, seed: int, constants: Sequence[str] = (), base: Assumptions = AS_ASSUMED
) -> list[SweptRow]:
    """Return a row for every value of every constant that is named (all of them when none is).

    The same items and the same luck are used throughout, so that rows differ by the constant alone.
    """
    unknown = sorted(set(constants) - set(SWEEP))
    if unknown:
        raise invalid(f"no assumption is called {unknown[0]!r}; there are: {', '.join(SWEEP)}", param="only")
    if item_count < 1:
        raise invalid("a sweep needs an item at least", param="items")
    rows = []
    for name in constants or SWEEP:
        for value in SWEEP[name]:
            assumed = base.changed(name, value)
            rows.append(_row(name, value, assumed, base, item_count, seed))
    return rows


def _row(
    name: str, value: float, assumed: Assumptions, base: Assumptions, item_count: int, seed: int
) -> SweptRow:
    pool = MadeUpPool(seed, assumptions=assumed)
    environment = ParametricEnvironment(seed=seed, assumptions=assumed, accuracy_of=pool.accuracy)
    tasks = pool.tasks(item_count)
    scored: dict[str, list[Outcome]] = {}
    times_s: dict[str, float] = {}
    lost = 0
    for label, strategy in STRATEGIES.items():
        plans = [strategy(task) for task in tasks]
        outcomes = [environment.score_plan(plan, task) for plan, task in zip(plans, tasks, strict=True)]
        times_s[label] = _mean(
            [_time_s(plan, one) for plan, one in zip(plans, outcomes, strict=True) if one.steps]
        )
        scored[label] = [one for one in outcomes if one.verdict is Verdict.SCORED]
        lost += len(outcomes) - len(scored[label])
    return SweptRow(
        constant=name,
        value=value,
        is_assumed=getattr(base, name) == value,
        accuracies={label: _mean([float(one.is_right) for one in each]) for label, each in scored.items()},
        costs_usd_micros={
            label: _mean([float(sum(step.cost_usd_micros for step in one.steps)) for one in each])
            for label, each in scored.items()
        },
        times_s=times_s,
        unscorable_share=lost / (len(STRATEGIES) * item_count),
    )


def _time_s(plan: Sequence[Step], outcome: Outcome) -> float:
    ends_us: list[int] = []
    for step, done in zip(plan, outcome.steps, strict=True):
        ends_us.append(done.latency_us + max((ends_us[seen] for seen in step.access.steps), default=0))
    return ends_us[-1] / 1e6


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
