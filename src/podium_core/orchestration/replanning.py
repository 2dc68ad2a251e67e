"""A run whose pool the router no longer knows is judged and planned once more, on the pool of now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from podium_core.domain.errors import PodiumError
from podium_core.domain.plan import Plan
from podium_core.domain.policy import Verdict
from podium_core.orchestration.asking import Asking
from podium_core.orchestration.context import RunContext
from podium_core.orchestration.eligible import eligible_workers, judge, require_planned
from podium_core.orchestration.ports import FreshPoolPort, PlannerPort, PlanReply, RecorderPort
from podium_core.orchestration.request import RunRequest

STALE_POOL = "STALE_POOL"
REPLAN_NOTE = "replan"
_POOL_WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class Replanned:
    """A plan for the run's next round, with the verdicts that it rests on, and who plans from now on."""

    reply: PlanReply
    verdicts: tuple[Verdict, ...]
    asking: Asking


@dataclass(frozen=True, slots=True)
class Replanning:
    """Plans anew over the runner's ports."""

    planner: PlannerPort
    recorder: RecorderPort
    pools: FreshPoolPort

    async def anew(
        self, context: RunContext, request: RunRequest, first: Sequence[Verdict], last: Plan
    ) -> Replanned | None:
        """Return the plan that replaces `last`, recorded; None when there is no newer pool.

        Only workers that the run's first verdicts, which the log holds, allow as well take part: one that is
        new has to wait for the next run. Raises PodiumError when nobody is left, or no plan can be recorded.
        """
        pool = await self.pools.newer(context.pool.pool_digest, max(0.0, min(_POOL_WAIT_S, context.left_s)))
        if pool is None:
            return None
        allowed = {verdict.worker_id for verdict in first if verdict.allowed}
        pool = replace(pool, workers=tuple(w for w in pool.workers if w.worker_id in allowed))
        verdicts = judge(pool, request.demands)
        workers = eligible_workers(pool, verdicts)
        if request.static_plan is not None:
            require_planned(request.static_plan, pool, verdicts, request.caps.max_steps)
        old_digest, context.pool = context.pool.pool_digest, pool
        asking = Asking(self.planner, context, request, workers)
        reply = await asking.before_opening() or await asking.after_opening()
        reply = replace(reply, plan=replace(reply.plan, round=last.round + 1))
        facts = {"reason": STALE_POOL, "old_pool_digest": old_digest, "pool_digest": pool.pool_digest}
        await self.recorder.note(request.run_id, context.ids.new("evt"), REPLAN_NOTE, facts)
        await self.recorder.append_plan(request.run_id, context.ids.new("evt"), reply)
        return Replanned(reply, verdicts, asking)


def is_stale(error: PodiumError | None) -> bool:
    """Say whether a step failed only because the run's pool is gone: then nothing was sent for it."""
    return error is not None and error.reason == STALE_POOL
