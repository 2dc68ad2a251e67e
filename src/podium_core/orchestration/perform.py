"""One round performed: every step starts as soon as all steps it may see are done.

Independent steps run at once. A failed step is data for the steps that see it, not an exception; the
round's answer is its last step.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from podium_core.domain.errors import PodiumError
from podium_core.domain.plan import Plan
from podium_core.orchestration.attempts import AttemptMaker, StepTask, ends_run
from podium_core.orchestration.context import RunContext
from podium_core.orchestration.events import RunEvent, StepEnded, StepResult, StepStarted
from podium_core.orchestration.histories import VisibleStep, compose
from podium_core.orchestration.ports import Facts

_QUEUED_EVENTS = 64


class Round:
    """Performs one plan. Use `events` once, then read `results` and `answer`."""

    def __init__(self, context: RunContext, plan: Plan, previous_answer: str, *, live: bool) -> None:
        self._context = context
        self._plan = plan
        self._previous_answer = previous_answer
        self._live = live
        self._events: asyncio.Queue[RunEvent | None] = asyncio.Queue(_QUEUED_EVENTS)
        self._done = [asyncio.Event() for _ in plan.steps]
        self._maker = AttemptMaker(context, self._events.put)
        self._defect: Exception | None = None
        self.results: dict[int, StepResult] = {}
        self.more_answers: tuple[StepResult, ...] = ()
        """The other answers of the last step, where several were asked for."""

    @property
    def answer(self) -> StepResult:
        """The answering step's result. Only valid after `events` has ended."""
        return self.results[len(self._plan.steps) - 1]

    async def events(self) -> AsyncGenerator[RunEvent, None]:
        """Yield what happens until the answering step is done.

        Steps still running then can no longer matter and are cancelled; so are all when this generator is
        closed early.
        """
        tasks = [asyncio.create_task(self._guarded(index)) for index in range(len(self._plan.steps))]
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._defect is not None:
            raise self._defect

    async def _guarded(self, index: int) -> None:
        """Perform one step and end the round when it was the last, or when Podium itself is at fault."""
        try:
            await self._step(index)
        except Exception as defect:  # noqa: BLE001 - raised again by `events`, in the reader's task
            self._defect = defect
        if self._defect is not None or index == len(self._plan.steps) - 1:
            await self._events.put(None)

    async def _step(self, index: int) -> None:
        plan, context = self._plan, self._context
        step = plan.steps[index]
        for seen in step.access.steps:
            await self._done[seen].wait()
        await self._events.put(StepStarted(plan.round, index, step.worker_id))
        facts: Facts = {
            "run_id": context.run_id,
            "round": plan.round,
            "step_index": index,
            "worker_id": step.worker_id,
            "access": step.access.steps,
            "sees_previous_round": step.access.previous_round,
        }
        with context.observer.span("step", facts):
            doom = next(
                (self.results[s].error for s in step.access.steps if ends_run(self.results[s].error)), None
            )
            results = [self._doomed(index, doom)] if doom else await self._perform(self._task(index))
        self.results[index], *more = results
        if more:
            self.more_answers = tuple(more)
        self._done[index].set()
        for result in results:
            await self._events.put(StepEnded(result))

    async def _perform(self, task: StepTask) -> list[StepResult]:
        """Perform a step, the answering one as often as answers were asked for."""
        count = self._context.answer_count if task.is_answer else 1
        if count == 1:
            return [await self._maker.perform(task)]
        async with asyncio.TaskGroup() as group:
            choices = [
                group.create_task(self._maker.perform(replace(task, choice=choice)))
                for choice in range(count)
            ]
        return [choice.result() for choice in choices]

    def _task(self, index: int) -> StepTask:
        plan = self._plan
        step = plan.steps[index]
        visible = [VisibleStep(s, plan.steps[s].subtask, self.results[s].words) for s in step.access.steps]
        previous = self._previous_answer if step.access.previous_round else None
        is_answer = index == len(plan.steps) - 1
        return StepTask(
            plan.round,
            index,
            step,
            compose(self._context.question, step.subtask, visible, previous, self._context.ids.tag),
            is_answer=is_answer,
            live=is_answer and self._live,
        )

    def _doomed(self, index: int, error: PodiumError) -> StepResult:
        now_us, worker_id = self._context.elapsed_us, self._plan.steps[index].worker_id
        return StepResult(
            round=self._plan.round,
            step_index=index,
            worker_id=worker_id,
            ok=False,
            text="",
            reasoning="",
            tool_calls=(),
            finish_reason="error",
            attempts=(),
            started_us=now_us,
            ended_us=now_us,
            error=error,
        )
