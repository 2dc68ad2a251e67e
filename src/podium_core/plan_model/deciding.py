"""Decides a plan, choice by choice: the shape, then where to cut, who works, who sees whom.

Each choice is a distribution; what is taken goes into the features of what follows. So a plan has a
probability, which training raises or lowers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from podium_core.domain.plan import Access
from podium_core.domain.pool import Worker
from podium_core.plan_model.breaks import JOIN, SOLVE, VOTE, Break, breaks_of, subtask_of
from podium_core.plan_model.cards import PoolCards
from podium_core.plan_model.choices import SHAPES, Choice, Chooser, Kind, Shape
from podium_core.plan_model.features import (
    Duty,
    Piece,
    access_features,
    cut_features,
    join_features,
    shape_features,
    worker_features,
)
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.networks import chances
from podium_core.plan_model.words import Floats

_VOTERS = {Shape.VOTE_OF_TWO: 2, Shape.VOTE_OF_THREE: 3}


class Seen:
    """One question before one pool. Remembers what it has read, so that many plans for it are cheap.

    `cards` are those of `workers`, in the same order, for callers that ask one pool many questions.
    """

    def __init__(
        self,
        model: PlanModel,
        question: str,
        workers: Sequence[Worker],
        max_steps: int,
        cards: PoolCards | None = None,
    ) -> None:
        self.model = model
        self.question = question
        self.max_steps = max_steps
        self.cards = cards or PoolCards(workers, model.space)
        self._pieces: dict[str, Piece] = {}
        self._workers: dict[tuple[str, int, tuple[int, ...], int | None], Floats] = {}
        self.breaks = breaks_of(question) if max_steps > 1 else ()
        self.whole = self.piece(question)
        self.parts = [self.piece(question[a:b]) for a, b in spans(self.breaks, len(question))]
        self.shape = shape_features(self.whole, self.parts if self.breaks else (), max_steps)
        self.cuts = [cut_features(self.breaks, at, self.parts) for at in range(len(self.breaks))]

    def piece(self, text: str) -> Piece:
        """Return `text` with its vector and what the cards say about it."""
        found = self._pieces.get(text)
        if found is None:
            vector = self.model.encoder.encode(text)
            found = self._pieces[text] = Piece(text, vector, self.cards.read(vector))
        return found

    def workers(
        self, piece: Piece, duty: Duty, taken: Sequence[int] = (), before: int | None = None
    ) -> Floats:
        """Return the features of every worker for `piece`."""
        key = (piece.text, int(duty), tuple(taken), before)
        found = self._workers.get(key)
        if found is None:
            found = self._workers[key] = worker_features(self.cards, piece, duty, taken, before)
        return found

    def allowed_shapes(self) -> tuple[bool, ...]:
        """Return which of SHAPES this question and pool allow."""
        count = len(self.cards.workers)
        return tuple(
            shape is Shape.ALONE
            or (shape is Shape.PARTS and bool(self.breaks))
            or (shape in _VOTERS and count >= _VOTERS[shape] and self.max_steps > _VOTERS[shape])
            for shape in SHAPES
        )


def spans(cuts: Sequence[Break], length: int) -> list[tuple[int, int]]:
    """Return where the parts between `cuts` begin and end in a text of `length` characters."""
    starts = [0, *(cut.start for cut in cuts)]
    return list(zip(starts, [*(cut.end for cut in cuts), length], strict=True))


@dataclass(slots=True)
class Decided:
    """A plan as it was decided: per step a worker's row, a subtask and an access; and every choice made.

    `odds` holds for each step the probability of every worker.
    """

    shape: Shape
    rows: list[int] = field(default_factory=list)
    subtasks: list[str] = field(default_factory=list)
    access: list[Access] = field(default_factory=list)
    odds: list[Floats] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)


class Deciding:
    """Makes one plan for what was seen."""

    def __init__(self, seen: Seen, choose: Chooser) -> None:
        self._seen = seen
        self._choose = choose
        self._made = Decided(Shape.ALONE)

    def decide(self) -> Decided:
        """Return the plan; it has 1 to `max_steps` steps."""
        seen, made = self._seen, self._made
        allowed = seen.allowed_shapes()
        logits = seen.model.points[Kind.SHAPE].logits(seen.shape)
        made.shape = SHAPES[self._take(Kind.SHAPE, seen.shape, logits, allowed)]
        if made.shape in _VOTERS:
            self._vote(_VOTERS[made.shape])
        elif made.shape is Shape.PARTS:
            self._parts()
        if not made.rows:
            self._step(seen.whole, Duty.WHOLE, "", ())
        return made

    def _take(self, kind: Kind, features: Floats, logits: Floats, allowed: tuple[bool, ...]) -> int:
        """Take one choice and keep it; one that has a single option is none."""
        if sum(allowed) == 1:
            return allowed.index(True)
        odds = chances(np.where(np.asarray(allowed), logits, -np.inf).astype(np.float32))
        taken = self._choose(kind, odds)
        self._made.choices.append(Choice(kind, features, allowed, taken))
        return taken

    def _yes(self, kind: Kind, features: Floats) -> bool:
        logit = float(self._seen.model.points[kind].logits(features)[0])
        return self._take(kind, features, np.asarray([0.0, logit], np.float32), (True, True)) == 1

    def _step(
        self,
        piece: Piece,
        duty: Duty,
        subtask: str,
        sees: tuple[int, ...],
        *,
        taken: Sequence[int] = (),
    ) -> None:
        made, seen = self._made, self._seen
        before = made.rows[sees[-1]] if sees and duty is Duty.PART else None
        features = seen.workers(piece, duty, taken, before)
        allowed = tuple(duty is not Duty.SOLVER or row not in taken for row in range(len(features)))
        logits = np.where(np.asarray(allowed), seen.model.workers.logits(features), -np.inf)
        made.odds.append(chances(logits.astype(np.float32)))
        made.rows.append(self._take(Kind.WORKER, features, logits.astype(np.float32), allowed))
        made.subtasks.append(subtask)
        made.access.append(Access(sees))

    def _vote(self, solvers: int) -> None:
        for _ in range(solvers):
            self._step(self._seen.whole, Duty.SOLVER, SOLVE, (), taken=self._made.rows)
        self._step(self._seen.whole, Duty.VOTER, VOTE, tuple(range(solvers)), taken=self._made.rows[:])

    def _parts(self) -> None:
        seen = self._seen
        cuts = [at for at, features in enumerate(seen.cuts) if self._yes(Kind.CUT, features)]
        cuts = cuts[: seen.max_steps - 1]
        if not cuts:
            return
        kept = [seen.breaks[at] for at in cuts]
        pieces = [seen.piece(seen.question[a:b].strip()) for a, b in spans(kept, len(seen.question))]
        marks = [*(seen.question[cut.end : cut.start] for cut in kept), ""]
        ends: set[int] = set()
        for step, (piece, mark) in enumerate(zip(pieces, marks, strict=True)):
            sees = self._sees(pieces, step, ends)
            self._step(piece, Duty.PART, subtask_of(piece.text, ends_with=mark, has_input=bool(sees)), sees)
            ends -= set(sees)
            ends.add(step)
        if len(ends) > 1 and len(pieces) < seen.max_steps:
            features = join_features(seen.whole, pieces, len(ends))
            if self._yes(Kind.JOIN, features):
                self._step(seen.piece(JOIN), Duty.JOINER, JOIN, tuple(sorted(ends)))

    def _sees(self, pieces: Sequence[Piece], step: int, ends: set[int]) -> tuple[int, ...]:
        return tuple(
            earlier
            for earlier in range(step)
            if self._yes(Kind.ACCESS, access_features(pieces, step, earlier, is_unused=earlier in ends))
        )
