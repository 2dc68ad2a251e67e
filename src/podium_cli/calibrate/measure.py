"""Makes the calls of a calibration: so many at once, never over the cap, each logged before it is sent."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from podium_cli.calibrate.journal import Begun, Ended, Journal
from podium_cli.calibrate.plan import PlannedCall
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.domain.usage import Usage
from podium_core.grading.result import Grade

_MAX_FAILURES_IN_A_ROW = 10
_NS_PER_US = 1_000
_STOPS = frozenset({Code.UNAUTHENTICATED, Code.POLICY_DENIED, Code.CONFLICT})
"""After these no later call would fare better."""

_MAY_HAVE_COST = frozenset({Code.PROVIDER_FAILED, Code.DEADLINE, Code.CANCELLED, Code.INTERNAL})
"""After these a worker without a price may have been paid all the same."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one run gave: the answer's text, or why there is none, and what it cost either way."""

    text: str
    usage: Usage
    cost_usd_micros: int
    latency_us: int
    finish_reason: str
    error: PodiumError | None = None


class AskPort(Protocol):
    """Asks a worker, as one recorded run."""

    async def ask(self, run_id: str, call: PlannedCall) -> Asked:
        """Ask once. Raises PodiumError when the run could not even be opened: then nothing was paid."""
        ...


def _may_repeat(call: PlannedCall, asked: Asked) -> bool:
    """Say whether a failed call surely cost nothing, so that a later start may make it again."""
    if asked.error is None or asked.cost_usd_micros:
        return False
    return call.worker.price is not None or asked.error.code not in _MAY_HAVE_COST


@dataclass(slots=True)
class Stop:
    """Why the measuring ended before all calls were made."""

    reason: str = ""
    error: PodiumError | None = None
    is_cap: bool = False


class Measuring:
    """One start of a calibration over the calls that are left."""

    def __init__(
        self,
        port: AskPort,
        journal: Journal,
        clock: Clock,
        ids: IdFactory,
        *,
        cap_usd_micros: int,
        on_end: Callable[[PlannedCall, Ended], None],
    ) -> None:
        self._port = port
        self._journal = journal
        self._clock = clock
        self._ids = ids
        self._cap_usd_micros = cap_usd_micros
        self._on_end = on_end
        self._failures = 0
        self.stop: Stop | None = None

    def interrupt(self) -> None:
        """Make no further calls; those under way end in peace."""
        if self.stop is None:
            self.stop = Stop("interrupted")

    async def run(self, calls: Sequence[PlannedCall], concurrency: int) -> None:
        """Make the calls in order; `stop` says why some were not made."""
        queue = iter(calls)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(calls))):
                group.create_task(self._work(queue))

    async def _work(self, queue: Iterator[PlannedCall]) -> None:
        for call in queue:
            if self.stop is None and not self._fits(call):
                self.stop = Stop("the cost cap is reached", is_cap=True)
            if self.stop is not None:
                return
            await self._make(call)

    def _fits(self, call: PlannedCall) -> bool:
        """Say whether the call stays under the cap even if it and all calls under way cost their most."""
        journal = self._journal
        most = journal.spent_usd_micros + journal.at_risk_usd_micros + call.max_cost_usd_micros
        return most <= self._cap_usd_micros

    async def _make(self, call: PlannedCall) -> None:
        run_id = self._ids.new("run")
        self._journal.begin(call.key, Begun(run_id, call.max_cost_usd_micros, self._now_us()))
        try:
            asked = await self._port.ask(run_id, call)
        except PodiumError as error:
            asked = Asked("", Usage(), 0, 0, "", error)
        ended = self._judge(run_id, call, asked)
        self._journal.end(call.key, ended)
        self._notice(asked.error)
        self._on_end(call, ended)

    def _judge(self, run_id: str, call: PlannedCall, asked: Asked) -> Ended:
        grade, reason = Grade.UNSCORABLE, ""
        if asked.error is not None:
            reason = asked.error.reason
        else:
            graded = call.item.task.grader.grade(asked.text)
            # An answer that came and holds nothing is the worker's own fault: wrong, not unscorable.
            grade = Grade.RIGHT if graded.is_right else Grade.WRONG
            reason = graded.reason
        return Ended(
            run_id=run_id,
            grade=grade.value,
            reason=reason,
            cost_usd_micros=asked.cost_usd_micros,
            input_tokens=asked.usage.input_tokens,
            output_tokens=asked.usage.output_tokens,
            latency_us=asked.latency_us,
            finish_reason=asked.finish_reason,
            time_us=self._now_us(),
            may_repeat=_may_repeat(call, asked),
        )

    def _notice(self, error: PodiumError | None) -> None:
        if error is None:
            self._failures = 0
            return
        self._failures += 1
        if self.stop is None and error.code in _STOPS:
            self.stop = Stop(error.message, error)
        elif self.stop is None and error.code is Code.BUDGET_EXHAUSTED:
            self.stop = Stop(error.message, error, is_cap=True)
        elif self.stop is None and self._failures >= _MAX_FAILURES_IN_A_ROW:
            self.stop = Stop(f"{self._failures} calls in a row failed, the last one: {error.message}", error)

    def _now_us(self) -> int:
        return self._clock.now_ns() // _NS_PER_US
