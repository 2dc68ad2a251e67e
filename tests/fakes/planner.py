"""The planner port in memory: plans come from a script, queries are kept."""

import asyncio
from collections.abc import Callable, Sequence

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.usage import Usage
from podium_core.orchestration.ports import RUN_NOT_OPEN, PlannerPort, PlanQuery, PlanReply

PlannerTurn = Plan | PlanReply | PodiumError | Callable[[PlanQuery], Plan]


def plan_of(*steps: tuple[str, str, tuple[int, ...]], round_: int = 0) -> Plan:
    """Return a rules plan of (worker id, subtask, access) triples."""
    made = tuple(Step(worker, subtask, Access(seen)) for worker, subtask, seen in steps)
    return Plan(made, PlanSource.RULES, round_)


def first_worker_plan(query: PlanQuery) -> Plan:
    """Return one step for the first eligible worker, the question passed through."""
    return Plan((Step(query.workers[0].worker_id, ""),), PlanSource.RULES, query.round)


class FakePlanner(PlannerPort):
    """Answers each query with the next turn; the last turn repeats."""

    def __init__(
        self,
        *turns: PlannerTurn,
        usage: Usage | None = None,
        gate: asyncio.Event | None = None,
        opens_first: bool = False,
        needs_open_run: bool = False,
    ) -> None:
        self._opens_first = opens_first
        self._needs_open_run = needs_open_run
        self.queries: list[PlanQuery] = []
        self.cancelled = 0
        self._turns: Sequence[PlannerTurn] = turns or (first_worker_plan,)
        self._usage = usage or Usage()
        self._gate = gate

    @property
    def opens_first(self) -> bool:
        """What the test said."""
        return self._opens_first

    async def plan(self, query: PlanQuery) -> PlanReply:
        """Return the scripted plan, or raise the scripted error."""
        if self._needs_open_run and not query.run_is_open:
            raise PodiumError(Code.CONFLICT, "open the run first", reason=RUN_NOT_OPEN)
        self.queries.append(query)
        if self._gate is not None:
            try:
                await self._gate.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        turn = self._turns[min(len(self.queries), len(self._turns)) - 1]
        if isinstance(turn, PodiumError):
            raise turn
        if isinstance(turn, PlanReply):
            return turn
        plan = turn if isinstance(turn, Plan) else turn(query)
        return PlanReply(plan, raw_text="scripted", usage=self._usage, model_digest="fake", seed=query.seed)
