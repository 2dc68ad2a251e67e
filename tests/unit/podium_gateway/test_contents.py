"""Prompts as segments: joined they are the messages array, and what audit holds is only named."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.run import Message, Question
from podium_core.orchestration.histories import VisibleStep, compose
from podium_core.orchestration.ports import PromptPiece, StepPrompt
from podium_gateway.adapters.contents import HeldContents, render

_TEXT = st.text(st.characters(codec="utf-8"), max_size=30)


def _message(role: str, content: object, **more: object) -> Message:
    text = content if isinstance(content, str) else "see"
    return Message(role, text, {"role": role, "content": content, **more})


def _joined(prompt: StepPrompt, held: HeldContents | None) -> Any:
    return json.loads(b"".join(segment.data for segment in render(prompt, held)))


@given(st.lists(_TEXT, max_size=3), _TEXT, _TEXT, st.lists(_TEXT, max_size=2))
def test_segments_join_to_exact_json_and_held_parts_repeat_what_is_held(
    earlier: list[str], asked: str, subtask: str, responses: list[str]
) -> None:
    question = Question(
        (*(_message("assistant", text) for text in earlier), _message("user", asked, name="ann"))
    )
    held = HeldContents.of(question)
    visible = [VisibleStep(index, subtask, text) for index, text in enumerate(responses)]
    prompt = compose(question, subtask, visible, None, iter(f"tag{i}" for i in range(99)).__next__)
    expected_text = "".join(piece.text for piece in prompt.pieces) if prompt.pieces else asked
    expected = [dict(m.fields) for m in question.history] + [
        {"role": "user", "content": expected_text, "name": "ann"}
    ]
    assert _joined(prompt, held) == expected
    assert _joined(prompt, None) == expected
    by_id = {segment.part_id: segment.data for segment in render(prompt, held) if segment.part_id}
    assert by_id == dict(held.parts)
    assert not [segment for segment in render(prompt, None) if segment.part_id]


def test_neighbouring_new_bytes_are_one_segment() -> None:
    question = Question((_message("system", "be brief"), _message("user", "hi")))
    held = HeldContents.of(question)
    names = [segment.part_id for segment in render(StepPrompt(question.history, question.last), held)]
    assert names == ["", "history", "", "question", ""]


def test_parts_keep_their_place_when_text_is_replaced() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:x"}}
    content = [image, {"type": "text", "text": "see"}, {"type": "text", "text": "this"}]
    question = Question((_message("user", content),))
    held = HeldContents.of(question)
    assert json.loads(held.question) == {"role": "user", "content": content}
    unchanged = StepPrompt((), question.last)
    assert [segment.part_id for segment in render(unchanged, held)] == ["", "question", ""]
    assert _joined(unchanged, held) == [{"role": "user", "content": content}]
    replaced = StepPrompt((), question.last, (PromptPiece("do "), PromptPiece("see", is_question=True)))
    assert _joined(replaced, held) == [
        {"role": "user", "content": [image, {"type": "text", "text": "do see"}]}
    ]


def test_a_message_of_images_only_gets_the_text_before_them() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:x"}}
    question = Question((Message("user", "", {"role": "user", "content": [image]}),))
    prompt = StepPrompt((), question.last, (PromptPiece("do"),))
    assert _joined(prompt, None) == [{"role": "user", "content": [{"type": "text", "text": "do"}, image]}]


def test_an_empty_question_is_not_held() -> None:
    question = Question((_message("user", ""),))
    held = HeldContents.of(question)
    assert held.parts == ()
    assert _joined(StepPrompt((), question.last), held) == [{"role": "user", "content": ""}]


def test_a_prompt_with_other_words_is_not_taken_for_the_held_one() -> None:
    held = HeldContents.of(Question((_message("user", "one"),)))
    other = StepPrompt((), _message("user", "two"))
    assert not [segment for segment in render(other, held) if segment.part_id]
