"""Question sets without recorded answers: what a live run asks, and how each answer is graded.

`questions/<set>.jsonl.xz` has `id`, `family`, `category`, `difficulty`, `q` question, `a` reference and
`grader`. The reference of code is the check that `podium_train.rewards.code.read_check` reads.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from podium_train.outcomes.rows import Row, lines_file, missing, read_rows

QUESTIONS = "questions"
"""The subfolder of a data folder that all question sets share."""


class GraderKind(StrEnum):
    """How answers to a question are graded."""

    MATH = "math"
    CHOICE = "choice"
    STRING = "string"
    NUMBER = "number"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """One question of a set. `reference` must never reach a prompt."""

    item_id: str
    family: str
    category: str
    difficulty: str
    question: str
    reference: str
    grader: GraderKind


def read_questions(root: Path, name: str) -> tuple[SetQuestion, ...]:
    """Return a question set of the data folder `root`; raise PodiumError naming file and line."""
    path = lines_file(root / QUESTIONS, name)
    if path is None:
        raise missing(f"the data folder has no {QUESTIONS}/{name}.jsonl.xz; `podium-train import` makes one")
    found: dict[str, SetQuestion] = {}
    for row in read_rows(path):
        question = _question(row)
        if found.setdefault(question.item_id, question) is not question:
            raise row.error(f"the id {question.item_id!r} comes twice")
    return tuple(found.values())


def _question(row: Row) -> SetQuestion:
    grader = row.text("grader")
    if grader not in set(GraderKind):
        raise row.error(f"'grader' must be one of {', '.join(GraderKind)}")
    return SetQuestion(
        item_id=row.text("id"),
        family=row.text("family"),
        category=row.text("category"),
        difficulty=row.text("difficulty"),
        question=row.text("q"),
        reference=row.text("a"),
        grader=GraderKind(grader),
    )
