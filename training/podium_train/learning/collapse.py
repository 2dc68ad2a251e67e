"""Figures of one batch of rollouts, and the alarms that stop a run when they show a collapse.

Published routers and conductors collapsed to one worker or one step while their accuracy rose, because only
validity had risen. So accuracy given a valid plan, worker entropy and the step histogram are watched apart.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

from podium_train.environments.port import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """Shares of one batch, 0 to 1, over its scorable rollouts; None where nothing can be said.

    `worker_entropy_bits` is that of the workers over all performed steps; `step_shares` maps a number of
    steps to its share of the valid plans.
    """

    rollout_count: int
    unscorable_share: float
    validity: float | None
    accuracy: float | None
    accuracy_given_valid: float | None
    worker_entropy_bits: float | None
    mean_steps: float | None
    step_shares: Mapping[int, float]

    def as_metrics(self) -> dict[str, float]:
        """Return the figures that are there under flat names, as a progress line holds them."""
        named = {
            "unscorable_share": self.unscorable_share,
            "validity": self.validity,
            "accuracy": self.accuracy,
            "accuracy_given_valid": self.accuracy_given_valid,
            "worker_entropy_bits": self.worker_entropy_bits,
            "mean_steps": self.mean_steps,
        }
        steps = {f"steps/{count}": share for count, share in sorted(self.step_shares.items())}
        return {name: value for name, value in named.items() if value is not None} | steps


def figures_of(outcomes: Sequence[Outcome]) -> BatchFigures:
    """Return the figures of a batch that is not empty."""
    scorable = [outcome for outcome in outcomes if outcome.verdict is not Verdict.UNSCORABLE]
    valid = [outcome for outcome in scorable if outcome.verdict is Verdict.SCORED]
    right = sum(outcome.is_right for outcome in valid)
    workers = Counter(step.worker_id for outcome in valid for step in outcome.steps)
    steps = Counter(len(outcome.steps) for outcome in valid)
    return BatchFigures(
        rollout_count=len(outcomes),
        unscorable_share=1 - len(scorable) / len(outcomes),
        validity=len(valid) / len(scorable) if scorable else None,
        accuracy=right / len(scorable) if scorable else None,
        accuracy_given_valid=right / len(valid) if valid else None,
        worker_entropy_bits=_entropy_bits(workers) if workers else None,
        mean_steps=sum(count * times for count, times in steps.items()) / len(valid) if valid else None,
        step_shares={count: times / len(valid) for count, times in steps.items()},
    )


def _entropy_bits(counts: Mapping[str, int]) -> float:
    total = sum(counts.values())
    return -sum(count / total * log2(count / total) for count in counts.values())


@dataclass(frozen=True, slots=True)
class CollapseLimits:
    """When a run stops. Each limit holds for the mean over the last `window` iterations, after `grace`.

    `max_clipped_share`: completions that hit the token cap; too small a cap makes every reward 0, silently.
    `max_validity_drop` and `max_accuracy_drop` (accuracy given valid): below the best mean so far.
    `min_worker_entropy_bits`, `max_one_count_share` (share of the commonest number of steps): off by default,
    because a pool of one worker or tasks of one step rightly reach them.
    """

    window: int = 5
    grace: int = 5
    max_clipped_share: float = 0.5
    max_validity_drop: float = 0.3
    max_accuracy_drop: float = 0.3
    min_worker_entropy_bits: float = 0.0
    max_one_count_share: float = 1.0


class CollapseWatch:
    """Takes in each iteration's metrics and says when to stop, and why."""

    def __init__(self, limits: CollapseLimits) -> None:
        self._limits = limits
        self._seen: dict[str, deque[float]] = {}
        self._best: dict[str, float] = {}
        self._iterations = 0

    def see(self, metrics: Mapping[str, float]) -> str | None:
        """Return why the run should stop after this iteration; None to go on.

        Reads `clipped_share` and the names of `BatchFigures.as_metrics`; what is missing is not judged.
        """
        limits = self._limits
        self._iterations += 1
        clipped = self._mean("clipped_share", metrics)
        validity = self._mean("validity", metrics)
        accuracy = self._mean("accuracy_given_valid", metrics)
        entropy = self._mean("worker_entropy_bits", metrics)
        shares = [value for name, value in metrics.items() if name.startswith("steps/")]
        one_count = self._mean("one_count", {"one_count": max(shares)} if shares else {})
        drops = (self._drop("validity", validity), self._drop("accuracy_given_valid", accuracy))
        if self._iterations <= limits.grace:
            return None
        judged = (
            (clipped, clipped > limits.max_clipped_share, "of the completions hit the token cap"),
            (drops[0], drops[0] > limits.max_validity_drop, "of the validity once reached is lost"),
            (drops[1], drops[1] > limits.max_accuracy_drop, "of the accuracy given valid is lost"),
            (entropy, 0 <= entropy < limits.min_worker_entropy_bits, "bits of worker entropy are left"),
            (one_count, one_count > limits.max_one_count_share, "of the plans have one number of steps"),
        )
        return next((f"{value:.2f} {what}" for value, is_over, what in judged if is_over), None)

    def _mean(self, name: str, metrics: Mapping[str, float]) -> float:
        """Return the mean over the window; -1 when the figure was never there."""
        seen = self._seen.setdefault(name, deque(maxlen=self._limits.window))
        if name in metrics:
            seen.append(metrics[name])
        return sum(seen) / len(seen) if seen else -1.0

    def _drop(self, name: str, mean: float) -> float:
        # Against full windows only: the first lucky batch is no level that was reached.
        if len(self._seen[name]) == self._limits.window:
            self._best[name] = max(mean, self._best.get(name, mean))
        return self._best.get(name, mean) - mean
