"""Plans the runner makes or completes itself: named workers, the fallback plan, fallback workers."""

from collections.abc import Sequence
from dataclasses import replace

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Plan, PlanSource, StaticPlan, Step
from podium_core.domain.pool import Worker
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanReply
from podium_core.orchestration.sight import looks

PLAN_BLIND = "PLAN_BLIND"


def named_reply(worker: Worker) -> PlanReply:
    """Return the plan for a request that names its worker. A name never degrades to another worker."""
    return PlanReply(Plan((Step(worker.worker_id, ""),), PlanSource.NAMED))


def static_reply(static: StaticPlan, workers: Sequence[Worker]) -> PlanReply:
    """Return an operator's plan. Its workers are eligible by now; a fallback that is not is left out."""
    eligible = {worker.worker_id for worker in workers}
    steps = tuple(
        step if step.fallback_worker_id in eligible else replace(step, fallback_worker_id=None)
        for step in static.plan.steps
    )
    return PlanReply(replace(static.plan, steps=steps), model_digest=static.digest)


def fallback_reply(workers: Sequence[Worker], reason: str) -> PlanReply:
    """Return the plan used when the Conductor gave none: the best eligible worker by card, alone."""
    best = best_by_card(workers)
    step = Step(best.worker_id, "", fallback_worker_id=_fallback_for(best, workers))
    return PlanReply(Plan((step,), PlanSource.FALLBACK), fallback_reason=reason)


def best_by_card(workers: Sequence[Worker]) -> Worker:
    """Return the worker with the highest mean accuracy; the cheaper one on a tie, then by id."""

    def rank(worker: Worker) -> tuple[int, int, str]:
        price = worker.price.output_usd_micros_per_mtok if worker.price else 0
        return -worker.card.mean_accuracy_ppm, price, worker.worker_id

    return min(workers, key=rank)


def checked(
    reply: PlanReply,
    workers: Sequence[Worker],
    seeing: Sequence[Worker],
    caps: Caps,
    *,
    round_index: int = 0,
) -> PlanReply:
    """Return the reply with fallback workers named, or raise PodiumError (PLAN_INVALID).

    `seeing` are the workers that can be shown the question as it is; reason PLAN_BLIND: none that matters to
    the answer is. A fallback worker sees as much as the one it stands in for.

    The Conductor already constrains its plans; this is the runner's own check that what will be recorded
    and performed stays within the eligible pool and the caps.
    """
    eligible = {worker.worker_id: worker for worker in workers}
    plan = reply.plan
    if plan.round != round_index:
        raise _invalid("the plan is for another round")
    if len(plan.steps) > caps.max_steps:
        raise _invalid(f"the plan has {len(plan.steps)} steps; {caps.max_steps} are allowed")
    if any(step.worker_id not in eligible for step in plan.steps):
        raise _invalid("the plan uses a worker outside the eligible pool")
    sighted = {worker.worker_id for worker in seeing}
    if not looks(plan, sighted):
        raise PodiumError(
            Code.PLAN_INVALID, "the plan shows the images to nobody who is heard", reason=PLAN_BLIND
        )
    blind = [worker for worker in workers if worker.worker_id not in sighted]

    def fallback(worker_id: str) -> str | None:
        return _fallback_for(eligible[worker_id], seeing if worker_id in sighted else blind)

    steps = tuple(replace(step, fallback_worker_id=fallback(step.worker_id)) for step in plan.steps)
    return replace(reply, plan=replace(plan, steps=steps))


def _fallback_for(worker: Worker, workers: Sequence[Worker]) -> str | None:
    """Return the eligible worker that shares most of this one's strengths; None when none shares any."""
    strengths = {skill.name: skill.accuracy_ppm for skill in worker.card.skills}

    def shared(other: Worker) -> int:
        return sum(min(strengths.get(s.name, 0), s.accuracy_ppm) for s in other.card.skills)

    others = [other for other in workers if other.worker_id != worker.worker_id]
    if not strengths:
        return best_by_card(others).worker_id if others else None
    best = max(others, key=lambda other: (shared(other), other.worker_id), default=None)
    return best.worker_id if best is not None and shared(best) > 0 else None


def _invalid(message: str) -> PodiumError:
    return PodiumError(Code.PLAN_INVALID, message, reason="PLAN_OUTSIDE_LIMITS")
