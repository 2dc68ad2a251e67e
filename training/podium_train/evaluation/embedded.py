"""Embedded Conductors (`podium_core.plan_model`) as plan writers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from podium_core.domain.errors import invalid
from podium_core.domain.plan_format import render_plan
from podium_core.domain.pool import Worker
from podium_core.domain.usage import Usage, UsageSource
from podium_core.plan_model.cards import PoolCards
from podium_core.plan_model.choices import likeliest
from podium_core.plan_model.deciding import Deciding, Seen
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.weights import ARRAYS_FILE, SKILLS_FILE, unpacked
from podium_core.plan_model.writing import written
from podium_train.evaluation.results import estimated_tokens
from podium_train.evaluation.systems import PlanQuestion, PlanWriter, WrittenPlan

_MOST_POOLS = 500


@dataclass(frozen=True, slots=True)
class EmbeddedWriter:
    """Plans with a plan model, taking the likeliest option of every choice, as serving does.

    It has no tokens; question and plan text are charged as if they were (characters / 4). Cards reach it as
    numbers and are not charged. A later round accepts the answer there is. Plans are kept, as ablations and
    suites ask the same things again.
    """

    model: PlanModel
    _cards: dict[tuple[Worker, ...], PoolCards] = field(default_factory=dict)
    _written: dict[tuple[str, tuple[Worker, ...], int], WrittenPlan] = field(default_factory=dict)

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        """Return the plan text."""
        workers = sorted(asked.workers, key=lambda worker: worker.worker_id)
        worker_ids = tuple(worker.worker_id for worker in workers)
        if asked.round > 0 and asked.previous_answer.strip():
            return WrittenPlan(render_plan([], [], []), worker_ids)
        key = (asked.question, tuple(workers), asked.caps.max_steps)
        if key not in self._written:
            self._written[key] = self._plan(asked.question, workers, asked.caps.max_steps)
        return self._written[key]

    def _plan(self, question: str, workers: Sequence[Worker], max_steps: int) -> WrittenPlan:
        pool = tuple(workers)
        if pool not in self._cards:
            if len(self._cards) >= _MOST_POOLS:
                self._cards.clear()
            self._cards[pool] = PoolCards(pool, self.model.space)
        seen = Seen(self.model, question, pool, max_steps, self._cards[pool])
        text = written(Deciding(seen, likeliest).decide())
        usage = Usage(estimated_tokens(question), estimated_tokens(text), source=UsageSource.ESTIMATED)
        return WrittenPlan(text, tuple(worker.worker_id for worker in workers), usage)


def embedded_writer(path: Path) -> PlanWriter:
    """Return the Conductor whose weights are in `path`; raise PodiumError when they cannot be read."""
    try:
        files = {name: (path / name).read_bytes() for name in (ARRAYS_FILE, SKILLS_FILE)}
    except OSError as error:
        raise invalid(
            f"--conductor {path.name} holds no weights of an embedded Conductor: {error.strerror}"
        ) from None
    return EmbeddedWriter(unpacked(files))
