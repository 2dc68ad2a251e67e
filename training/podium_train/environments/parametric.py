"""The parametric environment: simulated workers with skills, for unseen items, unseen workers and stress.

Every outcome is simulated and says so (`is_exact` False). Two paths, held equal by a test: the runner that
serves, and a direct one. What is assumed stands in `assumptions`.
"""

from collections.abc import AsyncGenerator

from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.plan import MAX_STEPS
from podium_core.domain.pool import Worker
from podium_core.orchestration.ports import Completion, Delta, Permitted, StepCall, WorkerEvent
from podium_train.environments.assumptions import Assumptions
from podium_train.environments.parametric_run import RIGHT, AccuracyOf, ParametricRun, Said
from podium_train.environments.performing import (
    Performer,
    Rounds,
    scored_outcome,
    unscorable_outcome,
)
from podium_train.environments.port import Outcome, Task
from podium_train.environments.two_paths import TwoPathEnvironment

_PPM = 1_000_000
_PLAIN_LEVELS = frozenset({"easy", "standard", ""})
_CHANCE = 0.5
_CODE_OF_FAILURE = {"RATE_LIMITED": Code.RATE_LIMITED, "PROVIDER_FAILED": Code.PROVIDER_FAILED}


def accuracy_by_card(worker: Worker, task: Task) -> float:
    """Return the accuracy that a worker's card states for a task, 0..1.

    The finest skill that fits counts: family and level, family, category, else the card's mean; a half for a
    worker of which nothing is known.
    """
    family, category = (" ".join(name.replace("_", " ").split()) for name in (task.family, task.category))
    names = [] if task.difficulty in _PLAIN_LEVELS else [f"{family}, {task.difficulty}"]
    by_name = {skill.name: skill.accuracy_ppm for skill in worker.card.skills}
    for name in (*names, family, task.family, category, task.category):
        if name in by_name:
            return by_name[name] / _PPM
    return worker.card.mean_accuracy_ppm / _PPM if worker.card.skills else _CHANCE


class ParametricEnvironment(TwoPathEnvironment):
    """Scores plans over simulated workers. With a `performer`, `score` goes through the runner."""

    def __init__(
        self,
        *,
        seed: int,
        assumptions: Assumptions = Assumptions(),  # noqa: B008 - frozen
        accuracy_of: AccuracyOf = accuracy_by_card,
        performer: Performer | None = None,
    ) -> None:
        super().__init__(performer)
        self._seed = seed
        self._assumptions = assumptions
        self._accuracy_of = accuracy_of

    def score_rounds(self, rounds: Rounds, task: Task, rollout: int = 0) -> Outcome:
        """Return the outcome of plans in rounds, directly; a later round without steps accepts the answer."""
        run = self._run(task, rounds, rollout)
        done = _until_accepted(rounds)
        final: Said | None = None
        for index in range(len(done)):
            final = run.answer_of(done, index)
        return _outcome(run, final, len(rounds[: len(done) + 1]))

    async def score_by_runner(self, rounds: Rounds, task: Task, rollout: int = 0) -> Outcome:
        """Return the outcome of plans in rounds, performed by the runner that serves."""
        performer = self._runner()
        run = self._run(task, rounds, rollout)
        finished = await performer.perform(rounds, task, _SimulatedWorkers(run, rounds))
        if finished.answer is None:
            return _outcome(run, None, len(finished.rounds))
        final = run.said[finished.answer.round, finished.answer.step_index]
        return _outcome(run, final, len(finished.rounds))

    def _run(self, task: Task, rounds: Rounds, rollout: int) -> ParametricRun:
        if not rounds or not rounds[0] or any(len(steps) > MAX_STEPS for steps in rounds):
            raise invalid(f"a first round needs a step, and no round may have more than {MAX_STEPS}")
        known = {worker.worker_id for worker in task.workers}
        strangers = {step.worker_id for steps in rounds for step in steps} - known
        if strangers:
            raise invalid(f"the task's pool has no worker {min(strangers)!r}")
        return ParametricRun(task, self._assumptions, self._accuracy_of, self._seed, rollout)


class _SimulatedWorkers:
    """The workers of one rollout behind the runner's port."""

    def __init__(self, run: ParametricRun, rounds: Rounds) -> None:
        self._run = run
        self._rounds = rounds

    async def complete(self, call: StepCall) -> AsyncGenerator[WorkerEvent, None]:
        """Yield what the call's step says."""
        said = self._run.say(self._rounds, call.round, call.step_index)
        if call.step_index == len(self._rounds[call.round]) - 1:
            # Siblings that the answer does not wait for were still asked: they are counted, too.
            self._run.answer_of(self._rounds, call.round)
        if said.failure:
            raise PodiumError(
                _CODE_OF_FAILURE[said.failure], "the simulated worker failed", reason=said.failure
            )
        done = said.performed
        yield Permitted(0)
        yield Completion("stop", done.usage, done.cost_usd_micros, done.latency_us, message=Delta(said.text))


def _until_accepted(rounds: Rounds) -> Rounds:
    empty = next((index for index, steps in enumerate(rounds) if not steps), len(rounds))
    return rounds[:empty]


def _failure_in(run: ParametricRun) -> str:
    return next((run.said[key].failure for key in sorted(run.said) if run.said[key].failure), "")


def _outcome(run: ParametricRun, final: Said | None, rounds: int) -> Outcome:
    failure = _failure_in(run)
    if failure or final is None:
        return unscorable_outcome(failure or "NO_ANSWER")
    steps = [run.said[key].performed for key in sorted(run.said)]
    return scored_outcome(is_right=final.answer == RIGHT, steps=steps, rounds=rounds, is_exact=False)
