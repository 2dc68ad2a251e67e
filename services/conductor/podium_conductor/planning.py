"""Plans under way: bounded in number, in time and in steps, watched, and cancelled with their caller."""

import asyncio
from dataclasses import dataclass, replace

from podium_conductor.fast import fast_plan
from podium_conductor.ports import Engine, EngineDescription
from podium_conductor.telemetry import PlanTelemetry
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.plan_prompt import FAST_TIER
from podium_core.orchestration.ports import PlanQuery, PlanReply

_NANOS_PER_S = 1_000_000_000
_NANOS_PER_US = 1_000
_RETRY_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class PlanningLimits:
    """The service's own bounds; a call's caps and deadline can only be tighter."""

    max_steps: int = 5
    max_running: int = 8
    max_waiting: int = 256
    max_plan_s: float = 60.0


class Planning:
    """Runs one engine within limits."""

    def __init__(
        self, engine: Engine, telemetry: PlanTelemetry, clock: Clock, limits: PlanningLimits
    ) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._clock = clock
        self._limits = limits
        self._places = asyncio.Semaphore(limits.max_running)
        self._waiting = 0

    @property
    def max_steps(self) -> int:
        """The most steps a plan of this service has."""
        return self._limits.max_steps

    def describe(self) -> EngineDescription:
        """Return what the engine has loaded."""
        return self._engine.describe()

    async def plan(self, query: PlanQuery) -> PlanReply:
        """Return the engine's plan.

        Raises PodiumError: INVALID_REQUEST for a query that makes no sense, RATE_LIMITED when too many
        calls wait, DEADLINE when `query.timeout_s` or the service's own limit passes, PLAN_INVALID with the
        broken rule as reason, UNAVAILABLE from the engine.
        """
        _check(query)
        started_ns = self._clock.monotonic_ns()
        timeout_s = min(query.timeout_s, self._limits.max_plan_s)
        deadline_ns = started_ns + int(timeout_s * _NANOS_PER_S)
        caps = replace(query.caps, max_steps=min(query.caps.max_steps, self._limits.max_steps))
        with self._telemetry.watch(query) as watch:
            reply = await self._within(replace(query, caps=caps), timeout_s, deadline_ns)
            elapsed_us = (self._clock.monotonic_ns() - started_ns) // _NANOS_PER_US
            reply = self._with_digests(replace(reply, latency_us=elapsed_us))
            watch.planned(reply)
        return reply

    def _with_digests(self, reply: PlanReply) -> PlanReply:
        """Name the parts of the model that made the plan, unless another was loaded meanwhile."""
        loaded = self._engine.describe()
        if loaded.model_digest != reply.model_digest:
            return reply
        return replace(
            reply, tokenizer_digest=loaded.tokenizer_digest, template_digest=loaded.template_digest
        )

    async def _within(self, query: PlanQuery, timeout_s: float, deadline_ns: int) -> PlanReply:
        try:
            async with asyncio.timeout(timeout_s):
                await self._enter()
                try:
                    if query.tier == FAST_TIER and query.round == 0:
                        return await fast_plan(self._engine, query, deadline_ns)
                    return await self._engine.plan(query, deadline_ns)
                finally:
                    self._places.release()
        except TimeoutError:
            raise PodiumError(
                Code.DEADLINE, "no plan was made in time; allow more time to plan", reason="PLAN_DEADLINE"
            ) from None

    async def _enter(self) -> None:
        if self._waiting >= self._limits.max_waiting:
            raise PodiumError(
                Code.RATE_LIMITED,
                "too many plans are being made; try again shortly",
                reason="PLANS_QUEUE_FULL",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1


def _check(query: PlanQuery) -> None:
    if len({worker.worker_id for worker in query.workers}) != len(query.workers):
        raise invalid("every worker may have one card", param="cards")
    if query.round > 0 and query.previous_plan is None:
        raise invalid("a later round needs the plan before it", param="previous_plan")
