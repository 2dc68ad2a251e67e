"""The torch twin of the plan model's networks: the same arrays under the same names, with gradients."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from podium_core.plan_model.cards import VIEWS
from podium_core.plan_model.choices import Choice, Kind
from podium_core.plan_model.model import POINT_KINDS, feature_widths, output_width
from podium_core.plan_model.networks import PointNetwork, SetNetwork
from podium_core.plan_model.words import Floats

_HIDDEN = {Kind.SHAPE: 32, Kind.CUT: 32, Kind.ACCESS: 24, Kind.JOIN: 16}
_SET_HIDDEN, _SET_SECOND = 48, 32
_START_WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class Judged:
    """What the networks make of choices, in their order: log-probability of what was taken, and entropy."""

    log_probability: Tensor
    entropy: Tensor


class Twin(nn.Module):  # type: ignore[misc]
    """All networks. The worker network starts as a straight line over the cards' expectation."""

    def __init__(self, width: int, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.arrays = nn.ParameterDict()
        widths = feature_widths(width)
        for kind in POINT_KINDS:
            shapes = {
                "hidden": (widths[kind], _HIDDEN[kind]),
                "hidden_bias": (_HIDDEN[kind],),
                "out": (_HIDDEN[kind], output_width(kind)),
                "out_bias": (output_width(kind),),
            }
            for part in PointNetwork.__dataclass_fields__:
                self.arrays[_key(kind, part)] = _start(shapes[part], part, generator)
        shapes = {
            "hidden": (widths[Kind.WORKER], _SET_HIDDEN),
            "hidden_bias": (_SET_HIDDEN,),
            "second": (_SET_HIDDEN, _SET_SECOND),
            "around": (2 * _SET_HIDDEN, _SET_SECOND),
            "second_bias": (_SET_SECOND,),
            "out": (_SET_SECOND, 1),
            "line": (widths[Kind.WORKER], 1),
        }
        for part in SetNetwork.__dataclass_fields__:
            self.arrays[_key(Kind.WORKER, part)] = _start(shapes[part], part, generator)
        with torch.no_grad():
            self.arrays[_key(Kind.WORKER, "line")][:VIEWS] = _START_WEIGHT

    def part(self, kind: Kind, name: str) -> Tensor:
        """Return one array of a kind's network."""
        return self.arrays[_key(kind, name)]

    def export(self) -> dict[str, Floats]:
        """Return the arrays under the names that the plan model reads: `shape.hidden` and so on."""
        return {
            key.replace("__", "."): value.detach().numpy().astype(np.float32).copy()
            for key, value in self.arrays.items()
        }

    def load(self, arrays: Mapping[str, Floats]) -> None:
        """Take over arrays as `export` gives them."""
        with torch.no_grad():
            for key, value in self.arrays.items():
                value.copy_(torch.from_numpy(np.asarray(arrays[key.replace("__", ".")])))

    def point_logits(self, kind: Kind, features: Tensor) -> Tensor:
        """Return [rows, options] logits of a point kind from [rows, features]."""
        inner = functional.relu(features @ self.part(kind, "hidden") + self.part(kind, "hidden_bias"))
        logits = inner @ self.part(kind, "out") + self.part(kind, "out_bias")
        return logits if kind is Kind.SHAPE else functional.pad(logits, (1, 0))

    def worker_logits(self, features: Tensor, members: Tensor) -> Tensor:
        """Return [sets, workers] logits of [sets, workers, features]; `members` marks what is no padding."""
        kind = Kind.WORKER
        inner = functional.relu(features @ self.part(kind, "hidden") + self.part(kind, "hidden_bias"))
        held = members[..., None]
        mean = (inner * held).sum(1) / held.sum(1)
        most = inner.masked_fill(~held, -torch.inf).max(1).values
        around = torch.cat([mean, most], dim=1) @ self.part(kind, "around")
        second = functional.relu(
            inner @ self.part(kind, "second") + around[:, None] + self.part(kind, "second_bias")
        )
        return (second @ self.part(kind, "out"))[..., 0] + (features @ self.part(kind, "line"))[..., 0]

    def logits_of(self, kind: Kind, batch: "Batch") -> Tensor:
        """Return masked logits of a batch of one kind."""
        if kind is Kind.WORKER:
            logits = self.worker_logits(batch.features, batch.members)
        else:
            logits = self.point_logits(kind, batch.features)
        return logits.masked_fill(~batch.allowed, -torch.inf)

    def judge(self, batches: Mapping[Kind, "Batch"], count: int) -> Judged:
        """Return log-probability and entropy of `count` choices, given in batches by kind."""
        log_probability, entropy = torch.zeros(count), torch.zeros(count)
        for kind, batch in batches.items():
            logs = functional.log_softmax(self.logits_of(kind, batch), dim=1)
            taken = logs.gather(1, batch.taken[:, None])[:, 0]
            finite = logs.masked_fill(~batch.allowed, 0.0)
            log_probability = log_probability.index_add(0, batch.places, taken)
            entropy = entropy.index_add(0, batch.places, -(logs.exp() * finite).sum(1))
        return Judged(log_probability, entropy)


@dataclass(frozen=True, slots=True)
class Batch:
    """Choices of one kind. `places` tells where each stands among all; pools are padded to the largest."""

    features: Tensor
    members: Tensor
    allowed: Tensor
    taken: Tensor
    places: Tensor


def batches_of(choices: Sequence[Choice]) -> dict[Kind, Batch]:
    """Return the choices by kind."""
    by_kind: dict[Kind, list[int]] = {}
    for place, choice in enumerate(choices):
        by_kind.setdefault(choice.kind, []).append(place)
    return {kind: _batch(kind, [choices[i] for i in places], places) for kind, places in by_kind.items()}


def _batch(kind: Kind, choices: Sequence[Choice], places: Iterable[int]) -> Batch:
    most = max(len(choice.allowed) for choice in choices)
    allowed = np.zeros((len(choices), most), np.bool_)
    members = np.zeros((len(choices), most), np.bool_)
    width = choices[0].features.shape[-1]
    shape = (len(choices), most, width) if kind is Kind.WORKER else (len(choices), width)
    features = np.zeros(shape, np.float32)
    for row, choice in enumerate(choices):
        allowed[row, : len(choice.allowed)] = choice.allowed
        members[row, : len(choice.allowed)] = True
        if kind is Kind.WORKER:
            features[row, : len(choice.allowed)] = choice.features
        else:
            features[row] = choice.features
    return Batch(
        torch.from_numpy(features),
        torch.from_numpy(members),
        torch.from_numpy(allowed),
        torch.tensor([choice.taken for choice in choices]),
        torch.tensor(list(places)),
    )


def _start(shape: tuple[int, ...], part: str, generator: torch.Generator) -> nn.Parameter:
    if part in ("hidden", "second", "around"):
        return nn.Parameter(torch.randn(shape, generator=generator) * (1.4 / shape[0] ** 0.5))
    if part == "out":
        return nn.Parameter(torch.randn(shape, generator=generator) * 0.02)
    return nn.Parameter(torch.zeros(shape))


def _key(kind: Kind, part: str) -> str:
    return f"{kind.value}__{part}"
