"""MMLU and GPQA from their published files: multiple choice, the reference a letter.

MMLU: `<subject>_<split>.csv` without a header: question, four options, letter. GPQA: `gpqa_<subset>.csv` with
`Question`, `Correct Answer`, `Incorrect Answer 1` to `3`. GPQA asks that its questions be not published:
keep the data folder to yourself.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from podium_train.outcomes.importers.copies import any_text, found, read_table, words_id
from podium_train.outcomes.importers.imported import Imported
from podium_train.outcomes.mmlu_pro import LETTERS, choice_question
from podium_train.outcomes.questions import QUESTIONS, GraderKind
from podium_train.outcomes.rows import Row

_MMLU_FIELDS = ("question", "A", "B", "C", "D", "answer")
_GPQA_FIELDS = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def convert_mmlu(source: Path) -> Imported:
    """Return the MMLU questions of every CSV file below `source`; the subject is the family."""
    rows = []
    for path in found(source, "**/*_test.csv", "**/*_val.csv", "**/*_dev.csv"):
        subject, _, split = path.stem.rpartition("_")
        for number, row in enumerate(read_table(path, _MMLU_FIELDS)):
            letter = row.text("answer").strip()
            if letter not in LETTERS[:4] or not letter:
                raise row.error("the answer must be A, B, C or D")
            options = [row.text(name) for name in _MMLU_FIELDS[1:-1]]
            name = words_id("mmlu", subject, split, number)
            rows.append(_row(name, subject, subject, "standard", row.text("question"), options, letter))
    return Imported(QUESTIONS, {"mmlu": rows})


def convert_gpqa(source: Path) -> Imported:
    """Return the GPQA questions of every CSV file in `source`; the question fixes the options' order."""
    rows = []
    for path in found(source, "gpqa*.csv"):
        for number, row in enumerate(read_table(path)):
            question = any_text(row, "Question").strip()
            right, *wrong = (any_text(row, name).strip() for name in _GPQA_FIELDS)
            options = _ordered(question, (right, *wrong))
            letter = LETTERS[options.index(right)]
            domain = _named(row, "High-level domain", "science")
            family = _named(row, "Subdomain", domain)
            name = words_id("gpqa", path.stem.removeprefix("gpqa_"), number)
            rows.append(_row(name, family, domain, "graduate", question, options, letter))
    return Imported(QUESTIONS, {"gpqa": rows})


def _ordered(question: str, options: Sequence[str]) -> list[str]:
    return sorted(options, key=lambda option: sha256(f"{question}\n{option}".encode()).digest())


def _named(row: Row, name: str, otherwise: str) -> str:
    return any_text(row, name).lower() if name in row.fields else otherwise


def _row(
    item_id: str,
    family: str,
    category: str,
    difficulty: str,
    question: str,
    options: Sequence[str],
    letter: str,
) -> dict[str, object]:
    return {
        "id": item_id,
        "family": family.replace("_", " "),
        "category": category.replace("_", " "),
        "difficulty": difficulty,
        "q": choice_question(question, options),
        "a": letter,
        "grader": GraderKind.CHOICE,
    }
