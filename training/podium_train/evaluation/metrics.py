"""What one system is worth over one suite's items."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium_train.environments.port import Verdict
from podium_train.evaluation.results import Answered, SystemRuns
from podium_train.evaluation.statistics import Spread, spread


@dataclass(frozen=True, slots=True)
class Metrics:
    """Means over items, then over runs. Shares are 0 to 1; tokens, calls and money are per question.

    `worker_entropy` is in bits over the calls; `used_entropy_share` divides it by what even use of the
    workers that were offered would give. `steps` maps a plan's number of steps to its share.
    """

    item_count: int
    accuracy: float
    accuracy_given_valid: float
    validity: float
    calls: float
    worker_tokens: float
    conductor_tokens: float
    cost_usd_micros: float
    one_call_share: float
    worker_entropy: float
    used_entropy_share: float
    steps: Mapping[int, float]
    worker_shares: Mapping[str, float]
    seeds: Spread


def metrics_of(system: SystemRuns, positions: Sequence[int]) -> Metrics:
    """Return the metrics over the items at `positions`; raise ValueError when there are none."""
    if not positions:
        raise ValueError(f"no item of {system.name} could be scored")
    runs = [[run[k] for k in positions] for run in system.runs]
    lines = [line for run in runs for line in run]
    valid = [line for line in lines if line.verdict is Verdict.SCORED]
    shares = worker_shares(lines)
    offered = {worker for line in lines for worker in line.pool}
    entropy = entropy_bits(shares)
    return Metrics(
        item_count=len(positions),
        accuracy=_mean([line.is_right for line in lines]),
        accuracy_given_valid=_mean([line.is_right for line in valid]),
        validity=len(valid) / len(lines),
        calls=_mean([len(line.worker_ids) for line in lines]),
        worker_tokens=_mean([line.worker_usage.total_tokens for line in lines]),
        conductor_tokens=_mean([line.conductor_usage.total_tokens for line in lines]),
        cost_usd_micros=_mean([line.cost_usd_micros for line in lines]),
        one_call_share=_mean([len(line.worker_ids) == 1 for line in lines]),
        worker_entropy=entropy,
        used_entropy_share=entropy / math.log2(len(offered)) if len(offered) > 1 else 0.0,
        steps=steps_histogram(lines),
        worker_shares=shares,
        seeds=spread([_mean([line.is_right for line in run]) for run in runs]),
    )


def steps_histogram(lines: Sequence[Answered]) -> dict[int, float]:
    """Return the share of questions per number of calls; 0 stands for plans that were no plans."""
    counts = Counter(len(line.worker_ids) for line in lines)
    return {steps: counts[steps] / len(lines) for steps in sorted(counts)}


def worker_shares(lines: Sequence[Answered]) -> dict[str, float]:
    """Return each worker's share of all calls."""
    counts = Counter(worker for line in lines for worker in line.worker_ids)
    total = sum(counts.values())
    return {worker: counts[worker] / total for worker in sorted(counts)}


def entropy_bits(shares: Mapping[str, float]) -> float:
    """Return Shannon's entropy of `shares` in bits: 0 when one worker does everything."""
    return -sum(share * math.log2(share) for share in shares.values() if share > 0) + 0.0


def headroom_captured(accuracy: float, best_single: float, oracle: float) -> float | None:
    """Return (system - best single) / (oracle - best single); None where there is no headroom."""
    room = oracle - best_single
    return (accuracy - best_single) / room if room > 0 else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
