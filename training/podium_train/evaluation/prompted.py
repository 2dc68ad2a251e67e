"""Any language model as a Conductor, trained or not: the serving prompt in, its reply out."""

from dataclasses import dataclass
from typing import Protocol

from podium_core.domain.plan_prompt import PlanPrompt, build_prompt
from podium_core.domain.run import Message, Question
from podium_core.domain.usage import Usage
from podium_train.evaluation.systems import PlanQuestion, WrittenPlan


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote after the prompt's prefill, and what that took."""

    text: str
    usage: Usage
    cost_usd_micros: int = 0


class TextModel(Protocol):
    """A language model that goes on with a prompt: a worker, a checkpoint, a fake."""

    async def reply(self, prompt: PlanPrompt, seed: int) -> Reply:
        """Return what comes after the prefill; with the same seed the same text, where the model can."""
        ...


@dataclass(frozen=True, slots=True)
class PromptedWriter:
    """A Conductor by prompt alone."""

    model: TextModel

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        """Return the model's reply as plan text, prefill included."""
        message = Message("user", asked.question, {"role": "user", "content": asked.question})
        prompt = build_prompt(
            Question((message,)),
            asked.workers,
            asked.caps,
            seed=asked.seed,
            round_index=asked.round,
            previous_plan=asked.previous_plan,
            previous_answer=asked.previous_answer,
        )
        reply = await self.model.reply(prompt, asked.seed)
        return WrittenPlan(prompt.prefill + reply.text, prompt.worker_ids, reply.usage, reply.cost_usd_micros)
