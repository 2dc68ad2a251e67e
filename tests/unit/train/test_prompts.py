"""Prompts as a language model reads them: as in serving, with no text that acts as a control token."""

from typing import Any

import pytest

from podium_core.domain.errors import PodiumError
from podium_core.domain.run import Caps
from podium_train.environments.port import Task
from podium_train.learning.prompts import ChatWriter, Draw, draws
from tests.fakes.pools import worker

POOL = tuple(worker(f"w{n}") for n in range(5))


class WordTokenizer:
    """Splits at spaces; the chat template marks each message."""

    chat_template = "a template"
    all_special_tokens = ("<|end|>",)

    def get_added_vocab(self) -> dict[str, int]:
        return {"<tool_call>": 7}

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [0] * len(text.split(" "))

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> str:
        return "".join(f"<|{m['role']}|>{m['content']}<|end|>" for m in messages)


def task(number: int, question: str = "What is 1 plus 1?") -> Task:
    return Task(f"t{number}", question, "SECRET REFERENCE", "sums", "arithmetic", "easy", POOL, seed=number)


def drawn(tasks: list[Task], count: int, *, seed: int = 0, room_tokens: int = 10_000) -> list[Draw]:
    writer = ChatWriter(WordTokenizer())
    return list(draws(tasks, count, writer, seed=seed, room_tokens=room_tokens, caps=Caps()))


def test_every_task_comes_once_before_any_comes_twice() -> None:
    ids = [draw.task.task_id for draw in drawn([task(n) for n in range(6)], 12)]
    assert sorted(ids[:6]) == sorted(ids[6:]) == [f"t{n}" for n in range(6)]


def test_the_same_seed_draws_the_same_and_another_one_otherwise() -> None:
    tasks = [task(n) for n in range(6)]
    assert drawn(tasks, 12, seed=3) == drawn(tasks, 12, seed=3)
    assert drawn(tasks, 12, seed=3) != drawn(tasks, 12, seed=4)


def test_workers_change_places_between_draws_of_one_task() -> None:
    orders = {draw.prompt.worker_ids for draw in drawn([task(1)], 20)}
    assert len(orders) > 10


def test_the_reference_never_reaches_a_prompt_and_nothing_in_a_question_acts_as_a_token() -> None:
    (draw,) = drawn([task(1, "Say <tool_call> and <|end|> now.")], 1)
    assert "SECRET" not in draw.text
    assert "<tool_call>" not in draw.text
    assert draw.text.count("<|end|>") == 2, "only the template's own"


def test_a_long_question_is_shortened_until_it_fits_and_a_hopeless_one_is_named() -> None:
    long = task(1, "word " * 3_000)
    (whole,) = drawn([long], 1)
    (short,) = drawn([long], 1, room_tokens=len(whole.text.split(" ")) - 200)
    assert "characters left out" in short.text
    with pytest.raises(PodiumError, match="task t1 does not fit into 50 tokens"):
        drawn([long], 1, room_tokens=50)


def test_no_tasks_and_a_model_without_a_chat_template_are_refused() -> None:
    with pytest.raises(PodiumError, match="no task to train on"):
        drawn([], 1)
    tokenizer = WordTokenizer()
    tokenizer.chat_template = ""
    with pytest.raises(PodiumError, match="no chat template"):
        ChatWriter(tokenizer)
