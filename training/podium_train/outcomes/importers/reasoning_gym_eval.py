"""open-thought/reasoning-gym-eval: `<difficulty>/<publisher>_<model>_<date>_<time>/<category>/<family>.json`.

Each file has `results`, one entry a task with `question`, `expected_answer` and either `completions` (each
`model_answer`, `full_model_response`, `score`) or these three fields themselves.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from podium_train.outcomes.importers.copies import found, objects
from podium_train.outcomes.importers.imported import Imported
from podium_train.outcomes.reasoning_gym import FOLDER
from podium_train.outcomes.rows import Row, read_object

_RUN = re.compile(r"(?P<publisher>[^_/]+)_(?P<model>.+)_[0-9]{8}_[0-9]{6}")
_Item = tuple[str, str, int]
"""Difficulty, family, index."""


def convert(source: Path) -> Imported:
    """Return every run below `source` (the folder that holds the difficulties).

    A later run of a model replaces an earlier one, family by family. Where a model was asked another question
    than the first model at the same index, its answer is left out and counted in the notes.
    """
    runs: dict[tuple[str, str, str], Path] = {}
    for path in found(source, "*/*_*_*/*/*.json"):
        run = _RUN.fullmatch(path.parents[1].name)
        if run is not None:
            runs[path.parents[2].name, f"{run['publisher']}/{run['model']}", path.stem] = path
    models = sorted({model for _, model, _ in runs})
    questions: dict[_Item, tuple[str, str]] = {}
    categories: dict[str, str] = {}
    answers: dict[_Item, dict[str, list[object]]] = defaultdict(dict)
    differing: Counter[str] = Counter()
    for (difficulty, model, family), path in sorted(runs.items()):
        meta = read_object(path)
        categories.setdefault(family, meta.text("category"))
        for index, result in enumerate(objects(meta, "results")):
            item = (difficulty, family, index)
            asked = (result.text("question"), _expected(result))
            if questions.setdefault(item, asked) == asked:
                answers[item][str(models.index(model))] = _completions(result)
            else:
                differing[model] += 1
    return Imported(FOLDER, _files(questions, categories, answers), {"models": models}, _notes(differing))


def _files(
    questions: Mapping[_Item, tuple[str, str]],
    categories: Mapping[str, str],
    answers: Mapping[_Item, Mapping[str, object]],
) -> dict[str, list[dict[str, object]]]:
    files: dict[str, list[dict[str, object]]] = defaultdict(list)
    for item in sorted(questions):
        difficulty, family, index = item
        item_id = f"{difficulty}/{family}/{index}"
        question, expected = questions[item]
        files[f"questions_{difficulty}"].append({"id": item_id, "q": question, "a": expected})
        row: dict[str, object] = {"id": item_id, "c": categories[family], "w": answers[item]}
        files[f"outcomes_{difficulty}"].append(row)
    return files


def _expected(result: Row) -> str:
    expected = result.fields.get("expected_answer")
    return expected if isinstance(expected, str) else "" if expected is None else str(expected)


def _completions(result: Row) -> list[object]:
    if "completions" not in result.fields:
        return [_completion(result)]
    return [_completion(one) for one in objects(result, "completions")]


def _completion(one: Row) -> list[object]:
    answer, response = one.fields.get("model_answer"), one.fields.get("full_model_response")
    return [
        one.score_of(one.fields.get("score"), "'score'"),
        answer if isinstance(answer, str) else None,
        len(response) if isinstance(response, str) else 0,
    ]


def _notes(differing: Mapping[str, int]) -> list[str]:
    return [
        f"{model}: {count} answers left out, as they were given to other questions"
        for model, count in sorted(differing.items())
    ]
