"""WildEval/ZeroEval: `result_dirs/<task>/<model>.json`, lists of `id`, `question`, `answer`, `output`.

The output is meant to be a JSON object with an `answer`. Grading is ours and plain: numbers for GSM8K,
the literal for CRUXEval, the normalised expression for MATH (which counts some equal forms as wrong).
"""

import ast
import json
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

from podium_core.grading.numbers import after_equals, quantities_in
from podium_train.outcomes.importers.copies import any_text, found, read_list
from podium_train.outcomes.importers.imported import Imported
from podium_train.outcomes.rows import Row
from podium_train.outcomes.zeroeval import FOLDER

_MAX_OBJECTS = 40
_MAX_LITERAL_CHARS = 10_000
_QUOTES = re.compile(r"^['\"]+|['\"]+$")
_ANSWER_FIELD = re.compile(r"\"?answer\"?\s*:\s*(?:\"((?:\\.|[^\"\\])*)\"|([^,}\n]+))")
_DECODER = json.JSONDecoder(strict=False)
_LATEX_NOISE = re.compile(r"\\(left|right|!|,|;|text|mathrm|displaystyle|\$|%)|[\s${}]|\\\(|\\\)")


def convert(source: Path) -> Imported:
    """Return the tasks that are known, each with every model that has a result file for it."""
    files: dict[str, list[dict[str, object]]] = {}
    meta: dict[str, object] = {}
    notes: list[str] = []
    folders = sorted({path.parent for path in found(source, "*/*.json")})
    for folder in folders:
        is_right = _GRADERS.get(folder.name)
        if is_right is None:
            notes.append(f"{folder.name}: left out, this task is not known here")
            continue
        models, files[folder.name] = _task(folder, is_right)
        meta[folder.name] = {"models": models}
    return Imported(FOLDER, files, meta, notes)


def _task(folder: Path, is_right: Callable[[str, str], bool]) -> tuple[list[str], list[dict[str, object]]]:
    paths = found(folder, "*.json")
    models = [path.stem for path in paths]
    rows: dict[str, dict[str, object]] = {}
    answers: dict[str, list[object]] = {}
    for place, path in enumerate(paths):
        for row in read_list(path):
            item_id, reference = any_text(row, "id", "session_id"), any_text(row, "answer")
            question = any_text(row, "question", "problem")
            rows.setdefault(item_id, {"id": item_id, "q": question, "a": reference})
            said = _output(row)
            answer = answer_of(said)
            right = int(answer is not None and is_right(answer, reference))
            answers.setdefault(item_id, [None] * len(models))[place] = [right, answer, len(said)]
    return models, [row | {"w": answers[item_id]} for item_id, row in rows.items()]


def answer_of(output: str) -> str | None:
    """Return the `answer` of the first JSON object in an output that has one, also of a broken object."""
    position = -1
    for _ in range(_MAX_OBJECTS):
        position = output.find("{", position + 1)
        if position < 0:
            break
        try:
            value, _ = _DECODER.raw_decode(output, position)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and "answer" in value:
            answer = value["answer"]
            return answer if isinstance(answer, str) else json.dumps(answer)
    match = _ANSWER_FIELD.search(output)
    if match is None:
        return None
    return match[1].replace('\\"', '"') if match[1] is not None else match[2].strip()


def _output(row: Row) -> str:
    value = row.fields.get("output")
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else ""


def _same_number(answer: str, reference: str) -> bool:
    given, due = quantities_in(after_equals(answer)), quantities_in(reference)
    return bool(given and due) and given[0].value == due[-1].value


def _same_literal(answer: str, reference: str) -> bool:
    """Compare Python literals as values, whatever their quotes and spaces; what is none, as text."""
    if _QUOTES.sub("", answer).replace("\n", "\\n").strip() == _QUOTES.sub("", reference):
        return True
    given, due = _literal(answer), _literal(reference)
    return given is not None and type(given) is type(due) and given == due


def _literal(text: str) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.literal_eval(text.strip()) if len(text) <= _MAX_LITERAL_CHARS else None
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _same_expression(answer: str, reference: str) -> bool:
    given, due = _bare(answer), _bare(reference)
    return given == due or _same_plain_number(given, due)


def _bare(expression: str) -> str:
    return _LATEX_NOISE.sub("", expression.replace("dfrac", "frac").replace("tfrac", "frac"))


def _same_plain_number(given: str, due: str) -> bool:
    try:
        return float(given) == float(due)
    except ValueError:
        return False


_GRADERS: Mapping[str, Callable[[str, str], bool]] = {
    "gsm": _same_number,
    "crux": _same_literal,
    "math-l5": _same_expression,
}
