"""The plan model: a text encoder, a space of skills, and one network per kind of choice."""

from collections.abc import Mapping
from dataclasses import dataclass

from podium_core.plan_model.choices import SHAPES, Kind
from podium_core.plan_model.encoder import TextEncoder
from podium_core.plan_model.features import (
    ACCESS_EXTRA,
    CUT_EXTRA,
    JOIN_EXTRA,
    SHAPE_EXTRA,
    WORKER_WIDTH,
)
from podium_core.plan_model.networks import PointNetwork, SetNetwork, point_network, set_network
from podium_core.plan_model.skills import SkillSpace
from podium_core.plan_model.words import Floats


def feature_widths(width: int) -> Mapping[Kind, int]:
    """Return how many features each kind of choice has, for vectors of `width` numbers."""
    return {
        Kind.SHAPE: width + SHAPE_EXTRA,
        Kind.CUT: 2 * width + CUT_EXTRA,
        Kind.WORKER: WORKER_WIDTH,
        Kind.ACCESS: width + ACCESS_EXTRA,
        Kind.JOIN: width + JOIN_EXTRA,
    }


def output_width(kind: Kind) -> int:
    """Return how many logits the network of `kind` has for one row."""
    return len(SHAPES) if kind is Kind.SHAPE else 1


POINT_KINDS = (Kind.SHAPE, Kind.CUT, Kind.ACCESS, Kind.JOIN)
"""Kinds whose options do not depend on the pool."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanModel:
    """Everything that decides a plan. Immutable; one instance serves many calls at once."""

    encoder: TextEncoder
    space: SkillSpace
    points: Mapping[Kind, PointNetwork]
    workers: SetNetwork

    @classmethod
    def of(cls, space: SkillSpace, arrays: Mapping[str, Floats]) -> "PlanModel":
        """Return a model of a space of skills and the networks' arrays."""
        points = {kind: point_network(arrays, kind.value) for kind in POINT_KINDS}
        return cls(space.encoder, space, points, set_network(arrays, Kind.WORKER.value))

    def with_networks(self, arrays: Mapping[str, Floats]) -> "PlanModel":
        """Return the model with other networks: arrays called `shape.hidden`, `worker.line` and so on."""
        return PlanModel.of(self.space, arrays)
