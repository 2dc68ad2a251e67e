"""What a run shows while it goes: a line per step, a file of figures, a plot; and alarms that stop it."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from podium_core.domain.errors import Code, PodiumError
from podium_train.learning.grpo import StepFigures

_log = logging.getLogger(__name__)
FIGURES_FILE = "progress.jsonl"
PLOT_FILE = "curve.png"


@dataclass(frozen=True, slots=True)
class AlarmLimits:
    """When a run counts as collapsed: means over its last `window` steps, against its first ones."""

    window: int = 8
    least_validity: float = 0.97
    most_accuracy_drop: float = 0.12
    least_entropy_share: float = 0.35
    most_one_length: float = 0.995


class Alarms:
    """Watches for collapse: of validity, accuracy given a valid plan, worker entropy, plan lengths."""

    def __init__(self, limits: AlarmLimits = AlarmLimits()) -> None:
        self._limits = limits
        self._seen: list[StepFigures] = []

    def watch(self, figures: StepFigures) -> None:
        """Take note of a step. Raises PodiumError TRAINING_COLLAPSED, which says what fell."""
        self._seen.append(figures)
        window = self._limits.window
        if len(self._seen) < 2 * window:
            return
        first, last = self._seen[:window], self._seen[-window:]
        for fault in self._faults(first, last):
            raise PodiumError(
                Code.INTERNAL,
                f"training stopped at step {figures.step}: {fault}; lower the learning rate or raise the KL",
                reason="TRAINING_COLLAPSED",
            )

    def _faults(self, first: Sequence[StepFigures], last: Sequence[StepFigures]) -> list[str]:
        limits, faults = self._limits, []
        validity = _mean([f.validity for f in last])
        if validity < limits.least_validity:
            faults.append(f"only {validity:.3f} of the plans are valid")
        before = _mean([f.accuracy_given_valid for f in first])
        after = _mean([f.accuracy_given_valid for f in last])
        if after < before - limits.most_accuracy_drop:
            faults.append(f"accuracy given a valid plan fell from {before:.3f} to {after:.3f}")
        before = _mean([f.worker_entropy for f in first])
        after = _mean([f.worker_entropy for f in last])
        if after < before * limits.least_entropy_share:
            faults.append(
                f"the choice of workers collapsed: entropy fell from {before:.2f} to {after:.2f} nats"
            )
        lengths = _lengths(last)
        if len(_lengths(first)) > 1 and max(lengths.values()) > limits.most_one_length * sum(
            lengths.values()
        ):
            faults.append("nearly all plans have the same number of steps")
        return faults


class Progress:
    """Writes a run's figures into its folder as they come. A resumed run keeps those before its step."""

    def __init__(self, folder: Path, resumed_step: int = 0) -> None:
        self._path = folder / FIGURES_FILE
        self._plot = folder / PLOT_FILE
        self.rows: list[dict[str, object]] = [row for row in _read(self._path) if _step(row) <= resumed_step]
        _write(self._path, self.rows)

    def add(self, figures: StepFigures, dev: Mapping[str, float] | None = None) -> None:
        """Keep and show a step's figures, and what the dev tasks gave if they were tried."""
        row: dict[str, object] = {**asdict(figures), **({"dev": dict(dev)} if dev else {})}
        self.rows.append(row)
        _append(self._path, row)
        kinds = ", ".join(f"{kind} {value:.3f}" for kind, value in figures.reward_by_kind.items())
        shown = f" | dev {', '.join(f'{k} {v:.3f}' for k, v in dev.items())}" if dev else ""
        _log.info(
            "step %d: reward %.3f (%s), steps %.2f, entropy %.2f, kl %.3f%s",
            figures.step,
            figures.reward,
            kinds,
            figures.mean_steps,
            figures.worker_entropy,
            figures.kl,
            shown,
        )
        if dev:
            self.plot()

    def plot(self) -> None:
        """Draw the curve so far; nothing happens where matplotlib is not installed."""
        try:
            import matplotlib as mpl  # noqa: PLC0415 - optional
        except ImportError:
            return
        mpl.use("Agg")
        from matplotlib import pyplot as plt  # noqa: PLC0415

        figure, (upper, lower) = plt.subplots(2, 1, figsize=(8, 7), sharex=True)
        steps = [_step(row) for row in self.rows]
        for kind in sorted({kind for row in self.rows for kind in _inner(row, "reward_by_kind")}):
            pairs = [
                (_step(r), _inner(r, "reward_by_kind")[kind])
                for r in self.rows
                if kind in _inner(r, "reward_by_kind")
            ]
            upper.plot(*zip(*pairs, strict=True), alpha=0.35, label=f"sampled, {kind}")
        for kind in sorted({kind for row in self.rows for kind in _inner(row, "dev")}):
            pairs = [(_step(r), _inner(r, "dev")[kind]) for r in self.rows if kind in _inner(r, "dev")]
            upper.plot(*zip(*pairs, strict=True), marker="o", label=f"greedy dev accuracy, {kind}")
        upper.set_ylabel("reward (0.5 wrong, 1 right) and accuracy")
        upper.legend(fontsize=7)
        for name in ("validity", "worker_entropy", "mean_steps"):
            lower.plot(steps, [row[name] for row in self.rows], label=name.replace("_", " "))
        lower.set_xlabel("step")
        lower.legend(fontsize=7)
        figure.savefig(self._plot, dpi=110)
        plt.close(figure)


def _lengths(steps: Sequence[StepFigures]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for figures in steps:
        for length, count in figures.step_histogram.items():
            counts[length] = counts.get(length, 0) + count
    return counts or {0: 1}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _step(row: Mapping[str, object]) -> int:
    step = row["step"]
    assert isinstance(step, int)
    return step


def _inner(row: Mapping[str, object], name: str) -> Mapping[str, float]:
    found = row.get(name, {})
    assert isinstance(found, dict)
    return found


def _read(path: Path) -> list[dict[str, object]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.endswith("}")]


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def _append(path: Path, row: Mapping[str, object]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(row)}\n")
