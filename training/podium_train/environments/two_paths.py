"""What environments share that try a plan in two ways: directly, or performed by the runner that serves."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from podium_core.domain.errors import invalid
from podium_core.domain.plan import Step
from podium_core.domain.plan_format import PlanFormatError
from podium_core.domain.plan_prompt import PlanPrompt
from podium_train.environments.performing import Performer, Rounds, invalid_outcome, parsed
from podium_train.environments.port import Outcome, Task


class TwoPathEnvironment(ABC):
    """With a `performer`, `score` goes through the runner; without one it takes the direct path."""

    def __init__(self, performer: Performer | None) -> None:
        self._performer = performer

    async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
        """Return what became of `completion`, written for `prompt`."""
        try:
            steps = parsed(prompt, completion)
        except PlanFormatError as error:
            return invalid_outcome(error)
        if self._performer is None:
            return self.score_plan(steps, task)
        return await self.score_by_runner((steps,), task)

    def score_plan(self, steps: Sequence[Step], task: Task, rollout: int = 0) -> Outcome:
        """Return the outcome of one round's plan, directly. Other rollouts draw other samples."""
        return self.score_rounds((steps,), task, rollout)

    @abstractmethod
    def score_rounds(self, rounds: Rounds, task: Task, rollout: int = 0) -> Outcome:
        """Return the outcome of plans in rounds, directly; a later round without steps accepts the answer."""

    @abstractmethod
    async def score_by_runner(self, rounds: Rounds, task: Task, rollout: int = 0) -> Outcome:
        """Return the outcome of plans in rounds, performed by the runner that serves."""

    def _runner(self) -> Performer:
        """Return the performer; raise PodiumError when the environment was built without one."""
        if self._performer is None:
            raise invalid("this environment was built without a performer; give it one")
        return self._performer
