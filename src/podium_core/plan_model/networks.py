"""The small networks behind each kind of choice, as plain arithmetic on arrays.

The torch twin that trains them is held equal to these by a test.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from podium_core.plan_model.words import Floats


@dataclass(frozen=True, slots=True, eq=False)
class PointNetwork:
    """One hidden layer over one row of features: [features] to [outputs] logits."""

    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: Floats

    def logits(self, features: Floats) -> Floats:
        """Return the logits of each row: [..., features] to [..., outputs]."""
        inner = np.maximum(features @ self.hidden + self.hidden_bias, 0.0)
        return np.asarray(inner @ self.out + self.out_bias, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class SetNetwork:
    """One logit per member of a set, whatever its size and order.

    Each member is read alone, then beside the mean and the maximum of all; a straight line from the features
    to the logit carries what needs no network.
    """

    hidden: Floats
    hidden_bias: Floats
    second: Floats
    around: Floats
    second_bias: Floats
    out: Floats
    line: Floats

    def logits(self, features: Floats) -> Floats:
        """Return the logits of a set: [members, features] to [members]."""
        inner = np.maximum(features @ self.hidden + self.hidden_bias, 0.0)
        around = np.concatenate([inner.mean(axis=0), inner.max(axis=0)])
        second = np.maximum(inner @ self.second + around @ self.around + self.second_bias, 0.0)
        return np.asarray((second @ self.out)[:, 0] + (features @ self.line)[:, 0], np.float32)


def point_network(arrays: Mapping[str, Floats], name: str) -> PointNetwork:
    """Return the network whose arrays are called `name.*`."""
    return PointNetwork(*(arrays[f"{name}.{part}"] for part in PointNetwork.__dataclass_fields__))


def set_network(arrays: Mapping[str, Floats], name: str) -> SetNetwork:
    """Return the network whose arrays are called `name.*`."""
    return SetNetwork(*(arrays[f"{name}.{part}"] for part in SetNetwork.__dataclass_fields__))


def chances(logits: Floats) -> Floats:
    """Return the probabilities of logits along the last axis; minus infinity has none."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), np.float32)
