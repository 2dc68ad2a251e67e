"""From tasks to prompts as a language model reads them: the same text that the serving engine gives it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from podium_core.domain.errors import invalid
from podium_core.domain.plan import Plan
from podium_core.domain.plan_prompt import MAX_QUESTION_CHARS, PlanPrompt, build_prompt
from podium_core.domain.plan_transcript import broken_up
from podium_core.domain.run import Caps, Message, Question
from podium_train.environments.port import Task

_MIN_QUESTION_CHARS = 500
_SEEDS = 2**32


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a second round's prompt tells of the first: its plan, and the answer it led to."""

    plan: Plan
    answer: str


@dataclass(frozen=True, slots=True)
class Draw:
    """One group's beginning: a task, its prompt with this draw's order of workers, and the prompt's text.

    With `earlier` it asks for a second round.
    """

    task: Task
    prompt: PlanPrompt
    text: str
    earlier: Earlier | None = None


FirstRound = Callable[[Task, Random], Earlier | None]
"""Tries a first plan; None where that was not possible."""


class ChatWriter:
    """Writes prompts with a tokenizer's chat template, as `podium_conductor.engines.vllm` does when serving.

    `tokenizer` is one of transformers. Raises PodiumError INVALID_REQUEST when it has no chat template.
    """

    def __init__(self, tokenizer: Any) -> None:
        if not tokenizer.chat_template:
            raise invalid("the model's tokenizer has no chat template; take an instruction-tuned model")
        self._tokenizer = tokenizer
        added = {str(token) for token in tokenizer.get_added_vocab()}
        self._special = tuple(added | set(tokenizer.all_special_tokens))

    def text(self, prompt: PlanPrompt) -> str:
        """Return the chat and the beginning of the reply. Nothing within it acts as a special token."""
        messages = [
            {"role": "system", "content": broken_up(prompt.system, self._special)},
            {"role": "user", "content": broken_up(prompt.user, self._special)},
        ]
        chat = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        return f"{chat}{prompt.prefill}"

    def token_count(self, text: str) -> int:
        """Return how many tokens the model reads for `text`."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))


def draws(
    tasks: Sequence[Task],
    count: int,
    writer: ChatWriter,
    *,
    seed: int,
    room_tokens: int,
    caps: Caps,
    free_reasoning: bool = True,
    first_round: FirstRound | None = None,
    later_share: float = 0.0,
) -> Iterator[Draw]:
    """Yield `count` draws: every task once in a random order, then again in another, with new worker orders.

    `later_share` of them, 0 to 1, ask for a second round after what `first_round` tried.

    Raises PodiumError INVALID_REQUEST when there is no task, or one cannot fit into `room_tokens`.
    """
    if not tasks:
        raise invalid("there is no task to train on")
    random = Random(seed)  # noqa: S311 - drawing training tasks is no secret
    waiting: list[Task] = []
    for _ in range(count):
        if not waiting:
            waiting = random.sample(list(tasks), len(tasks))
        task = waiting.pop()
        is_later = first_round is not None and random.random() < later_share
        earlier = first_round(task, random) if first_round is not None and is_later else None
        order_seed = random.randrange(_SEEDS)
        yield _fitting(task, order_seed, writer, room_tokens, caps, earlier, free_reasoning=free_reasoning)


def _fitting(
    task: Task,
    seed: int,
    writer: ChatWriter,
    room_tokens: int,
    caps: Caps,
    earlier: Earlier | None,
    *,
    free_reasoning: bool,
) -> Draw:
    """Return the draw, its question shortened by the prompt's own rule until it fits, as when serving."""
    message = Message("user", task.question, {"role": "user", "content": task.question})
    chars = MAX_QUESTION_CHARS
    while chars >= _MIN_QUESTION_CHARS:
        prompt = build_prompt(
            Question((message,)),
            task.workers,
            caps,
            seed=seed,
            round_index=0 if earlier is None else 1,
            previous_plan=None if earlier is None else earlier.plan,
            previous_answer="" if earlier is None else earlier.answer,
            max_question_chars=chars,
            free_reasoning=free_reasoning,
        )
        text = writer.text(prompt)
        if writer.token_count(text) <= room_tokens:
            return Draw(task, prompt, text, earlier)
        chars //= 2
    raise invalid(f"the prompt of task {task.task_id} does not fit into {room_tokens} tokens")
