"""A planning engine that does what a test says."""

import asyncio
from collections.abc import Awaitable, Callable

from podium_conductor.ports import EngineDescription
from podium_core.domain.plan import Plan, PlanSource, Step
from podium_core.orchestration.ports import PlanQuery, PlanReply


class FakeEngine:
    """Answers every question with its first worker, after whatever `behave` does."""

    def __init__(self, behave: Callable[[PlanQuery, int], Awaitable[None]] | None = None) -> None:
        self._behave = behave
        self.queries: list[PlanQuery] = []
        self.running = 0
        self.most_running = 0
        self.cancelled = 0

    async def plan(self, query: PlanQuery, deadline_ns: int) -> PlanReply:
        """Return a one-step plan."""
        self.queries.append(query)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if self._behave is not None:
                await self._behave(query, deadline_ns)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return PlanReply(
            Plan((Step(query.workers[0].worker_id, ""),), PlanSource.MODEL), model_digest="f" * 64
        )

    def describe(self) -> EngineDescription:
        """Say what this is."""
        return EngineDescription("fake", PlanSource.MODEL, "f" * 64, "1" * 64, "2" * 64)

    async def close(self) -> None:
        """Nothing is held."""
