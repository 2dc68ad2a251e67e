"""TIGER-AI-Lab/MMLU-Pro: `eval_results/model_outputs_<model>_<n>shots.zip` (or `.json`).

Each holds a list of `question_id`, `question`, `options`, `answer`, `category`, `pred` and the output text
(`model_outputs` or `generated_text`).
"""

import re
from pathlib import Path

from podium_train.outcomes.importers.copies import found, read_list
from podium_train.outcomes.importers.imported import Imported
from podium_train.outcomes.mmlu_pro import FOLDER, LETTERS, NO_ANSWER
from podium_train.outcomes.rows import Row, missing

_NAME = re.compile(r"model_outputs_(?P<model>.+?)_[0-9]+-?shots.*\.(json|zip)")
_LEAST_COVERED = 0.9
"""A model with fewer of the items than this would shrink what all models share."""


def convert(source: Path) -> Imported:
    """Return the items that all models answered; models with few of the items are left out and named."""
    predicted: dict[str, dict[int, str]] = {}
    chars: dict[str, int] = {}
    items: dict[int, dict[str, object]] = {}
    for path in found(source, "model_outputs_*.zip", "model_outputs_*.json"):
        named = _NAME.fullmatch(path.name)
        if named is None or named["model"] in predicted:
            continue
        rows = read_list(path)
        predicted[named["model"]] = {_number(row): _letter(row) for row in rows}
        chars[named["model"]] = sum(_length(row) for row in rows) // max(1, len(rows))
        for row in rows:
            items.setdefault(_number(row), _item(row))
    if not items:
        raise missing("no model_outputs_<model>_<n>shots file holds a question")
    kept = [model for model in sorted(predicted) if len(predicted[model]) >= _LEAST_COVERED * len(items)]
    shared = [number for number in sorted(items) if all(number in predicted[model] for model in kept)]
    rows_out = [
        items[number] | {"p": "".join(predicted[model][number] for model in kept)} for number in shared
    ]
    notes = [f"{model}: left out, it answered too few" for model in sorted(predicted) if model not in kept]
    notes += [f"{len(items) - len(shared)} items left out, as not every model answered them"]
    meta = {"models": kept, "mean_response_chars": [chars[model] for model in kept]}
    return Imported(FOLDER, {"outcomes": rows_out}, meta, notes)


def _item(row: Row) -> dict[str, object]:
    return {
        "id": _number(row),
        "cat": row.text("category"),
        "q": row.text("question"),
        "o": [row.text_of(option, "an option") for option in row.listed("options")],
        "a": row.text("answer"),
    }


def _number(row: Row) -> int:
    value = row.fields.get("question_id")
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return row.whole_of(value, "'question_id'")


def _letter(row: Row) -> str:
    value = row.fields.get("pred")
    letters = LETTERS[: len(row.listed("options"))]
    return value if isinstance(value, str) and len(value) == 1 and value in letters else NO_ANSWER


def _length(row: Row) -> int:
    for name in ("model_outputs", "generated_text"):
        value = row.fields.get(name)
        if isinstance(value, str):
            return len(value)
    return 0
