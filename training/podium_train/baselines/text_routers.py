"""Routers that read the question: TF-IDF with a logistic regression per worker, and nearest neighbours.

Needs scikit-learn. Both learn from the train split alone; a worker that was not recorded there is scored by
the mean of its card.
"""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from podium_train.baselines.scorers import Key, card_mean, level_key, source_of
from podium_train.environments.port import Task
from podium_train.outcomes.cards import worker_id
from podium_train.outcomes.items import RecordedItem, RecordedSet

_MAX_FEATURES = 30_000
_MAX_QUESTION_CHARS = 6_000
_PENALTIES = (1.0, 4.0, 16.0)
_NEIGHBOURS = (10, 20, 40)
_ITERATIONS = 400

Floats = npt.NDArray[np.float64]


class _Fitted:
    def predicted(self, question: str) -> Mapping[str, float]:
        raise NotImplementedError


class _TextRouter:
    """One fitted predictor per source, or per source and level; scores of each question are kept.

    `by_level` tells the router each item's level, as the published figures did: an advantage that no served
    router has.
    """

    def __init__(self, train: RecordedSet, dev: RecordedSet, *, by_level: bool) -> None:
        self._by_level = by_level
        held = self._grouped(dev)
        self._fitted = {
            key: _chosen_on_dev(self._candidates(items), held.get(key, []))
            for key, items in self._grouped(train).items()
        }
        self._known: dict[tuple[Key, str], Mapping[str, float]] = {}

    def scores(self, task: Task) -> Mapping[str, float]:
        """Return each worker's chance to be right."""
        source = source_of(task.task_id)
        key = (source, task.difficulty) if self._by_level else (source,)
        asked = (key, task.question)
        if asked not in self._known:
            fitted = self._fitted.get(key)
            self._known[asked] = fitted.predicted(task.question) if fitted is not None else {}
        known = self._known[asked]
        return {worker: known.get(worker, mean) for worker, mean in card_mean(task).items()}

    def _grouped(self, recorded: RecordedSet) -> dict[Key, list[RecordedItem]]:
        found: dict[Key, list[RecordedItem]] = {}
        for item in recorded.items:
            key = level_key(item) if self._by_level else (source_of(item.item_id),)
            found.setdefault(key, []).append(item)
        return found

    def _candidates(self, items: Sequence[RecordedItem]) -> Sequence[_Fitted]:
        raise NotImplementedError


class LogisticRouter(_TextRouter):
    """One logistic regression per worker over TF-IDF of words and word pairs (Salton and Buckley, 1988).

    The regularisation is chosen on `dev`: the strength whose choices are right most often.
    """

    def _candidates(self, items: Sequence[RecordedItem]) -> Sequence[_Fitted]:
        return [_Regressions(items, penalty) for penalty in _PENALTIES]


class NeighbourRouter(_TextRouter):
    """The workers' shares of right answers among the most similar train questions, weighted by cosine.

    How many neighbours is chosen on `dev`.
    """

    def _candidates(self, items: Sequence[RecordedItem]) -> Sequence[_Fitted]:
        return [_Neighbours(items, count) for count in _NEIGHBOURS]


class _Regressions(_Fitted):
    """All workers' regressions as one matrix; a worker always right, or always wrong, is a constant."""

    def __init__(self, items: Sequence[RecordedItem], penalty: float) -> None:
        self._vectorizer = _vectorizer()
        features = self._vectorizer.fit_transform([_text(item.question) for item in items])
        fitted = {worker: _regression(features, shares, penalty) for worker, shares in _shares(items).items()}
        self._constant = {worker: model for worker, model in fitted.items() if isinstance(model, float)}
        models = {worker: model for worker, model in fitted.items() if not isinstance(model, float)}
        self._workers = list(models)
        width = features.shape[1]
        self._weights = np.array([model.coef_[0] for model in models.values()]).reshape(-1, width).T
        self._offsets = np.array([model.intercept_[0] for model in models.values()])

    def predicted(self, question: str) -> Mapping[str, float]:
        row = self._vectorizer.transform([_text(question)])
        logits = np.asarray(row @ self._weights).ravel() + self._offsets
        chances = 1 / (1 + np.exp(-logits))
        return {**self._constant, **dict(zip(self._workers, map(float, chances), strict=True))}


class _Neighbours(_Fitted):
    def __init__(self, items: Sequence[RecordedItem], count: int) -> None:
        self._vectorizer, self._count = _vectorizer(), count
        self._features = self._vectorizer.fit_transform([_text(item.question) for item in items])
        self._shares = _shares(items)

    def predicted(self, question: str) -> Mapping[str, float]:
        row = self._vectorizer.transform([_text(question)])
        likeness = np.asarray((self._features @ row.T).todense()).ravel()
        nearest = np.argsort(-likeness, kind="stable")[: self._count]
        return {
            worker: _weighted(shares[nearest], likeness[nearest]) for worker, shares in self._shares.items()
        }


def _weighted(shares: Floats, weights: Floats) -> float:
    known = ~np.isnan(shares)
    total = float(weights[known].sum())
    return float((shares[known] * weights[known]).sum() / total) if total > 0 else 0.0


def _regression(features: object, shares: Floats, penalty: float) -> LogisticRegression | float:
    """Fit one worker, each item as a right and a wrong row weighted by its share of right answers."""
    known = np.flatnonzero(~np.isnan(shares))
    weights = np.concatenate([shares[known], 1 - shares[known]])
    labels = np.repeat([1, 0], len(known))
    kept = weights > 0
    if len(set(labels[kept])) == 1:
        return float(labels[kept][0])
    rows = np.concatenate([known, known])[kept]
    model = LogisticRegression(C=penalty, max_iter=_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(features[rows], labels[kept], sample_weight=weights[kept])  # type: ignore[index]


def _chosen_on_dev(candidates: Sequence[_Fitted], dev: Sequence[RecordedItem]) -> _Fitted:
    return max(candidates, key=lambda fitted: _dev_accuracy(fitted, dev)) if dev else candidates[0]


def _dev_accuracy(fitted: _Fitted, dev: Sequence[RecordedItem]) -> float:
    return sum(_choice_accuracy(fitted, item) for item in dev) / len(dev)


def _choice_accuracy(fitted: _Fitted, item: RecordedItem) -> float:
    by_worker = {worker_id(model): item.accuracy(model) or 0.0 for model in item.answers}
    scores = fitted.predicted(item.question)
    known = sorted(set(scores) & set(by_worker))
    return by_worker[max(known, key=lambda worker: scores[worker])] if known else 0.0


def _vectorizer() -> TfidfVectorizer:
    return TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, 2), min_df=2, max_features=_MAX_FEATURES, strip_accents="unicode"
    )


def _text(question: str) -> str:
    return question[:_MAX_QUESTION_CHARS]


def _shares(items: Sequence[RecordedItem]) -> dict[str, Floats]:
    """Return each worker's share of right answers per item; NaN where it was not recorded."""
    models = sorted({model for item in items for model in item.answers})
    shares = {}
    for model in models:
        known = [item.accuracy(model) for item in items]
        shares[worker_id(model)] = np.array([np.nan if share is None else share for share in known])
    return shares
