"""The demo environment: the demo provider's real specialists, in this process, on composite tasks.

`score_plan` does what the runner does with these workers, without its event loop; a test holds the two equal.
"""

from collections.abc import Callable, Sequence

from podium_core.domain.plan import Step
from podium_core.domain.plan_format import PlanFormatError
from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.domain.pool import Worker
from podium_core.domain.usage import Usage
from podium_demo.answer import SPECIALISTS, answer
from podium_demo.measure.grade import is_right
from podium_demo.measure.items import Item
from podium_demo.worker_prompt import Task as DemoTask
from podium_train.environments.composites import DemoItem
from podium_train.environments.performing import invalid_outcome, parsed
from podium_train.environments.port import Outcome, PerformedStep, Task, Verdict

_REWARD_WRONG, _REWARD_RIGHT = 0.5, 1.0
_CHARS_PER_TOKEN = 4


def no_cpu_ns() -> int:
    """Return 0: a CPU clock that stands still, as counted operations bound the work on any load."""
    return 0


class DemoEnvironment:
    """Performs plans with the demo specialists. The worker ids are those of the demo pool (`demo-text`)."""

    def __init__(self, cpu_ns: Callable[[], int] = no_cpu_ns) -> None:
        self._cpu_ns = cpu_ns
        self._answers: dict[tuple[str, str, tuple[str, ...]], str] = {}

    async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
        """Return what became of `completion`, written for `prompt`."""
        try:
            return self.score_plan(parsed(prompt, completion), task)
        except PlanFormatError as error:
            return invalid_outcome(error)

    def score_plan(self, steps: Sequence[Step], task: Task) -> Outcome:
        """Return what became of a plan: reward 1 for the right answer, else 0.5."""
        outputs: list[str] = []
        performed: list[PerformedStep] = []
        models = {worker.worker_id: worker.provider_model for worker in task.workers}
        for step in steps:
            seen = [outputs[index] for index in step.access.steps]
            given = self._answer(models[step.worker_id], step.subtask.strip() or task.question, seen)
            outputs.append(given)
            sent = len(task.question) + len(step.subtask) + sum(map(len, seen))
            usage = Usage(
                input_tokens=max(1, sent // _CHARS_PER_TOKEN),
                output_tokens=max(1, len(given) // _CHARS_PER_TOKEN),
            )
            performed.append(PerformedStep(step.worker_id, given, None, usage, 0, 0))
        right = is_right(Item(task.question, task.reference), outputs[-1].strip())
        reward = _REWARD_RIGHT if right else _REWARD_WRONG
        return Outcome(Verdict.SCORED, reward, right, steps=tuple(performed), rounds=1)

    def _answer(self, model: str, instruction: str, seen: Sequence[str]) -> str:
        results = tuple(text for text in seen if text)
        key = (model, instruction, results)
        if key not in self._answers:
            self._answers[key] = answer(SPECIALISTS[model], DemoTask(instruction, results), self._cpu_ns)
        return self._answers[key]


def demo_task(item: DemoItem, workers: Sequence[Worker]) -> Task:
    """Return a demo item as a task."""
    return Task(item.item_id, item.question, item.answer, item.family, item.kind, "", tuple(workers), 0)
