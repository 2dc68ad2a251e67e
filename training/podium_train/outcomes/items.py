"""What was recorded: questions, and what each model answered to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from podium_core.domain.errors import invalid

RIGHT_SCORE = 0.99
"""An answer is right from this score on: graders that give part marks (reasoning-gym) stop short of 1."""


class Source(StrEnum):
    """Where items come from. The value is the folder's name without `_outcomes`."""

    REASONING_GYM = "reasoning_gym"
    MMLU_PRO = "mmlu_pro"
    ZEROEVAL = "zeroeval"
    LLMROUTERBENCH = "llmrouterbench"


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One completion as it was graded.

    `score` is in 0..1. `answer` is what the source's own extraction found; None: nothing, which is another
    thing than a wrong answer. `chars` counts the visible characters of the whole completion.
    """

    score: float
    answer: str | None
    chars: int

    @property
    def is_right(self) -> bool:
        """Whether the score counts as right."""
        return self.score >= RIGHT_SCORE


@dataclass(frozen=True, slots=True)
class RecordedItem:
    """One question with every model's recorded answers, at least one for each model that is named.

    `item_id` starts with the source, so it is unique across sources. `family` is the finest kind of task the
    source tells apart. `reference` must never reach a prompt.
    """

    item_id: str
    source: Source
    family: str
    category: str
    difficulty: str
    question: str
    reference: str
    answers: Mapping[str, tuple[RecordedAnswer, ...]] = field(hash=False)

    def accuracy(self, model: str) -> float | None:
        """Return the share of a model's recorded answers that are right; None when it has none."""
        answers = self.answers.get(model)
        return sum(answer.is_right for answer in answers) / len(answers) if answers else None


@dataclass(frozen=True, slots=True)
class RecordedSet:
    """Items in a fixed order, found by their ids too. Raises PodiumError when an id comes twice."""

    items: tuple[RecordedItem, ...]
    by_id: Mapping[str, RecordedItem] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        by_id = {item.item_id: item for item in self.items}
        object.__setattr__(self, "by_id", by_id)
        if len(by_id) != len(self.items):
            raise invalid("the data holds an item twice; remove one of them", reason="DATA_MALFORMED")

    @property
    def models(self) -> tuple[str, ...]:
        """Every model with an answer, in alphabetical order."""
        return tuple(sorted({model for item in self.items for model in item.answers}))

    def of(self, source: Source) -> "RecordedSet":
        """Return the items of one source."""
        return RecordedSet(tuple(item for item in self.items if item.source is source))

    def keep(self, items: Iterable[RecordedItem]) -> "RecordedSet":
        """Return a set of these items."""
        return RecordedSet(tuple(items))

    def shared_by(self, models: Sequence[str]) -> "RecordedSet":
        """Return the items that all these models answered."""
        return RecordedSet(
            tuple(item for item in self.items if all(model in item.answers for model in models))
        )
