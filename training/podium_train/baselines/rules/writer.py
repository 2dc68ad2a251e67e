"""The rules planner as a Conductor to be measured: drafts a workflow and writes it as plan text."""

from random import Random

from podium_core.domain.plan import Access
from podium_core.domain.plan_format import render_plan
from podium_train.baselines.rules.workflow import Draft, draft_steps
from podium_train.evaluation.systems import PlanQuestion, WrittenPlan


class RulesPlanner:
    """Plans by rules. Deterministic: the same question, cards, caps and seed give the same text."""

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        """Return the plan text; a later round accepts the answer there is. It uses no tokens."""
        worker_ids = sorted(worker.worker_id for worker in asked.workers)
        Random(asked.seed).shuffle(worker_ids)  # noqa: S311 - reproducible, not secret
        drafts: list[Draft] = []
        if asked.round == 0:
            drafts = draft_steps(asked.question, asked.workers, asked.caps.max_steps)
        text = render_plan(
            [worker_ids.index(draft.worker_id) for draft in drafts],
            [draft.subtask for draft in drafts],
            [Access(draft.sees) for draft in drafts],
        )
        return WrittenPlan(text, tuple(worker_ids))
