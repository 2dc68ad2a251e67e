"""Learns the text encoder: hashed features that imitate a sentence encoder and tell skills apart.

Three losses: the likeness of two texts is that which the teacher sees (distillation of similarities); a text
is nearest to its own skill's centre; and nearest to its own skill's name, so that names never seen can be
read. The teacher's weights are not kept: only what the table learnt from its outputs.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from podium_core.plan_model.encoder import TextEncoder, unit
from podium_core.plan_model.skills import SkillSpace, skill_words
from podium_core.plan_model.words import BUCKETS, Floats, features_of
from podium_train.learning.texts import Example

_log = logging.getLogger(__name__)
_CENTRE_TEMPERATURE = 0.08
_NAME_TEMPERATURE = 0.12
_LIKENESS_WEIGHT = 20.0
_INT8 = 127.0


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How the encoder is learnt. `width` is the vectors' length in numbers."""

    width: int = 96
    steps: int = 1_000
    batch: int = 160
    learning_rate: float = 4e-3
    skill_weight: float = 0.15
    name_weight: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Bags:
    """Features of many texts, one after another, as torch's EmbeddingBag takes them."""

    rows: tuple[npt.NDArray[np.int64], ...]
    weights: tuple[Floats, ...]

    def batch(self, chosen: npt.NDArray[np.int64], keep: float, rng: np.random.Generator) -> list[Tensor]:
        rows, weights, offsets, at = [], [], [], 0
        for index in chosen:
            row, weight = self.rows[index], self.weights[index]
            if keep < 1.0:
                kept = rng.random(len(row)) < keep
                row, weight = row[kept], weight[kept]
            rows.append(row)
            weights.append(weight)
            offsets.append(at)
            at += len(row)
        return [
            torch.from_numpy(np.concatenate(rows)),
            torch.from_numpy(np.concatenate(weights)),
            torch.tensor(offsets),
        ]


def _bags(texts: Sequence[str]) -> _Bags:
    found = [features_of(text) for text in texts]
    return _Bags(tuple(rows for rows, _ in found), tuple(weights for _, weights in found))


def learn_encoder(
    examples: Sequence[Example],
    taught: Mapping[int, npt.NDArray[np.float16]],
    names: Sequence[str],
    name_taught: npt.NDArray[np.float16] | None,
    options: EncoderOptions,
) -> SkillSpace:
    """Return the space of skills with its encoder.

    `taught` holds the teacher's vectors of some examples, by index, and `name_taught` those of the skills'
    names; without a teacher the table learns from the skills alone.
    """
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    learner = _Learner(examples, taught, names, name_taught, options)
    started = time.monotonic()
    for step in range(options.steps):
        figures = learner.advance(step, rng)
        if step % 100 == 0 or step == options.steps - 1:
            _log.info("encoder step %d: %s (%.0f s)", step, figures, time.monotonic() - started)
    return skill_space(_stored(learner.table.weight.detach().numpy()), examples, names)


class _Learner:
    """The table while it learns, with what it learns from."""

    def __init__(
        self,
        examples: Sequence[Example],
        taught: Mapping[int, npt.NDArray[np.float16]],
        names: Sequence[str],
        name_taught: npt.NDArray[np.float16] | None,
        options: EncoderOptions,
    ) -> None:
        self._options = options
        self._bags, self._name_bags = (
            _bags([e.text for e in examples]),
            _bags([skill_words(n) for n in names]),
        )
        index_of = {name: index for index, name in enumerate(names)}
        self._labels = np.asarray([index_of.get(e.skill, -1) for e in examples])
        self._odds = _balanced(self._labels)
        self._taught = np.asarray(list(taught))
        self._place = {index: place for place, index in enumerate(taught)}
        if name_taught is not None:
            shown = np.concatenate([np.stack(list(taught.values())), name_taught])
            self._teacher = torch.from_numpy(shown.astype(np.float32))
        self._every = np.arange(len(names))
        self.table = nn.EmbeddingBag(BUCKETS, options.width, mode="sum")
        nn.init.normal_(self.table.weight, std=0.05)
        self._centres = nn.Parameter(torch.randn(len(names), options.width) * 0.05)
        self._optimiser = torch.optim.Adam([self.table.weight, self._centres], lr=options.learning_rate)

    def advance(self, step: int, rng: np.random.Generator) -> str:
        """Do one step and return its losses as text."""
        options = self._options
        for group in self._optimiser.param_groups:
            group["lr"] = options.learning_rate * min(1.0, 2.0 * (1.0 - step / options.steps))
        keep = float(rng.choice([1.0, 0.7, 0.4]))
        named = self._vectors(self._name_bags, self._every, 1.0, rng)
        chosen = rng.choice(len(self._labels), options.batch, p=self._odds)
        vectors = self._vectors(self._bags, chosen, keep, rng)
        known = torch.from_numpy(np.nonzero(self._labels[chosen] >= 0)[0])
        label = torch.from_numpy(self._labels[chosen])[known]
        centred = functional.normalize(self._centres, dim=1)
        by_centre = functional.cross_entropy(vectors[known] @ centred.T / _CENTRE_TEMPERATURE, label)
        by_name = functional.cross_entropy(vectors[known] @ named.T / _NAME_TEMPERATURE, label)
        alike = self._unlikeness(named, keep, rng) if len(self._taught) else torch.zeros(())
        loss = alike + options.skill_weight * by_centre + options.name_weight * by_name
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        return f"likeness {alike.item():.4f}, skill {by_centre.item():.3f}, name {by_name.item():.3f}"

    def _unlikeness(self, named: Tensor, keep: float, rng: np.random.Generator) -> Tensor:
        """Return how far likenesses are from the teacher's, over some texts and all skills' names."""
        shown = rng.choice(self._taught, self._options.batch)
        both = torch.cat([self._vectors(self._bags, shown, keep, rng), named])
        places = [self._place[index] for index in shown.tolist()]
        target = self._teacher[[*places, *(len(self._place) + self._every).tolist()]]
        return ((both @ both.T - target @ target.T) ** 2).mean() * _LIKENESS_WEIGHT

    def _vectors(
        self, bags: _Bags, chosen: npt.NDArray[np.int64], keep: float, rng: np.random.Generator
    ) -> Tensor:
        rows, weights, offsets = bags.batch(chosen, keep, rng)
        return functional.normalize(self.table(rows, offsets, per_sample_weights=weights), dim=1)


def skill_space(encoder: TextEncoder, examples: Sequence[Example], names: Sequence[str]) -> SkillSpace:
    """Return the space whose known skills lie at the mean of their examples."""
    sums = {name: np.zeros(encoder.width, np.float32) for name in names}
    for example in examples:
        if example.skill in sums:
            sums[example.skill] += encoder.encode(example.text)
    rows = {skill_words(name): index for index, name in enumerate(names)}
    return SkillSpace(encoder, rows, unit(np.stack([sums[name] for name in names])))


def _stored(weights: Floats) -> TextEncoder:
    factors = np.maximum(np.abs(weights).max(axis=1), 1e-8) / _INT8
    table = np.round(weights / factors[:, None]).astype(np.int8)
    return TextEncoder(table, factors.astype(np.float32))


def _balanced(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the chance of each example: by the square root of how many its skill has."""
    counts = np.bincount(labels + 1, minlength=int(labels.max()) + 2).astype(np.float64)
    weights = 1.0 / np.sqrt(np.maximum(counts[labels + 1], 1.0))
    return np.asarray(weights / weights.sum(), np.float64)
