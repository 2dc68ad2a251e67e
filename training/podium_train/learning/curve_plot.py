"""A run's curve as a picture, drawn anew at every checkpoint."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

_PANELS = (
    ("reward", ("reward",)),
    ("shares", ("validity", "accuracy_given_valid", "clipped_share", "unscorable_share")),
    ("worker entropy, bits", ("worker_entropy_bits",)),
    ("steps a plan", ("mean_steps",)),
)
_INCHES = (9.0, 6.0)


def draw_curve(lines: Sequence[Mapping[str, float]], path: Path) -> None:
    """Write a PNG with reward, shares, worker entropy and steps over the iterations of `lines`."""
    figure = Figure(figsize=_INCHES, layout="constrained")
    for axes, (title, names) in zip(figure.subplots(2, 2).flat, _PANELS, strict=True):
        for name in names:
            points = [(line["iteration"], line[name]) for line in lines if name in line]
            if points:
                axes.plot(*zip(*points, strict=True), label=name.replace("_", " "))
        axes.set_title(title)
        axes.set_xlabel("iteration")
        if len(names) > 1 and axes.lines:
            axes.legend()
    making = path.with_name(f"making-{path.name}")
    figure.savefig(making, dpi=100)
    making.replace(path)
