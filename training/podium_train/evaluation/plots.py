"""Measurements as pictures: accuracy over tokens, steps, and who is called. Needs matplotlib."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_DPI = 110
_WIDE = (9.0, 5.5)
_HALF_WIDTH = 0.4


def draw(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the PNGs of a measurement into `folder` and return their paths.

    Each suite has its tokens against accuracy, and shapes of plans where a Conductor was measured; suites of
    one group share a picture; a level of a suite has none.
    """
    written = []
    for suite in document["suites"]:
        if suite["is_part"] or suite["group"]:
            continue
        kinds = [("pareto", _pareto)]
        if suite["conductors"]:
            kinds += [("steps", _steps), ("workers", _workers)]
        for kind, drawn in kinds:
            path = folder / f"{document['name']}-{suite['name']}-{kind}.png"
            _drawn(path, f"{suite['title']}, {suite['item_count']} items", partial(drawn, suite=suite))
            written.append(path)
    for group in dict.fromkeys(
        suite["group"] for suite in document["suites"] if suite["group"] and not suite["is_part"]
    ):
        members = [suite for suite in document["suites"] if suite["group"] == group]
        path = folder / f"{document['name']}-{group}.png"
        _drawn(path, members[0]["title"].rpartition(": ")[0], partial(_sizes, suites=members))
        written.append(path)
    return written


def _drawn(path: Path, title: str, drawn: Callable[[Axes], None]) -> None:
    figure = Figure(figsize=_WIDE, dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    drawn(axes)
    axes.set_title(title, fontsize=9)
    figure.savefig(path, metadata={"Software": None})


def _sizes(axes: Axes, suites: Sequence[Mapping[str, Any]]) -> None:
    labels = [suite["title"].rpartition(": ")[2] for suite in suites]
    for name in dict.fromkeys(system["name"] for suite in suites for system in suite["systems"]):
        found = [
            (k, system["accuracy"])
            for k, suite in enumerate(suites)
            for system in suite["systems"]
            if system["name"] == name
        ]
        axes.plot([k for k, _ in found], [accuracy for _, accuracy in found], marker="o", label=name)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_ylabel("accuracy")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def _pareto(axes: Axes, suite: Mapping[str, Any]) -> None:
    best = 0.0
    for system in sorted(suite["systems"], key=_tokens):
        tokens, accuracy = _tokens(system), system["accuracy"]
        simulated = bool(system["simulated_share"])
        leads = accuracy > best and not system["marks"]
        best = max(best, accuracy) if not system["marks"] else best
        axes.scatter([tokens], [accuracy], marker="x" if simulated else "o", c="C3" if leads else "C0", s=24)
        label = f"{system['name']} (simulated)" if simulated else system["name"]
        axes.annotate(label, (tokens, accuracy), xytext=(4, 3), textcoords="offset points", fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("tokens per question, the Conductor's own included (characters / 4)")
    axes.set_ylabel("accuracy")
    axes.grid(alpha=0.3)


def _tokens(system: Mapping[str, Any]) -> float:
    return max(1.0, float(system["worker_tokens"] + system["conductor_tokens"]))


def _steps(axes: Axes, suite: Mapping[str, Any]) -> None:
    systems = _shaped(suite)
    counts = sorted({int(count) for system in systems for count in system["steps"]})
    bottoms = [0.0] * len(systems)
    for count in counts:
        shares = [_share(system["steps"], count) for system in systems]
        axes.barh(range(len(systems)), shares, 2 * _HALF_WIDTH, left=bottoms, label=f"{count}")
        bottoms = [bottom + share for bottom, share in zip(bottoms, shares, strict=True)]
    _named_rows(axes, systems)
    axes.set_xlabel("share of questions by number of worker calls (0: no valid plan)")


def _workers(axes: Axes, suite: Mapping[str, Any]) -> None:
    systems = _shaped(suite)
    workers = sorted({worker for system in systems for worker in system["worker_shares"]})
    bottoms = [0.0] * len(systems)
    for worker in workers:
        shares = [float(system["worker_shares"].get(worker, 0.0)) for system in systems]
        axes.barh(range(len(systems)), shares, 2 * _HALF_WIDTH, left=bottoms, label=worker)
        bottoms = [bottom + share for bottom, share in zip(bottoms, shares, strict=True)]
    _named_rows(axes, systems)
    axes.set_xlabel("share of worker calls")


def _share(steps: Mapping[Any, float], count: int) -> float:
    return float(steps.get(count, steps.get(str(count), 0.0)))


def _shaped(suite: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [
        system for system in suite["systems"] if "worker" not in system["marks"] and system["worker_shares"]
    ]


def _named_rows(axes: Axes, systems: Sequence[Mapping[str, Any]]) -> None:
    axes.set_yticks(range(len(systems)), [system["name"] for system in systems], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6, ncols=2, loc="lower right")
