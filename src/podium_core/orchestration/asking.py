"""Asks the planner for a plan within what the run has left, and accounts for what the asking cost."""

import asyncio
from dataclasses import replace
from hashlib import sha256

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.gate import GATE_ONE_WORKER, GateDecision
from podium_core.domain.plan_prompt import FAST_TIER
from podium_core.domain.pool import Worker
from podium_core.orchestration.context import RunContext
from podium_core.orchestration.planning import PLAN_BLIND, checked, fallback_reply, named_reply, static_reply
from podium_core.orchestration.ports import (
    RUN_NOT_OPEN,
    PlanFailedError,
    PlannerPort,
    PlanQuery,
    PlanReply,
)
from podium_core.orchestration.request import RunRequest
from podium_core.orchestration.sight import sees

_SEEDS = 2**63
_FALLS_BACK = frozenset({Code.PLAN_INVALID, Code.DEADLINE, Code.UNAVAILABLE, Code.INTERNAL})


class Asking:
    """The planning of one run, round after round."""

    def __init__(
        self, planner: PlannerPort, context: RunContext, request: RunRequest, workers: tuple[Worker, ...]
    ) -> None:
        self._planner = planner
        self._context = context
        self._request = request
        self._workers = workers
        self._seeing = tuple(worker for worker in workers if sees(worker, request.question))
        self.gated: GateDecision | None = None
        """What the gate said of the first plan; None: nothing, as it is off or the plan has one step."""

    async def before_opening(self) -> PlanReply | None:
        """Return the first plan; None when the planner wants the run to be open first."""
        if self._request.named_worker_id is not None:
            return named_reply(self._workers[0])
        if self._request.static_plan is not None:
            return static_reply(self._request.static_plan, self._workers)
        if self._planner.opens_first and self._request.tier != FAST_TIER:
            return None
        return await self._first(run_is_open=False)

    async def after_opening(self) -> PlanReply:
        """Return the first plan of a run that is open."""
        reply = await self._first(run_is_open=True)
        if reply is None:
            raise PodiumError(Code.INTERNAL, "the planner asks for an open run that is open")
        return reply

    async def next_round(self, last: PlanReply, answer: str) -> PlanReply:
        """Return the next round's plan; raise PodiumError when there is none."""
        round_index = last.plan.round + 1
        reply = await self._ask(round_index, last, answer, run_is_open=True)
        return checked(reply, self._workers, self._seeing, self._request.caps, round_index=round_index)

    async def _first(self, *, run_is_open: bool) -> PlanReply | None:
        try:
            return self._through_gate(await self._planned(run_is_open=run_is_open))
        except PodiumError as error:
            if error.reason == RUN_NOT_OPEN and not run_is_open:
                return None
            if error.code not in _FALLS_BACK or self._request.pinned_model_digest is not None:
                raise
            return fallback_reply(self._seeing, error.reason)

    async def _planned(self, *, run_is_open: bool) -> PlanReply:
        reply = await self._ask(0, None, "", run_is_open=run_is_open)
        try:
            return checked(reply, self._workers, self._seeing, self._request.caps)
        except PodiumError as error:
            if error.reason != PLAN_BLIND:
                raise
        # The Conductor does not see the images and may not know what they need: let it choose again, among
        # those alone that do see.
        self._workers = self._seeing
        reply = await self._ask(0, None, "", run_is_open=run_is_open)
        return checked(reply, self._workers, self._seeing, self._request.caps)

    def _through_gate(self, reply: PlanReply) -> PlanReply:
        gate = self._request.gate
        self.gated = gate.decide(reply.plan, self._request.tier) if gate is not None else None
        if self.gated is None or self.gated.keeps:
            return reply
        # What the Conductor wrote and what it cost stay as they are: only what is performed changes.
        alone = fallback_reply(self._seeing, GATE_ONE_WORKER)
        return replace(reply, plan=alone.plan, fallback_reason=GATE_ONE_WORKER)

    def _seed(self, round_index: int) -> int:
        """Return the seed of one plan; a client's own `seed` decides it, so that it means the whole run."""
        asked = self._request.parameters.get("seed")
        if not isinstance(asked, int):
            return self._context.ids.seed()
        digest = sha256(f"podium-plan-seed/1 {asked} {round_index}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % _SEEDS

    async def _ask(
        self, round_index: int, previous: PlanReply | None, answer: str, *, run_is_open: bool
    ) -> PlanReply:
        context, request = self._context, self._request
        query = PlanQuery(
            request.run_id,
            request.question,
            self._workers,
            context.ledger.left(),
            request.tier,
            self._seed(round_index),
            max(0.0, min(context.limits.plan_timeout_s, context.left_s)),
            round_index,
            previous.plan if previous else None,
            answer,
            tenant_id=request.tenant_id,
            pool_digest=context.pool.pool_digest,
            run_is_open=run_is_open,
        )
        with context.observer.span("plan", {"run_id": request.run_id, "round": round_index}):
            try:
                async with asyncio.timeout(query.timeout_s):
                    reply = await self._planner.plan(query)
            except TimeoutError:
                raise PodiumError(Code.DEADLINE, "the Conductor gave no plan in time") from None
            except PlanFailedError as error:
                context.count_planning(error.attempts)
                raise
        if reply.attempts:
            context.count_planning(reply.attempts)
        else:
            context.planning_usage += reply.usage
            context.ledger.spend_tokens(reply.usage)
        if request.pinned_model_digest not in (None, reply.model_digest):
            raise PodiumError(
                Code.NOT_FOUND,
                f"the Conductor model that {request.requested_model} stands for is no longer loaded; ask for "
                f"{request.tier} without a date, or have the operator load that model again",
                reason="PINNED_MODEL_GONE",
                param="model",
            )
        return reply
