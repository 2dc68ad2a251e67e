"""MATH, AIME and RLPR from their published files: question sets with mathematics or text as reference.

MATH: `<split>/<subject>/<n>.json` (hendrycks/math: `problem`, `level`, `type`, `solution`), or JSON lines
with `problem`, `answer`, `subject`, `level` (MATH-500). AIME: JSON lines with a problem and an answer.
RLPR: JSON lines of its table: `prompt` (chat messages), `reward_model` with `ground_truth`, `ability`.
"""

from pathlib import Path

from podium_train.outcomes.importers.copies import any_text, found, read_list, words_id
from podium_train.outcomes.importers.imported import Imported
from podium_train.outcomes.questions import QUESTIONS, GraderKind
from podium_train.outcomes.rows import Row, read_object

_BOXES = ("\\boxed{", "\\fbox{")


def convert_math(source: Path) -> Imported:
    """Return the MATH problems below `source`; the reference is what the solution boxes last."""
    rows = []
    for path in found(source, "**/*.json", "*.jsonl"):
        if path.suffix == ".jsonl":
            rows += [_math_line(row, path.stem, number) for number, row in enumerate(read_list(path))]
        else:
            name = words_id(*path.relative_to(source).with_suffix("").parts)
            rows.append(_math_file(read_object(path), name))
    return Imported(QUESTIONS, {"math": rows})


def convert_aime(source: Path) -> Imported:
    """Return the AIME problems of every JSON lines file in `source`."""
    rows = []
    for path in found(source, "*.jsonl", "*.json"):
        for number, row in enumerate(read_list(path)):
            question = any_text(row, "problem", "question")
            answer = any_text(row, "answer").strip()
            if not answer.isascii() or not answer.isdigit():
                raise row.error("an AIME answer is a whole number from 0 to 999")
            rows.append(
                _set_row(words_id("aime", path.stem, number), "aime", "mathematics", "competition", question)
                | {"a": str(int(answer)), "grader": GraderKind.NUMBER}
            )
    return Imported(QUESTIONS, {"aime": rows})


def convert_rlpr(source: Path) -> Imported:
    """Return the RLPR questions; answers are compared as text, which is stricter than RLPR's own reward."""
    rows = []
    for path in found(source, "*.jsonl", "*.json"):
        for number, row in enumerate(read_list(path)):
            ability = row.fields.get("ability")
            category = ability if isinstance(ability, str) and ability else "general"
            rows.append(
                _set_row(words_id("rlpr", path.stem, number), "rlpr", category, "standard", _asked(row))
                | {"a": Row(row.place, row.mapping("reward_model")).text("ground_truth")}
                | {"grader": GraderKind.STRING}
            )
    return Imported(QUESTIONS, {"rlpr": rows})


def last_boxed(solution: str) -> str | None:
    """Return what a solution boxes last; None when it boxes nothing, or the box never closes."""
    start = max(solution.rfind(box) for box in _BOXES)
    if start < 0:
        return None
    start = solution.index("{", start) + 1
    depth = 1
    for position in range(start, len(solution)):
        depth += {"{": 1, "}": -1}.get(solution[position], 0)
        if depth == 0:
            return solution[start:position].strip()
    return None


def _math_file(row: Row, name: str) -> dict[str, object]:
    answer = last_boxed(row.text("solution"))
    if answer is None:
        raise row.error("the solution boxes no answer")
    subject = row.text("type").lower()
    level, problem = row.text("level").lower(), row.text("problem")
    return _set_row(f"math/{name}", subject, "mathematics", level, problem) | {
        "a": answer,
        "grader": GraderKind.MATH,
    }


def _math_line(row: Row, stem: str, number: int) -> dict[str, object]:
    subject = any_text(row, "subject", "type").lower()
    level = any_text(row, "level").lower().removeprefix("level ")
    return _set_row(
        words_id("math", stem, number), subject, "mathematics", f"level {level}", row.text("problem")
    ) | {"a": any_text(row, "answer"), "grader": GraderKind.MATH}


def _asked(row: Row) -> str:
    """Return what the user asks: the last message, or the prompt itself where it is text."""
    prompt = row.fields.get("prompt")
    if isinstance(prompt, str):
        return prompt
    messages = row.list_of(prompt, "'prompt'")
    if not messages or not isinstance(messages[-1], dict):
        raise row.error("'prompt' must hold chat messages")
    return Row(row.place, messages[-1]).text("content")


def _set_row(item_id: str, family: str, category: str, difficulty: str, question: str) -> dict[str, object]:
    return {"id": item_id, "family": family, "category": category, "difficulty": difficulty, "q": question}
