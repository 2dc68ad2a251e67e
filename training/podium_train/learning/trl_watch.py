"""Watches a TRL run: writes its curve, stops it when it collapses or before the disk is full."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from podium_core.domain.errors import Code, PodiumError
from podium_train.learning.collapse import CollapseLimits, CollapseWatch
from podium_train.learning.curve_file import CurveFile
from podium_train.learning.curve_plot import draw_curve

_NAMES = {
    "completions/clipped_ratio": "clipped_share",
    "completions/mean_length": "mean_completion_tokens",
    "frac_reward_zero_std": "flat_group_share",
    "reward": "reward",
    "reward_std": "reward_std",
    "entropy": "token_entropy_nats",
    "loss": "loss",
    "grad_norm": "gradient_norm",
    "learning_rate": "learning_rate",
    "step_time": "iteration_s",
}
_FIGURES = (
    "unscorable_share",
    "validity",
    "accuracy",
    "accuracy_given_valid",
    "worker_entropy_bits",
    "mean_steps",
)
_SHOWN = ("reward", "validity", "accuracy_given_valid", "worker_entropy_bits", "mean_steps", "iteration_s")
_COPIES = 3
"""Weights and the two moments of the optimiser, all of one size."""
_MARGIN = 1.1


class RunWatch(TrainerCallback):  # type: ignore[misc]  # transformers ships no types here
    """`free_bytes(folder)` is the room on its disk, `tell` takes a line per iteration.

    `alarm` says why the run was stopped; None when it was not.
    """

    def __init__(
        self,
        curve: CurveFile,
        limits: CollapseLimits,
        free_bytes: Callable[[Path], int],
        tell: Callable[[str], None],
    ) -> None:
        self._curve = curve
        self._collapse = CollapseWatch(limits)
        self._free_bytes = free_bytes
        self._tell = tell
        self.alarm: str | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Take in again what a resumed run had already seen."""
        del args, control
        cut_back = self._curve.cut_back if state.is_world_process_zero else self._curve.up_to
        for line in cut_back(state.global_step):
            self._collapse.see(line)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Refuse to begin a checkpoint that would not fit: half of one is worth nothing."""
        if not control.should_save or not state.is_world_process_zero:
            return
        needed = int(sum(weight.numel() * 4 for weight in model.parameters()) * _COPIES * _MARGIN)
        if self._free_bytes(Path(args.output_dir)) < needed:
            raise PodiumError(
                Code.UNAVAILABLE,
                f"a checkpoint needs {needed // 1_000_000} MB and the disk of the output folder has less; "
                "make room and resume the run from its last checkpoint",
                reason="TRAIN_DISK_FULL",
            )

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Draw the curve so far beside the checkpoint."""
        del control
        if state.is_world_process_zero:
            draw_curve(self._curve.read(), Path(args.output_dir) / "curve.png")

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, float] | None = None, **_: Any
    ) -> None:
        """Write the iteration's line and judge it.

        Every process judges: the figures are those of all of them, and one that stopped alone would leave
        the others waiting for it.
        """
        del args
        if logs is None or "reward" not in logs:
            return
        named = {name: logs[key] for key, name in _NAMES.items() if key in logs}
        ours = {key: logs[key] for key in logs if key in _FIGURES or key.startswith("steps/")}
        figures = {name: float(value) for name, value in (named | ours).items()}
        if state.is_world_process_zero:
            self._curve.append(state.global_step, figures)
            shown = (f"{name} {figures[name]:.3g}" for name in _SHOWN if name in figures)
            self._tell(f"iteration {state.global_step}/{state.max_steps}: {', '.join(shown)}")
        self.alarm = self._collapse.see(figures)
        if self.alarm is not None:
            control.should_save = True
            control.should_training_stop = True
