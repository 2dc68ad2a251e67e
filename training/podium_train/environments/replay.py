"""The replay environment: plans over recorded answers of real models.

A solving step that reads nobody returns one of its worker's recorded answers (sample = hash of seed, rollout
and step), an aggregating step the vote over the recorded answers it sees, ties to its own: such outcomes are
exact. Planning, checking, correcting, and solving after reading others are assumed effects
(`assumptions`), and an outcome with one of them says `is_exact=False`.

Two paths, held equal by a test: the runner that serves, and a direct one that is two orders faster.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from podium_core.domain.errors import invalid
from podium_core.domain.plan import MAX_STEPS, Step
from podium_core.orchestration.ports import Completion, Delta, Facts, Permitted, StepCall, WorkerEvent
from podium_train.environments.assumptions import SimulatedEffects
from podium_train.environments.performing import (
    Performer,
    Rounds,
    first_failure,
    scored_outcome,
    unscorable_outcome,
)
from podium_train.environments.port import Outcome, Task
from podium_train.environments.replay_run import ReplayRun, Said, answering
from podium_train.environments.two_paths import TwoPathEnvironment
from podium_train.outcomes.items import RecordedItem, RecordedSet

NOT_RECORDED = "NOT_RECORDED"
"""Why an outcome is unscorable: a worker that the plan uses has no recorded answer to this item."""


class ReplayEnvironment(TwoPathEnvironment):
    """Scores plans for tasks made of recorded items.

    A task that is not recorded is a PodiumError (DATA_MISSING). `max_steps` above a plan's limit serves
    baselines that ask a whole pool, on the direct path only.
    """

    def __init__(
        self,
        recorded: RecordedSet,
        *,
        effects: SimulatedEffects = SimulatedEffects(),  # noqa: B008 - frozen
        performer: Performer | None = None,
        max_steps: int = MAX_STEPS,
    ) -> None:
        super().__init__(performer)
        self._recorded = recorded
        self._max_steps = max_steps
        self._effects = effects

    def score_rounds(self, rounds: Rounds, task: Task, rollout: int = 0) -> Outcome:
        """Return the outcome of plans in rounds, directly; a later round without steps accepts the answer."""
        run = self._run(task, rounds, rollout)
        previous: Said | None = None
        count = 0
        for steps in rounds:
            if not run.is_recorded(steps):
                return unscorable_outcome(NOT_RECORDED)
            count += 1
            if not steps:
                break
            said = [
                run.say(steps, index, round_index=count - 1, previous=previous) for index in range(len(steps))
            ]
            previous = said[answering(said)]
        return _outcome(run, previous, count)

    async def score_by_runner(self, rounds: Rounds, task: Task, rollout: int = 0) -> Outcome:
        """Return the outcome of plans in rounds, performed by the runner that serves."""
        performer = self._runner()
        run = self._run(task, rounds, rollout)
        if not all(run.is_recorded(steps) for steps in _until_accepted(rounds)):
            return unscorable_outcome(NOT_RECORDED)
        workers = _RecordedWorkers(run, rounds)
        finished = await performer.perform(rounds, task, workers, workers)
        failure = first_failure(finished)
        if failure or finished.answer is None:
            return unscorable_outcome(failure)
        final = run.said[finished.answer.round, finished.answer.step_index]
        return _outcome(run, final, len(finished.rounds))

    def _run(self, task: Task, rounds: Rounds, rollout: int) -> ReplayRun:
        if not rounds or not rounds[0] or any(len(steps) > self._max_steps for steps in rounds):
            raise invalid(f"a first round needs a step, and no round may have more than {self._max_steps}")
        item = self._recorded.by_id.get(task.task_id)
        if item is None:
            raise invalid(f"nothing is recorded of the task {task.task_id!r}", reason="DATA_MISSING")
        return ReplayRun(item, task, rollout, self._effects)

    def item_of(self, task: Task) -> RecordedItem:
        """Return the recorded item that a task was made of."""
        return self._recorded.by_id[task.task_id]


def _until_accepted(rounds: Rounds) -> Iterator[Sequence[Step]]:
    for steps in rounds:
        yield steps
        if not steps:
            return


def _outcome(run: ReplayRun, final: Said | None, rounds: int) -> Outcome:
    said = [run.said[key] for key in sorted(run.said)]
    is_right = final is not None and final.answer is not None and final.answer.is_right
    return scored_outcome(
        is_right=is_right,
        steps=[one.performed for one in said],
        rounds=rounds,
        is_exact=all(one.is_exact for one in said),
    )


class _RecordedWorkers:
    """Workers of one rollout behind the runner's port, and the observer that tells when steps are over.

    The answering step waits for all others of its round, so that none is cut short by its end and every call
    is counted, whichever way the event loop turns.
    """

    def __init__(self, run: ReplayRun, rounds: Rounds) -> None:
        self._run = run
        self._rounds = rounds
        self._left = [len(steps) - 1 for steps in rounds]
        self._others_done = [asyncio.Event() for _ in rounds]
        self._previous: list[Said | None] = [None] * (len(rounds) + 1)

    async def complete(self, call: StepCall) -> AsyncGenerator[WorkerEvent, None]:
        """Yield the recorded answer of the call's step."""
        steps = self._rounds[call.round]
        if call.step_index == len(steps) - 1 and self._left[call.round]:
            await self._others_done[call.round].wait()
        previous = self._previous[call.round]
        said = self._run.say(steps, call.step_index, round_index=call.round, previous=previous)
        if call.step_index == len(steps) - 1:
            every = [self._run.said[call.round, index] for index in range(len(steps))]
            self._previous[call.round + 1] = every[answering(every)]
        done = said.performed
        yield Permitted(0)
        yield Completion("stop", done.usage, done.cost_usd_micros, done.latency_us, message=Delta(said.text))

    def span(self, stage: str, facts: Facts) -> AbstractContextManager[None]:
        """Return a context that counts a step off when it is over."""
        return self._watched(stage, facts)

    @contextmanager
    def _watched(self, stage: str, facts: Facts) -> Iterator[None]:
        yield
        if stage == "step":
            number = facts["round"]
            assert isinstance(number, int)
            self._left[number] -= 1
            if self._left[number] <= 0:
                self._others_done[number].set()
