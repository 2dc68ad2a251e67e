"""LLMRouterBench (OpenRouterBench): `bench/<dataset>/<split>/<model>/<timestamp>.json`.

Each file has `records` of `index`, `origin_query`, `prediction`, `ground_truth`, `score` and `raw_output`.
The newest file of a model counts.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from podium_train.outcomes.importers.copies import found, objects
from podium_train.outcomes.importers.imported import Imported
from podium_train.outcomes.rows import Row, read_object

FOLDER = "llmrouterbench_outcomes"


def convert(source: Path) -> Imported:
    """Return every dataset below `source` (the `bench` folder), each with the models recorded for it."""
    newest: dict[tuple[str, str], dict[str, Path]] = {}
    for path in found(source, "*/*/*/*.json"):  # in order of names, so a later timestamp wins
        dataset, split, model = path.parts[-4:-1]
        newest.setdefault((dataset, split), {})[model] = path
    splits = Counter(dataset for dataset, _ in newest)
    files: dict[str, list[dict[str, object]]] = {}
    meta: dict[str, object] = {}
    notes: list[str] = []
    for (dataset, split), paths in sorted(newest.items()):
        task = dataset if splits[dataset] == 1 else f"{dataset}-{split}"
        rows, left_out = _task(paths)
        if rows:
            files[task], meta[task] = rows, {"models": sorted(paths)}
        if left_out:
            notes.append(f"{task}: {left_out} answers left out: other question, or a score outside 0..1")
    return Imported(FOLDER, files, meta, notes)


def _task(paths: Mapping[str, Path]) -> tuple[list[dict[str, object]], int]:
    models = sorted(paths)
    rows: dict[int, dict[str, object]] = {}
    answers: dict[int, list[object]] = {}
    left_out = 0
    for place, model in enumerate(models):
        for record in _records(paths[model]):
            index, question = record.whole("index"), record.text("origin_query")
            row: dict[str, object] = {
                "id": str(index),
                "q": question,
                "a": _as_text(record.fields.get("ground_truth")) or "",
            }
            score = record.fields.get("score")
            if isinstance(score, bool):
                score = float(score)
            if rows.setdefault(index, row)["q"] != question or not _is_share(score):
                left_out += 1
                continue
            raw = record.fields.get("raw_output")
            chars = len(raw) if isinstance(raw, str) else 0
            answers.setdefault(index, [None] * len(models))[place] = [
                score,
                _as_text(record.fields.get("prediction")) or None,
                chars,
            ]
    return [rows[index] | {"w": answers[index]} for index in sorted(answers)], left_out


def _records(path: Path) -> Sequence[Row]:
    return objects(read_object(path), "records")


def _is_share(score: object) -> bool:
    return isinstance(score, int | float) and 0 <= score <= 1


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
