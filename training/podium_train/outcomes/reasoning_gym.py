"""Reads `reasoning_gym_outcomes/`: graded completions of reasoning-gym tasks, with the tasks.

`meta.json` names the models in index order. `outcomes_<difficulty>.jsonl.xz` has one row a task: `id`
(`difficulty/family/index`), `c` category, `w` {model index: [[score, answer or null, characters], ...]}.
`questions_<difficulty>.jsonl.xz` has `id`, `q` question and `a` reference for the same tasks.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from podium_train.outcomes.items import RecordedAnswer, RecordedItem, Source
from podium_train.outcomes.rows import Row, lines_file, missing, read_object, read_rows, stem_of

FOLDER = "reasoning_gym_outcomes"
_OUTCOMES = "outcomes_"
_ID_PARTS = 3
_ANSWER_FIELDS = 3


def read(folder: Path) -> tuple[RecordedItem, ...]:
    """Return every item of the folder, in the files' order; raise PodiumError naming file and line."""
    models = model_names(read_object(folder / "meta.json"))
    paths = sorted({*folder.glob(f"{_OUTCOMES}*.jsonl.xz"), *folder.glob(f"{_OUTCOMES}*.jsonl")})
    if not paths:
        raise missing(f"{folder.name} holds no {_OUTCOMES}<difficulty>.jsonl.xz")
    items: list[RecordedItem] = []
    for difficulty in dict.fromkeys(stem_of(path).removeprefix(_OUTCOMES) for path in paths):
        items += _difficulty(folder, difficulty, models)
    return tuple(items)


def model_names(meta: Row, name: str = "models") -> tuple[str, ...]:
    """Return the model names that a `meta.json` lists; each may come once only."""
    names = tuple(meta.text_of(value, f"every entry of {name!r}") for value in meta.listed(name))
    if not names or len(set(names)) != len(names) or not all(names):
        raise meta.error(f"{name!r} must name at least one model, and each only once")
    return names


def _difficulty(folder: Path, difficulty: str, models: Sequence[str]) -> list[RecordedItem]:
    outcomes = lines_file(folder, f"{_OUTCOMES}{difficulty}")
    questions_path = lines_file(folder, f"questions_{difficulty}")
    if outcomes is None or questions_path is None:
        raise missing(f"{folder.name}/questions_{difficulty}.jsonl.xz is not there")
    questions = _questions(questions_path)
    items = [_item(row, difficulty, models, questions) for row in read_rows(outcomes)]
    if questions:
        left = next(iter(questions.values()))
        raise left.error(f"{outcomes.name} has no row with this id")
    return items


def _questions(path: Path) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in read_rows(path):
        row.text("q"), row.text("a")
        if found.setdefault(row.text("id"), row) is not row:
            raise row.error(f"the id {row.text('id')!r} comes twice")
    return found


def _item(row: Row, difficulty: str, models: Sequence[str], questions: dict[str, Row]) -> RecordedItem:
    """Build one item; its question is taken out of `questions`, so that a second row finds none."""
    item_id = row.text("id")
    parts = item_id.split("/")
    if len(parts) != _ID_PARTS or parts[0] != difficulty or not all(parts):
        raise row.error(f"the id must be {difficulty}/<family>/<index>, not {item_id!r}")
    question = questions.pop(item_id, None)
    if question is None:
        raise row.error(f"the id {item_id!r} comes twice, or has no row among the questions")
    return RecordedItem(
        item_id=f"{Source.REASONING_GYM}/{item_id}",
        source=Source.REASONING_GYM,
        family=parts[1],
        category=row.text("c"),
        difficulty=difficulty,
        question=question.text("q"),
        reference=question.text("a"),
        answers=_answers(row, models),
    )


def _answers(row: Row, models: Sequence[str]) -> Mapping[str, tuple[RecordedAnswer, ...]]:
    answers: dict[str, tuple[RecordedAnswer, ...]] = {}
    for index, completions in row.mapping("w").items():
        if not (index.isascii() and index.isdigit()) or int(index) >= len(models):
            raise row.error(f"'w' names model {index!r}, and meta.json has {len(models)} models")
        graded = tuple(_graded(row, index, entry) for entry in row.list_of(completions, f"'w' {index}"))
        if graded:
            answers[models[int(index)]] = graded
    if not answers:
        raise row.error("'w' holds no answer")
    return answers


def _graded(row: Row, index: str, entry: object) -> RecordedAnswer:
    what = f"a completion of model {index}"
    fields = row.list_of(entry, what)
    if len(fields) != _ANSWER_FIELDS:
        raise row.error(f"{what} must be [score, answer or null, characters]")
    answer = None if fields[1] is None else row.text_of(fields[1], f"the answer of {what}")
    return RecordedAnswer(
        row.score_of(fields[0], f"the score of {what}"),
        answer,
        row.whole_of(fields[2], f"the characters of {what}"),
    )
