"""What each network is shown of a choice. Trained weights know the columns by their places.

All numbers are of the order of 1. Accuracies are compared within the pool, as a plan picks among those there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

import numpy as np

from podium_core.plan_model.breaks import KINDS, Break, leans_on_earlier, points_back, starts_request
from podium_core.plan_model.cards import VIEWS, PoolCards, Reading
from podium_core.plan_model.words import Floats


class Duty(IntEnum):
    """What a step is for."""

    WHOLE = 0
    PART = 1
    SOLVER = 2
    VOTER = 3
    JOINER = 4


WORKER_WIDTH = VIEWS * 3 + 15 + len(Duty)
SHAPE_EXTRA = 24
CUT_EXTRA = len(KINDS) + 15
ACCESS_EXTRA = 13
JOIN_EXTRA = 6
_SHARP = 1
_BEST_VIEW = VIEWS - 2
_PLURAL = (" both", " them", " these", " those", "results", "answers", " all ")


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A stretch of text with what it means and what the cards say about it."""

    text: str
    vector: Floats
    reading: Reading

    @property
    def best(self) -> int:
        """The row of the worker that the cards favour."""
        return int(self.reading.expected[:, _SHARP].argmax())


def worker_features(
    cards: PoolCards, piece: Piece, duty: Duty, taken: Sequence[int] = (), before: int | None = None
) -> Floats:
    """Return [workers, WORKER_WIDTH]. `taken` are rows already at work beside, `before` the step's feeder."""
    expected, count = piece.reading.expected, len(cards.workers)
    others = np.stack([_max_of_others(expected[:, view]) for view in range(VIEWS)], axis=1)
    columns = [expected * 2 - 1, (expected - others) * 4, (expected - expected.mean(axis=0)) * 4]
    rank = (-expected[:, _BEST_VIEW]).argsort().argsort() / max(count - 1, 1)
    single = [
        piece.reading.doubt,
        (cards.mean - cards.mean.mean()) * 4,
        cards.best,
        rank,
        np.log1p(cards.sample_count) / 8,
        np.log1p(cards.skill_count) / 5,
        _prices(cards),
        _speeds(cards),
        np.isin(np.arange(count), list(taken)).astype(np.float32),
        (np.arange(count) == (-1 if before is None else before)).astype(np.float32),
        np.full(count, piece.reading.nearest),
        np.full(count, piece.reading.spread / 3),
        np.full(count, math.log(count)),
        np.full(count, math.log1p(len(piece.text)) / 6 - 1),
        (expected[:, _SHARP] >= expected[:, _SHARP].max() - 1e-6).astype(np.float32),
    ]
    duties = np.zeros((count, len(Duty)), np.float32)
    duties[:, duty] = 1.0
    return np.concatenate([*columns, np.stack(single, axis=1), duties], axis=1).astype(np.float32)


def shape_features(whole: Piece, parts: Sequence[Piece], max_steps: int) -> Floats:
    """Return the question's vector and how its parts differ: [width + SHAPE_EXTRA]."""
    expected = np.sort(whole.reading.expected[:, _BEST_VIEW])[::-1]
    top = [float(expected[i]) if i < len(expected) else 0.0 for i in range(3)]
    sharp = whole.reading.expected[:, _SHARP]
    bests = [piece.best for piece in parts]
    changes = sum(left != right for left, right in pairwise(bests))
    strengths = [float(piece.reading.expected[:, _SHARP].max()) for piece in parts] or [float(sharp.max())]
    backs = sum(points_back(piece.text) for piece in parts)
    few = [float(len(parts) == n) for n in range(2, 7)]
    extra = [
        *top,
        (top[0] - top[1]) * 4,
        (top[0] - top[2]) * 4,
        float(sharp.max()),
        float(sharp.std()) * 4,
        whole.reading.nearest,
        whole.reading.spread / 3,
        math.log1p(len(whole.text)) / 6 - 1,
        math.log(len(expected)),
        *few,
        len(set(bests)) / 3,
        changes / 3,
        (sum(strengths) / len(strengths) - float(sharp.max())) * 2,
        min(strengths) * 2 - 1,
        backs / 3,
        max_steps / 5,
        sum(starts_request(piece.text) for piece in parts[1:]) / 3,
        float(any(starts_request(piece.text) for piece in parts[1:])),
    ]
    return np.concatenate([whole.vector, np.asarray(extra, np.float32)]).astype(np.float32)


def cut_features(breaks: Sequence[Break], at: int, parts: Sequence[Piece]) -> Floats:
    """Return what stands on both sides of a break: [2 * width + CUT_EXTRA]."""
    left, right = parts[at], parts[at + 1]
    kind = [float(breaks[at].kind == name) for name in KINDS]
    left_best, right_best = left.reading.expected[:, _SHARP], right.reading.expected[:, _SHARP]
    extra = [
        float(left.best != right.best),
        float(left.vector @ right.vector),
        float(left_best.max()),
        float(right_best.max()),
        float(right_best.max() - right_best[left.best]),
        float(left_best.max() - left_best[right.best]),
        left.reading.nearest,
        right.reading.nearest,
        float(points_back(right.text)),
        math.log1p(len(left.text)) / 4 - 1,
        math.log1p(len(right.text)) / 4 - 1,
        len(breaks) / 6,
        float(starts_request(right.text)),
        float(starts_request(left.text)),
        float(len(right.text.split()) == 1),
    ]
    sides = [left.vector, right.vector]
    return np.concatenate([*sides, np.asarray([*kind, *extra], np.float32)]).astype(np.float32)


def access_features(pieces: Sequence[Piece], step: int, earlier: int, *, is_unused: bool) -> Floats:
    """Return how a step's part relates to an earlier step: [width + ACCESS_EXTRA]."""
    text = f" {pieces[step].text.lower()} "
    back = leans_on_earlier(pieces[step].text)
    plural = any(word in text for word in _PLURAL)
    adjacent = step - earlier == 1
    extra = [
        float(adjacent),
        float(earlier == 0),
        float(is_unused),
        float(back),
        float(plural),
        float(adjacent and back),
        float(is_unused and plural),
        float(adjacent and not back),
        step / 4,
        earlier / 4,
        len(pieces) / 5,
        float(any(character.isdigit() or character in "\"'" for character in text)),
        float(pieces[step].vector @ pieces[earlier].vector),
    ]
    return np.concatenate([pieces[step].vector, np.asarray(extra, np.float32)]).astype(np.float32)


def join_features(whole: Piece, pieces: Sequence[Piece], ends: int) -> Floats:
    """Return whether several results stand at the end: [width + JOIN_EXTRA]."""
    extra = [
        ends / 3,
        float(ends == len(pieces)),
        len(pieces) / 5,
        float(points_back(pieces[-1].text)),
        pieces[-1].reading.nearest,
        1.0,
    ]
    return np.concatenate([whole.vector, np.asarray(extra, np.float32)]).astype(np.float32)


def _max_of_others(values: Floats) -> Floats:
    if len(values) == 1:
        return values
    order = values.argsort()
    others = np.full_like(values, values[order[-1]])
    others[order[-1]] = values[order[-2]]
    return others


def _prices(cards: PoolCards) -> Floats:
    prices = [w.price.output_usd_micros_per_mtok if w.price else 0 for w in cards.workers]
    logs = np.log1p(np.asarray(prices, np.float32) / 1e4) / 4
    return np.asarray(logs - logs.mean(), np.float32)


def _speeds(cards: PoolCards) -> Floats:
    speeds = np.asarray([w.card.output_tokens_per_second for w in cards.workers], np.float32)
    logs = np.log1p(speeds) / 4
    return np.asarray(logs - logs.mean(), np.float32)
