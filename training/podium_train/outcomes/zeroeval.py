"""Reads `zeroeval_outcomes/` (GSM8K, CRUXEval, MATH, ...) and `llmrouterbench_outcomes/`, alike in format.

`meta.json` has, for each task, `models` in order. `<task>.jsonl.xz` has `id`, `q` question, `a` reference and
`w`, one [right 0/1, answer or null, characters] a model.
"""

from collections.abc import Sequence
from pathlib import Path

from podium_train.outcomes.items import RecordedAnswer, RecordedItem, Source
from podium_train.outcomes.reasoning_gym import model_names
from podium_train.outcomes.rows import Row, missing, read_object, read_rows, stem_of

FOLDER = "zeroeval_outcomes"
DIFFICULTY = "standard"
_ANSWER_FIELDS = 3
_CATEGORIES = {"crux": "code", "gsm": "arithmetic", "math-l5": "mathematics"}


def read(folder: Path, source: Source = Source.ZEROEVAL) -> tuple[RecordedItem, ...]:
    """Return every item of the folder; raise PodiumError naming file and line."""
    meta = read_object(folder / "meta.json")
    paths = sorted({*folder.glob("*.jsonl.xz"), *folder.glob("*.jsonl")}, key=stem_of)
    if not paths:
        raise missing(f"{folder.name} holds no <task>.jsonl.xz")
    items: list[RecordedItem] = []
    for path in paths:
        task = stem_of(path)
        if task not in meta.fields:
            raise meta.error(f"the task {task!r} of {path.name} is missing")
        models = model_names(Row(f"{meta.place} {task}", meta.mapping(task)))
        items += [_item(row, source, task, models) for row in read_rows(path)]
    return tuple(items)


def _item(row: Row, source: Source, task: str, models: Sequence[str]) -> RecordedItem:
    entries = row.listed("w")
    if len(entries) != len(models):
        raise row.error(f"'w' must hold one entry for each of {len(models)} models, not {len(entries)}")
    answers = {
        model: (_graded(row, model, entry),)
        for model, entry in zip(models, entries, strict=True)
        if entry is not None
    }
    if not answers:
        raise row.error("'w' holds no answer")
    return RecordedItem(
        item_id=f"{source}/{task}/{row.text('id')}",
        source=source,
        family=task,
        category=_CATEGORIES.get(task, task),
        difficulty=DIFFICULTY,
        question=row.text("q"),
        reference=row.text("a").removeprefix("# "),
        answers=answers,
    )


def _graded(row: Row, model: str, entry: object) -> RecordedAnswer:
    fields = row.list_of(entry, f"the entry of {model}")
    if len(fields) != _ANSWER_FIELDS:
        raise row.error(f"the entry of {model} must be [right, answer or null, characters]")
    answer = None if fields[1] is None else row.text_of(fields[1], f"the answer of {model}")
    return RecordedAnswer(
        row.score_of(fields[0], f"the score of {model}"),
        answer,
        row.whole_of(fields[2], f"the characters of {model}"),
    )
