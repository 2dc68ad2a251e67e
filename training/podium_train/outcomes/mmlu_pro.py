"""Reads `mmlu_pro_outcomes/`: one predicted letter a model for each multiple-choice question.

`meta.json` names the models in order. `outcomes.jsonl.xz` has `id`, `cat` category, `q` question, `o`
options, `a` the right letter and `p`, one letter a model ('-': none was found).
"""

from collections.abc import Sequence
from pathlib import Path

from podium_train.outcomes.items import RecordedAnswer, RecordedItem, Source
from podium_train.outcomes.reasoning_gym import model_names
from podium_train.outcomes.rows import Row, lines_file, missing, read_object, read_rows

FOLDER = "mmlu_pro_outcomes"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NO_ANSWER = "-"
DIFFICULTY = "standard"


def read(folder: Path) -> tuple[RecordedItem, ...]:
    """Return every item of the folder; raise PodiumError naming file and line."""
    meta = read_object(folder / "meta.json")
    models = model_names(meta)
    chars = _chars(meta, len(models))
    path = lines_file(folder, "outcomes")
    if path is None:
        raise missing(f"{folder.name}/outcomes.jsonl.xz is not there")
    return tuple(_item(row, models, chars) for row in read_rows(path))


def choice_question(question: str, options: Sequence[str]) -> str:
    """Return question and lettered options as one text."""
    listed = [f"{LETTERS[k]}. {option}" for k, option in enumerate(options)]
    return "\n".join((question, *listed, "Answer with the letter of the right option."))


def _chars(meta: Row, model_count: int) -> tuple[int, ...]:
    """Return the mean response length of each model.

    Where meta.json tells lengths for other models than it names, the mean of them stands for every model.
    """
    values = meta.fields.get("mean_response_chars", [0])
    means = tuple(
        meta.whole_of(value, "'mean_response_chars'")
        for value in meta.list_of(values, "'mean_response_chars'")
    )
    if len(means) == model_count:
        return means
    return (sum(means) // max(1, len(means)),) * model_count


def _item(row: Row, models: Sequence[str], chars: Sequence[int]) -> RecordedItem:
    options = [row.text_of(option, "an option") for option in row.listed("o")]
    letters = LETTERS[: len(options)]
    right, predicted = row.text("a"), row.text("p")
    if len(options) > len(LETTERS) or len(right) != 1 or right not in letters:
        raise row.error(f"'a' must be the letter of one of the {len(options)} options")
    if len(predicted) != len(models) or not set(predicted) <= {*LETTERS, NO_ANSWER}:
        raise row.error(
            f"'p' must hold one letter for each of {len(models)} models, or {NO_ANSWER!r} for none"
        )
    answers = {
        model: (RecordedAnswer(float(letter == right), None if letter == NO_ANSWER else letter, chars[k]),)
        for k, (model, letter) in enumerate(zip(models, predicted, strict=True))
    }
    category = row.text("cat")
    return RecordedItem(
        item_id=f"{Source.MMLU_PRO}/{row.whole('id')}",
        source=Source.MMLU_PRO,
        family=category,
        category=category,
        difficulty=DIFFICULTY,
        question=choice_question(row.text("q"), options),
        reference=right,
        answers=answers,
    )
