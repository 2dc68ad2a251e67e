"""`podium.dry_run`: admit and plan as always, record that, and dispatch nothing.

The same runner does it, over a recorder that refuses the run in the record once the plan is made. So a dry
run is judged, planned and checked by the very code that a real one would meet.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Pool
from podium_core.domain.run import Question, RunOutcome
from podium_core.orchestration.eligible import token_bound
from podium_core.orchestration.events import RunFinished
from podium_core.orchestration.limits import RunnerLimits
from podium_core.orchestration.ports import (
    OpenedRun,
    PlanReply,
    Receipt,
    RecorderPort,
    SealedRun,
    StepCall,
    WorkerEvent,
    WorkerPort,
)
from podium_core.orchestration.request import RunRequest
from podium_gateway.codecs.podium_object import PodiumView
from podium_gateway.ports import RunnerPort

REFUSAL_REASON = "DRY_RUN"
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class CostRange:
    """What a plan can cost, one attempt per step: least, and at its output limits. None: unknown price."""

    least_usd_micros: int | None
    most_usd_micros: int | None


class DryRuns:
    """Plans without performing. `runner_over` builds a runner over the ports it is given."""

    def __init__(
        self,
        runner_over: Callable[[WorkerPort, RecorderPort], RunnerPort],
        recorder: RecorderPort,
        limits: RunnerLimits,
    ) -> None:
        self._runner_over = runner_over
        self._recorder = recorder
        self._limits = limits

    async def plan(self, request: RunRequest, pool: Pool, view: PodiumView) -> dict[str, object]:
        """Return the `podium` object of a dry run; raise PodiumError as the real run would."""
        recorder = _PlanKeeper(self._recorder)
        runner = self._runner_over(_NoWorkers(), recorder)
        try:
            async with aclosing(runner.run(request, pool)) as events:
                first = await anext(events, None)
        except _PlannedError as planned:
            return self._shown(request, pool, view, planned)
        # A plan that took attempts is recorded in an open run, which ends as soon as it is planned.
        if isinstance(first, RunFinished) and recorder.planned is not None:
            return self._shown(request, pool, view, _PlannedError(recorder.planned, first.receipt))
        if isinstance(first, RunFinished) and first.error is not None:
            raise first.error
        raise PodiumError(Code.INTERNAL, "a dry run was performed")

    def _shown(
        self, request: RunRequest, pool: Pool, view: PodiumView, planned: "_PlannedError"
    ) -> dict[str, object]:
        limit = request.max_output_tokens or self._limits.inner_step_output_tokens
        cost = cost_range(planned.reply, request.question, pool, self._limits.inner_step_output_tokens, limit)
        least_and_most = {"least": cost.least_usd_micros, "most": cost.most_usd_micros}
        return view.dry_run(request.run_id, planned.reply, least_and_most, planned.receipt)


def cost_range(
    reply: PlanReply, question: Question, pool: Pool, inner_output_tokens: int, answer_output_tokens: int
) -> CostRange:
    """Return what performing the plan can cost, without retries."""
    least = most = 0
    asked_bytes = token_bound(question)
    last = len(reply.plan.steps) - 1
    for index, step in enumerate(reply.plan.steps):
        worker = pool.by_id[step.worker_id]
        if worker.price is None:
            return CostRange(None, None)
        wanted = answer_output_tokens if index == last else inner_output_tokens
        output = min(wanted, worker.card.max_output_tokens or wanted)
        # A token is at least one byte, four or so in most text; each history is at most an inner output.
        histories = len(step.access.steps) * inner_output_tokens
        subtask_bytes = len(step.subtask.encode(errors="replace"))
        least += worker.price.cost_usd_micros((asked_bytes + subtask_bytes) // _BYTES_PER_TOKEN, 1)
        most += worker.price.most_usd_micros(asked_bytes + subtask_bytes + histories, output)
    return CostRange(least, most)


class _PlannedError(PodiumError):
    """Leaves the runner with the plan once it is recorded."""

    def __init__(self, reply: PlanReply, receipt: Receipt | None) -> None:
        super().__init__(Code.CANCELLED, "a dry run ends here", reason=REFUSAL_REASON)
        self.reply = reply
        self.receipt = receipt


class _PlanKeeper(RecorderPort):
    def __init__(self, recorder: RecorderPort) -> None:
        self._recorder = recorder
        self.planned: PlanReply | None = None

    async def open_run(self, opened: OpenedRun) -> Receipt | None:
        if opened.plan is None:
            return await self._recorder.open_run(opened)
        dry = replace(opened, plan=None, refusal_reason=REFUSAL_REASON)
        raise _PlannedError(opened.plan, await self._recorder.open_run(dry))

    async def append_plan(self, run_id: str, event_id: str, reply: PlanReply) -> None:
        await self._recorder.append_plan(run_id, event_id, reply)
        self.planned = reply
        raise _PlannedError(reply, None)

    async def note(self, run_id: str, event_id: str, kind: str, facts: Mapping[str, str]) -> None:  # noqa: ARG002 - the port's
        raise _performed()

    async def seal(self, sealed: SealedRun) -> Receipt:
        if self.planned is not None:
            sealed = replace(sealed, outcome=RunOutcome.REFUSED)
        return await self._recorder.seal(sealed)


class _NoWorkers(WorkerPort):
    def complete(self, call: StepCall) -> AsyncGenerator[WorkerEvent, None]:  # noqa: ARG002 - the port's
        raise _performed()


def _performed() -> PodiumError:
    return PodiumError(Code.INTERNAL, "a dry run must not be performed")
