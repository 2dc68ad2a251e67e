"""The `podium-fast` tier: one step, the worker by the engine's probabilities, the question passed through."""

from dataclasses import replace

from podium_conductor.ports import Engine
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Plan, PlanSource, Step
from podium_core.domain.plan_prompt import FAST_TIER
from podium_core.orchestration.planning import best_by_card
from podium_core.orchestration.ports import PlanQuery, PlanReply

NO_PROBABILITIES = "ENGINE_WITHOUT_PROBABILITIES"
"""The recorded reason why the worker was taken by card."""


async def fast_plan(engine: Engine, query: PlanQuery, deadline_ns: int) -> PlanReply:
    """Return a plan of one step without a subtask.

    An engine with probabilities is asked once, for one step; otherwise the best eligible worker by card is
    taken, and the reply says why. Raises PodiumError as the engine does.
    """
    described = engine.describe()
    if not described.has_probabilities:
        best = best_by_card(query.workers).worker_id
        return PlanReply(
            _one_step(best, query.round),
            model_digest=described.model_digest,
            generation_count=0,
            seed=query.seed,
            fallback_reason=NO_PROBABILITIES,
        )
    one_step = replace(query, tier=FAST_TIER, caps=replace(query.caps, max_steps=1))
    reply = await engine.plan(one_step, deadline_ns)
    if not reply.chances or not reply.chances[0]:
        raise PodiumError(
            Code.PLAN_INVALID, "the engine gave no probabilities for its choice", reason=NO_PROBABILITIES
        )
    # Ties go to the smaller id, so that equal evidence always gives the same worker.
    best = min(reply.chances[0], key=lambda chance: (-chance.eligible_ppm, chance.worker_id)).worker_id
    return replace(reply, plan=_one_step(best, query.round))


def _one_step(worker_id: str, round_index: int) -> Plan:
    return Plan((Step(worker_id, ""),), PlanSource.FAST, round_index)
