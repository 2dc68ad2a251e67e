"""Learns the text encoder: a table of hashed features that imitates a sentence encoder and tells skills apart.

Three losses: the likeness of two texts is that which the teacher sees (distillation of similarities); a text is
nearest to its own skill's centre; and nearest to its own skill's name, so that names never seen can be read.
The teacher's weights are not kept: only what the table learnt from its outputs.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from podium_core.plan_model.encoder import TextEncoder, unit
from podium_core.plan_model.skills import SkillSpace, skill_words
from podium_core.plan_model.words import BUCKETS, Floats, features_of
from podium_train.learning.texts import Example

_log = logging.getLogger(__name__)
_CENTRE_TEMPERATURE = 0.08
_NAME_TEMPERATURE = 0.12
_INT8 = 127.0


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How the encoder is learnt. `width` is the vectors' length in numbers."""

    width: int = 96
    steps: int = 1_500
    batch: int = 256
    learning_rate: float = 4e-3
    skill_weight: float = 0.15
    name_weight: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Bags:
    """Features of many texts, one after another, as torch's EmbeddingBag takes them."""

    rows: tuple[npt.NDArray[np.int64], ...]
    weights: tuple[Floats, ...]

    def batch(self, chosen: npt.NDArray[np.int64], keep: float, rng: np.random.Generator) -> list[torch.Tensor]:
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
    examples: Sequence[Example], taught: npt.NDArray[np.float16], name_taught: npt.NDArray[np.float16],
    names: Sequence[str], options: EncoderOptions,
) -> SkillSpace:
    """Return the space of skills with its encoder.

    `taught` and `name_taught` are the teacher's vectors of the examples and of the skills' names, of length 1.
    """
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    bags, name_bags = _bags([e.text for e in examples]), _bags([skill_words(name) for name in names])
    index_of = {name: index for index, name in enumerate(names)}
    labels = np.asarray([index_of.get(e.skill, -1) for e in examples])
    teacher = torch.from_numpy(np.concatenate([taught, name_taught]).astype(np.float32))
    table = torch.nn.EmbeddingBag(BUCKETS, options.width, mode="sum")
    torch.nn.init.normal_(table.weight, std=0.05)
    centres = torch.nn.Parameter(torch.randn(len(names), options.width) * 0.05)
    optimiser = torch.optim.Adam([table.weight, centres], lr=options.learning_rate)
    chances = _balanced(labels)
    started = time.monotonic()
    for step in range(options.steps):
        for group in optimiser.param_groups:
            group["lr"] = options.learning_rate * min(1.0, 2.0 * (1.0 - step / options.steps))
        chosen = rng.choice(len(examples), options.batch, p=chances)
        keep = float(rng.choice([1.0, 0.7, 0.4]))
        rows, weights, offsets = bags.batch(chosen, keep, rng)
        vectors = torch.nn.functional.normalize(table(rows, offsets, per_sample_weights=weights), dim=1)
        every = np.arange(len(names))
        name_rows, name_weights, name_offsets = name_bags.batch(every, 1.0, rng)
        named = torch.nn.functional.normalize(
            table(name_rows, name_offsets, per_sample_weights=name_weights), dim=1
        )
        both = torch.cat([vectors, named])
        target = teacher[np.concatenate([chosen, len(examples) + every])]
        alike = ((both @ both.T - target @ target.T) ** 2).mean() * 20
        known = torch.from_numpy(np.nonzero(labels[chosen] >= 0)[0])
        label = torch.from_numpy(labels[chosen])[known]
        centred = torch.nn.functional.normalize(centres, dim=1)
        by_centre = torch.nn.functional.cross_entropy(
            vectors[known] @ centred.T / _CENTRE_TEMPERATURE, label
        )
        by_name = torch.nn.functional.cross_entropy(vectors[known] @ named.T / _NAME_TEMPERATURE, label)
        loss = alike + options.skill_weight * by_centre + options.name_weight * by_name
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 100 == 0 or step == options.steps - 1:
            _log.info(
                "encoder step %d: likeness %.4f, skill %.3f, name %.3f (%.0f s)",
                step, float(alike), float(by_centre), float(by_name), time.monotonic() - started,
            )
    encoder = _stored(table.weight.detach().numpy())
    return skill_space(encoder, examples, names)


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
