"""The plan-call port in memory: a worker that writes what a test says when it is prompted as Conductor."""

import asyncio
from collections.abc import Callable, Sequence

from podium_conductor.engines.worker.ports import PlanCall, PlanText
from podium_core.domain.errors import PodiumError
from podium_core.domain.usage import Usage

_USAGE = Usage(100, 20)

Turn = str | PodiumError | Callable[[PlanCall], str]


class FakePlanCalls:
    """Answers each call with the next turn; the last one repeats."""

    def __init__(self, *turns: Turn, usage: Usage = _USAGE, cost_usd_micros: int = 9) -> None:
        self.calls: list[PlanCall] = []
        self.gate: asyncio.Event | None = None
        self._turns: Sequence[Turn] = turns
        self._usage = usage
        self._cost_usd_micros = cost_usd_micros

    async def complete(self, call: PlanCall) -> PlanText:
        """Play the next turn."""
        self.calls.append(call)
        if self.gate is not None:
            await self.gate.wait()
        turn = self._turns[min(len(self.calls), len(self._turns)) - 1]
        if isinstance(turn, PodiumError):
            raise turn
        text = turn if isinstance(turn, str) else turn(call)
        return PlanText(text, self._usage, self._cost_usd_micros, 1_000)
