"""Baselines that ask one worker: each worker, routers, the oracle."""

from dataclasses import dataclass

from podium_core.domain.plan import Step
from podium_train.baselines.scorers import Scorer, chosen
from podium_train.environments.port import Outcome, Task, Verdict
from podium_train.evaluation.results import Answered, answered
from podium_train.evaluation.systems import PEEKS, WORKER, Trial


@dataclass(frozen=True, slots=True)
class OneWorker:
    """One worker answers everything. Where it is not in the pool, the item cannot be scored."""

    worker_id: str
    trial: Trial
    marks: tuple[str, ...] = (WORKER,)

    @property
    def name(self) -> str:
        """The worker's id."""
        return self.worker_id

    async def answer(self, task: Task, run: int) -> Answered:  # noqa: ARG002 - every run is the same
        """Ask the worker."""
        if all(worker.worker_id != self.worker_id for worker in task.workers):
            return answered(task, Outcome(Verdict.UNSCORABLE, None, reason="NOT_IN_POOL"))
        return answered(task, await alone(self.trial, self.worker_id, task))


@dataclass(frozen=True, slots=True)
class Routed:
    """A router picks one worker for each task."""

    name: str
    scorer: Scorer
    trial: Trial
    marks: tuple[str, ...] = ()

    async def answer(self, task: Task, run: int) -> Answered:  # noqa: ARG002 - every run is the same
        """Ask the worker with the highest score."""
        return answered(task, await alone(self.trial, chosen(self.scorer, task), task))


@dataclass(frozen=True, slots=True)
class Oracle:
    """The upper bound of routing: some worker of the pool is right. Only the worker it takes is charged."""

    scorer: Scorer
    trial: Trial
    name: str = "oracle"
    marks: tuple[str, ...] = (PEEKS,)

    async def answer(self, task: Task, run: int) -> Answered:  # noqa: ARG002 - every run is the same
        """Try all workers, best guess first, and keep the first that is right."""
        scores = self.scorer.scores(task)
        outcomes = [
            await alone(self.trial, worker, task)
            for worker in sorted(scores, key=lambda worker: (-scores[worker], worker))
        ]
        return answered(task, next((outcome for outcome in outcomes if outcome.is_right), outcomes[0]))


async def alone(trial: Trial, worker_id: str, task: Task) -> Outcome:
    """Return what becomes of the question when one worker gets it unchanged."""
    return await trial.perform([[Step(worker_id, "")]], task)


def ranked(scorer: Scorer, task: Task) -> list[str]:
    """Return the pool from the highest score to the lowest; the id decides ties."""
    scores = scorer.scores(task)
    return sorted(scores, key=lambda worker: (-scores[worker], worker))
