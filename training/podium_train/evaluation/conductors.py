"""Conductors named on the command line, with their training seeds, rounds and ablations."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podium_core.domain.errors import invalid
from podium_train.evaluation.ablations import (
    FixedTopology,
    OneStep,
    ShuffledCards,
    ShuffledIds,
    WithoutSubtasks,
)
from podium_train.evaluation.embedded import embedded_writer
from podium_train.evaluation.measuring import Entrant
from podium_train.evaluation.systems import ABLATION, Conducted, PlanWriter, Trial

_ABLATIONS: Mapping[str, Callable[[PlanWriter], PlanWriter]] = {
    "no subtasks": WithoutSubtasks,
    "fixed topology": FixedTopology,
    "one step": OneStep,
    "shuffled ids": ShuffledIds,
    "shuffled cards": ShuffledCards,
}


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A folder of weights under the name that tables give it."""

    name: str
    path: Path

    @property
    def label(self) -> str:
        """Names the folder among several seeds."""
        return f"{self.name} {self.path.name[:12]}"


def named_path(text: str) -> NamedPath:
    """Read `NAME=PATH`, or a PATH alone, called conductor."""
    name, is_named, path = text.partition("=")
    if not is_named:
        name, path = "conductor", text
    if not name.strip() or not Path(path).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=FOLDER with a folder that is there")
    return NamedPath(name.strip(), Path(path))


def conductor_systems(
    named: Sequence[NamedPath], trial: Trial, ablated: Sequence[str], max_rounds: int
) -> list[Entrant]:
    """Return every Conductor, in the order it was named, each followed by its ablations."""
    writers: dict[str, list[PlanWriter]] = {}
    for entry in named:
        writers.setdefault(entry.name, []).append(embedded_writer(entry.path))
    unknown = sorted(set(ablated) - set(writers))
    if unknown:
        raise invalid(f"--ablations names {', '.join(unknown)}, which no --conductor is called")
    entrants: list[Entrant] = []
    for name, seeds in writers.items():
        entrants.append(Entrant(Conducted(name, tuple(seeds), trial), len(seeds)))
        if max_rounds > 1:
            title = f"{name}, {max_rounds} rounds"
            entrants.append(Entrant(Conducted(title, tuple(seeds), trial, max_rounds=max_rounds), len(seeds)))
        if name in ablated:
            entrants += [_ablated(name, kind, seeds, trial) for kind in _ABLATIONS]
    return entrants


def _ablated(name: str, kind: str, seeds: Sequence[PlanWriter], trial: Trial) -> Entrant:
    writers = tuple(_ABLATIONS[kind](writer) for writer in seeds)
    return Entrant(Conducted(f"{name}, {kind}", writers, trial, marks=(ABLATION,)), len(seeds))
