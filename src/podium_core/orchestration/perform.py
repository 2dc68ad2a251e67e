"""One round performed: every step starts as soon as all steps it may see are done.

Independent steps run at once. A failed step is data for the steps that see it, not an exception; the
round's answer is its last step. With a quorum or a straggler wait among the caps, a step goes on without
the slowest of those it may see; one that nobody waits for any more is cancelled.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, Step
from podium_core.orchestration.attempts import StepAttempts, ends_run
from podium_core.orchestration.context import RunContext
from podium_core.orchestration.event_queue import EventQueue
from podium_core.orchestration.events import RunEvent, StepEnded, StepResult, StepStarted
from podium_core.orchestration.histories import VisibleStep, compose
from podium_core.orchestration.one_attempt import StepTask
from podium_core.orchestration.ports import Facts
from podium_core.orchestration.sight import as_seen_by


class Round:
    """Performs one plan. Use `events` once, then read `results` and `answer`."""

    def __init__(self, context: RunContext, plan: Plan, previous_answer: str, *, live: bool) -> None:
        self._context = context
        self._plan = plan
        self._previous_answer = previous_answer
        self._live = live
        self._events = EventQueue()
        loop = asyncio.get_running_loop()
        self._done: list[asyncio.Future[None]] = [loop.create_future() for _ in plan.steps]
        self._waiting_for = [
            {index for index, step in enumerate(plan.steps) if seen in step.access.steps}
            for seen in range(len(plan.steps))
        ]
        """Who still waits for a step, by step."""
        self._tasks: list[asyncio.Task[None]] = []
        self._stragglers: set[int] = set()
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
        self._tasks = [asyncio.create_task(self._guarded(index)) for index in range(len(self._plan.steps))]
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._defect is not None:
            raise self._defect
        while not self._events.empty():  # the ends of stragglers, which nothing waited for
            if (event := self._events.get_nowait()) is not None:
                yield event

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
        access = plan.steps[index].access
        attempts: list[StepAttempts] = []
        try:
            seen = await self._inputs(index)
            step = replace(plan.steps[index], access=Access(seen, access.previous_round))
            await self._events.put(StepStarted(plan.round, index, step.worker_id))
            facts: Facts = {
                "run_id": context.run_id,
                "round": plan.round,
                "step_index": index,
                "worker_id": step.worker_id,
                "access": seen,
                "sees_previous_round": access.previous_round,
            }
            with context.observer.span("step", facts):
                doom = next((self.results[s].error for s in seen if ends_run(self.results[s].error)), None)
                if doom is None:
                    attempts = self._attempts(self._task(index, step))
                    results = await _all_made(attempts)
                else:
                    results = [self._unmade(index, doom)]
        except asyncio.CancelledError:
            if index not in self._stragglers:
                raise
            late = PodiumError(Code.CANCELLED, "the plan went on without this step", reason="STEP_STRAGGLED")
            results = [made.result(late) for made in attempts] or [self._unmade(index, late)]
        self.results[index], *more = results
        if more:
            self.more_answers = tuple(more)
        self._done[index].set_result(None)
        for result in results:
            await self._events.put(StepEnded(result))

    def _attempts(self, task: StepTask) -> list[StepAttempts]:
        """Return the attempts at a step; at the answering one as often as answers were asked for."""
        count = self._context.answer_count if task.is_answer else 1
        return [
            StepAttempts(self._context, replace(task, choice=choice), self._events.put)
            for choice in range(count)
        ]

    async def _inputs(self, index: int) -> tuple[int, ...]:
        """Wait for the steps that this one may see; return those that it goes on with."""
        seen, caps = self._plan.steps[index].access.steps, self._context.caps
        loop, until = asyncio.get_running_loop(), None
        while running := [self._done[s] for s in seen if not self._done[s].done()]:
            good_count = sum(self.results[s].ok for s in seen if s in self.results)
            if caps.quorum is not None and good_count >= caps.quorum:
                break
            if until is None and good_count and caps.straggler_wait_s is not None:
                until = loop.time() + caps.straggler_wait_s
            wait_s = None if until is None else max(0.0, until - loop.time())
            done, _ = await asyncio.wait(running, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
        for s in seen:
            self._waiting_for[s].discard(index)
            if s not in self.results and not self._waiting_for[s]:
                self._stragglers.add(s)
                self._tasks[s].cancel()
        return tuple(s for s in seen if s in self.results)

    def _task(self, index: int, step: Step) -> StepTask:
        plan = self._plan
        seen = step.access.steps
        visible = [VisibleStep(s, plan.steps[s].subtask, self.results[s].words) for s in seen]
        previous = self._previous_answer if step.access.previous_round else None
        is_answer = index == len(plan.steps) - 1
        question = as_seen_by(self._context.pool.by_id[step.worker_id], self._context.question)
        return StepTask(
            plan.round,
            index,
            step,
            compose(question, step.subtask, visible, previous, self._context.ids.tag),
            is_answer=is_answer,
            live=is_answer and self._live,
            kind=self._context.step_kind,
        )

    def _unmade(self, index: int, error: PodiumError) -> StepResult:
        """Return the result of a step that made no attempt."""
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


async def _all_made(attempts: list[StepAttempts]) -> list[StepResult]:
    if len(attempts) == 1:
        return [await attempts[0].make()]
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(one.make()) for one in attempts]
    return [task.result() for task in made]
