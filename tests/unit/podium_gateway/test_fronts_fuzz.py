"""Whatever clients send on Responses and Messages is a request or a typed error; whatever workers say in
whatever pieces is told in well-formed events."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import RunOutcome
from podium_core.domain.usage import Usage
from podium_core.orchestration.events import RunFinished, StepResult
from podium_core.orchestration.ports import Delta, Receipt
from podium_gateway.codecs.anthropic_answer import MessageEncoder
from podium_gateway.codecs.anthropic_request import decode_messages_request
from podium_gateway.codecs.responses_answer import ResponseFrame, output_items
from podium_gateway.codecs.responses_events import ResponseEncoder
from podium_gateway.codecs.responses_request import decode_responses_request
from podium_gateway.codecs.strict_json import parse_object

_NAMES = (
    *("type", "role", "content", "text", "source", "data", "media_type", "url", "image_url", "name", "id"),
    *("tool_use_id", "call_id", "output", "input", "arguments", "input_schema", "format", "definition"),
    *("syntax", "effort", "summary", "mode", "tools", "schema", "user_id", "budget_tokens", "is_error"),
)
_WORDS = (
    *("podium", "worker/a", "user", "assistant", "developer", "text", "image", "base64", "tool_use"),
    *("tool_result", "thinking", "document", "message", "function_call", "custom_tool_call", "custom"),
    *("function_call_output", "reasoning", "input_text", "input_image", "function", "grammar", "lark"),
    *("json_schema", "auto", "any", "tool", "allowed_tools", "enabled", "high", "image/png", ""),
)
_FIELDS = (
    *("system", "max_tokens", "tools", "tool_choice", "thinking", "output_config", "metadata", "podium"),
    *("stop_sequences", "stream", "temperature", "instructions", "reasoning", "text", "include", "store"),
    *("truncation", "top_logprobs", "max_output_tokens", "stream_options", "client_metadata", "mystery"),
)
_TEXT = st.sampled_from(_WORDS) | st.text(max_size=8)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4),
    max_leaves=12,
)
_REQUEST = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["podium", "worker/a"]),
        "messages": st.lists(st.fixed_dictionaries({"role": _TEXT, "content": _VALUE}), max_size=3) | _VALUE,
    },
    optional=dict.fromkeys(_FIELDS, _VALUE),
)


def _decode_responses(body: bytes) -> object:
    return decode_responses_request(parse_object(body))


@pytest.mark.parametrize(
    ("decode", "name"), [(decode_messages_request, "messages"), (_decode_responses, "input")]
)
@settings(max_examples=120, deadline=None)
@given(fields=_REQUEST)
def test_a_request_or_a_typed_error(
    decode: Callable[[bytes], object], name: str, fields: dict[str, Any]
) -> None:
    asked = dict(fields)
    asked[name] = asked.pop("messages")
    refusal = _refusal(decode, json.dumps(asked).encode())
    assert refusal is None or (refusal.message and refusal.code in (Code.INVALID_REQUEST, Code.NOT_FOUND))


def _refusal(decode: Callable[[bytes], object], body: bytes) -> PodiumError | None:
    try:
        decode(body)
    except PodiumError as error:
        return error
    return None


def _piece(index: int, text: str, *, is_first: bool) -> dict[str, object]:
    head = {"id": f"call_{index}", "type": "function"} if is_first else {}
    name = {"name": f"tool_{index}"} if is_first else {}
    return {"index": index, **head, "function": {**name, "arguments": text}}


@st.composite
def _answers(draw: st.DrawFn) -> tuple[list[Delta], str, list[str]]:
    """Return deltas in any order, the text they hold, and the whole arguments of each call."""
    wholes = [
        json.dumps(draw(st.dictionaries(st.text(max_size=3), st.text(max_size=6), max_size=2)))
        for _ in range(draw(st.integers(0, 3)))
    ]
    queues: list[list[Delta]] = []
    for index, whole in enumerate(wholes):
        cut = draw(st.integers(0, len(whole)))
        parts = [whole[:cut], whole[cut:]]
        queues.append([Delta(tool_calls=(_piece(index, p, is_first=not n),)) for n, p in enumerate(parts)])
    words = draw(st.lists(st.text(min_size=1, max_size=4), max_size=3))
    queues.append([Delta(word) for word in words])
    queues.append(
        [Delta(reasoning=word) for word in draw(st.lists(st.text(min_size=1, max_size=4), max_size=2))]
    )
    deltas: list[Delta] = []
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        deltas.append(queue.pop(0))
    return deltas, "".join(words), wholes


def _finished() -> tuple[RunFinished, StepResult]:
    step = StepResult(0, 0, "alpha", True, "", "", (), "stop", (), 0, 1)
    finished = RunFinished(
        "run_1", RunOutcome.ANSWERED, step, (step,), Usage(), Usage(), 0, 1, Receipt("run_1", (1,), "note")
    )
    return finished, step


def _read(text: str) -> list[dict[str, Any]]:
    events = []
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


@settings(max_examples=80, deadline=None)
@given(answer=_answers())
def test_messages_blocks_come_one_after_the_other_and_lose_nothing(
    answer: tuple[list[Delta], str, list[str]],
) -> None:
    deltas, text, wholes = answer
    encoder = MessageEncoder("run_1", model="podium", shows_thinking=True)
    events = _read(encoder.start() + "".join(map(encoder.delta, deltas)) + encoder.finish(*_finished(), {}))
    blocks: list[tuple[str, str, str]] = []
    is_open = False
    for event in events:
        if event["type"] == "content_block_start":
            assert not is_open
            assert event["index"] == len(blocks)
            block = event["content_block"]
            blocks.append((block["type"], block.get("id", ""), ""))
            is_open = True
        elif event["type"] == "content_block_delta":
            assert is_open
            assert event["index"] == len(blocks) - 1
            kind, block_id, held = blocks[-1]
            more = next(v for k, v in event["delta"].items() if k != "type")
            blocks[-1] = (kind, block_id, held + more)
        elif event["type"] == "content_block_stop":
            is_open = False
    assert not is_open
    assert "".join(held for kind, _, held in blocks if kind == "text") == text
    told = {block_id: held for kind, block_id, held in blocks if kind == "tool_use"}
    assert told == {f"call_{index}": whole for index, whole in enumerate(wholes)}


@settings(max_examples=80, deadline=None)
@given(answer=_answers())
def test_responses_items_open_once_close_once_and_lose_nothing(
    answer: tuple[list[Delta], str, list[str]],
) -> None:
    deltas, text, wholes = answer
    encoder = ResponseEncoder(ResponseFrame("run_1", "podium", 1, {}, frozenset({"tool_1"})))
    events = _read(encoder.start() + "".join(map(encoder.delta, deltas)) + encoder.finish(*_finished(), {}))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    opened = [e["output_index"] for e in events if e["type"] == "response.output_item.added"]
    closed = [e["output_index"] for e in events if e["type"] == "response.output_item.done"]
    assert sorted(opened) == sorted(closed) == list(range(len(opened)))
    assert "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta") == text
    output = events[-1]["response"]["output"]
    calls = {item["call_id"]: item["arguments"] for item in output if item["type"] == "function_call"}
    assert calls == {f"call_{i}": whole for i, whole in enumerate(wholes) if i != 1}
    assert [item["id"] for item in output] == [
        e["item"]["id"]
        for e in sorted(events, key=lambda e: e.get("output_index", 0))
        if e["type"] == "response.output_item.done"
    ]


def test_a_refusal_is_said_where_the_answer_would_be() -> None:
    finished, step = _finished()
    refusing = replace(step, refusal="I cannot.", finish_reason="stop")
    message = MessageEncoder("run_1", model="podium", shows_thinking=True)
    told = _read(message.delta(Delta(refusal="I cannot.")) + message.finish(finished, refusing, {}))
    assert told[1]["delta"] == {"type": "text_delta", "text": "I cannot."}
    assert told[-2]["delta"]["stop_reason"] == "refusal"
    response = ResponseEncoder(ResponseFrame("run_1", "podium", 1, {}, frozenset()))
    events = _read(response.delta(Delta(refusal="I cannot.")) + response.finish(finished, refusing, {}))
    assert [event["type"].removeprefix("response.") for event in events[:-1]] == [
        "output_item.added",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
    ]
    (message_item,) = events[-1]["response"]["output"]
    assert message_item["content"] == [{"type": "refusal", "refusal": "I cannot."}]


def test_a_text_that_ends_in_a_refusal_loses_neither() -> None:
    finished, step = _finished()
    answer = replace(step, text="Well. ", refusal="No.")
    response = ResponseEncoder(ResponseFrame("run_1", "podium", 1, {}, frozenset()))
    told = response.delta(Delta("Well. ", refusal="No.")) + response.finish(finished, answer, {})
    parts = _read(told)[-1]["response"]["output"][0]["content"]
    assert [(part["type"], part.get("text") or part.get("refusal")) for part in parts] == [
        ("output_text", "Well. "),
        ("refusal", "No."),
    ]
    whole = output_items(ResponseFrame("run_1", "podium", 1, {}, frozenset()), answer, ())
    assert [part["type"] for part in whole[0]["content"]] == ["output_text", "refusal"]  # type: ignore[attr-defined]
