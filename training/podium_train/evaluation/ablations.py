"""Conductors with something taken away, as plan writers around a plan writer."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from podium_core.domain.plan import Access, Step
from podium_core.domain.plan_format import PlanFormatError, parse_plan, render_plan
from podium_train.environments.roles import EXAMPLES, Role
from podium_train.evaluation.systems import PlanQuestion, PlanWriter, WrittenPlan
from podium_train.outcomes.cards import shuffled_cards

_Change = Callable[[Sequence[Step]], list[Step]]


@dataclass(frozen=True, slots=True)
class WithoutSubtasks:
    """Every step is only told to solve the question."""

    writer: PlanWriter

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        """Return the plan with the same workers and access, and one subtask for all."""
        written = await self.writer.write(asked)
        return _rewritten(
            written, asked, lambda steps: [replace(step, subtask=EXAMPLES[Role.SOLVE]) for step in steps]
        )


@dataclass(frozen=True, slots=True)
class FixedTopology:
    """Every plan of several steps has one shape: independent answers, and a last step that compares them."""

    writer: PlanWriter

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        """Return the plan's workers in that shape."""
        return _rewritten(await self.writer.write(asked), asked, _voting)


@dataclass(frozen=True, slots=True)
class ShuffledIds:
    """The plan's numbers mean other workers than the Conductor was shown: who does what stops to matter."""

    writer: PlanWriter

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        """Return the plan with the numbers dealt out anew."""
        written = await self.writer.write(asked)
        ids = list(written.worker_ids)
        random.Random(f"ids {asked.seed}").shuffle(ids)  # noqa: S311 - an ablation's dice
        return replace(written, worker_ids=tuple(ids))


@dataclass(frozen=True, slots=True)
class ShuffledCards:
    """The Conductor sees every worker with another one's card."""

    writer: PlanWriter

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        """Return the plan made from the wrong cards; its workers are the right ones."""
        rng = random.Random(f"cards {asked.seed}")  # noqa: S311 - an ablation's dice
        return await self.writer.write(replace(asked, workers=shuffled_cards(asked.workers, rng)))


@dataclass(frozen=True, slots=True)
class OneStep:
    """The Conductor may write one step."""

    writer: PlanWriter

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        """Return the plan under a cap of one step."""
        return await self.writer.write(replace(asked, caps=replace(asked.caps, max_steps=1)))


def _voting(steps: Sequence[Step]) -> list[Step]:
    if len(steps) == 1:
        return list(steps)
    proposals = [Step(step.worker_id, "") for step in steps[:-1]]
    last = Step(steps[-1].worker_id, EXAMPLES[Role.AGGREGATE], Access(tuple(range(len(proposals)))))
    return [*proposals, last]


def _rewritten(written: WrittenPlan, asked: PlanQuestion, change: _Change) -> WrittenPlan:
    """Return the changed plan as text; a text that is no plan stays as it is, and invalid."""
    try:
        steps = parse_plan(
            written.completion, written.worker_ids, max_steps=asked.caps.max_steps, round_index=asked.round
        )
    except PlanFormatError:
        return written
    changed = change(steps)
    text = render_plan(
        [written.worker_ids.index(step.worker_id) for step in changed],
        [step.subtask for step in changed],
        [step.access for step in changed],
    )
    return replace(written, completion=text)
