"""Grades an answer by its task's reference, whatever the kind: what live workers' answers are judged by."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from podium_core.domain.errors import PodiumError, invalid
from podium_core.grading.result import Grade, Grader
from podium_train.environments.port import Task
from podium_train.rewards.code import CodeGrader, read_check
from podium_train.rewards.mathematics import MathGrader, MathVerifier
from podium_train.rewards.sandbox.runner import Sandbox
from podium_train.rewards.values import AnswerKind, grader_for

MATH, CODE = "math", "code"
_OPTION = re.compile(r"^\s*\(?([A-Z])[).:]\s+(.+?)\s*$", re.MULTILINE)
_LETTERS = 26


@dataclass(frozen=True, slots=True)
class ReferenceGrader:
    """Says whether an answer is right. `kind_of` names a task's kind: an `AnswerKind`, `math` or `code`.

    `verifier` and `sandbox` may be left out where no task needs them.
    """

    kind_of: Callable[[Task], str]
    verifier: MathVerifier | None = None
    sandbox: Sandbox | None = None
    _made: dict[tuple[str, str, str], Grader] = field(default_factory=dict, repr=False, compare=False)

    async def __call__(self, text: str, task: Task) -> bool | None:
        """Return whether an answer text is right; None when the surroundings failed.

        Raises PodiumError for a task that cannot be graded: a bad reference, no verifier, no sandbox.
        """
        kind = self.kind_of(task)
        if kind == MATH:
            if self.verifier is None:
                raise _unequipped(MATH, "a math verifier")
            return await MathGrader(self.verifier, task.reference).is_right(text)
        if kind == CODE:
            if self.sandbox is None:
                raise _unequipped(CODE, "a sandbox")
            return await CodeGrader(self.sandbox, read_check(task.reference)).is_right(text)
        return self._grader(kind, task).grade(text).grade is Grade.RIGHT

    def _grader(self, kind: str, task: Task) -> Grader:
        if kind not in set(AnswerKind):
            raise invalid(f"{kind!r} is no kind of answer; use {', '.join([*AnswerKind, MATH, CODE])}")
        asked = task.question if kind == AnswerKind.CHOICE else ""
        key = (kind, task.reference, asked)
        if key not in self._made:
            self._made[key] = grader_for(AnswerKind(kind), task.reference, options_in(asked))
        return self._made[key]


def options_in(question: str) -> tuple[str, ...]:
    """Return the lettered options that a question ends in, or 26 that only their letters name."""
    found: list[str] = []
    for letter, option in _OPTION.findall(question):
        if letter == "A":
            found = []
        if ord(letter) - ord("A") == len(found):
            found.append(option)
    return tuple(found) if len(found) > 1 else tuple(f"\x00{number}" for number in range(_LETTERS))


def _unequipped(kind: str, need: str) -> PodiumError:
    return invalid(f"a task of the kind {kind} needs {need}: open one and give it", reason="GRADER_MISSING")
