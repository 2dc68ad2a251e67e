"""Answers of many providers' making, whole and streamed, come out alike."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.usage import UsageSource
from podium_router.answer import Answer, ProviderErrorEventError
from podium_router.calls import Delta
from podium_router.vectors import BadAnswerError
from tests.fakes.upstream import USAGE, chunk


def streamed(*chunks: object) -> tuple[Answer, list[Delta]]:
    answer = Answer()
    deltas = [delta for item in chunks if (delta := answer.take_chunk(item)) is not None]
    answer.close()
    return answer, deltas


def whole(message: object, finish: str | None = "stop", **fields: Any) -> Answer:
    answer = Answer()
    answer.take_message({"choices": [{"index": 0, "message": message, "finish_reason": finish}], **fields})
    answer.close()
    return answer


def call_delta(index: int | None, arguments: str = "", **first: str) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": arguments}
    if "name" in first:
        function["name"] = first["name"]
    item: dict[str, Any] = {"function": function}
    if index is not None:
        item["index"] = index
    if "id" in first:
        item |= {"id": first["id"], "type": "function"}
    return item


def test_text_gathers_in_order() -> None:
    answer, deltas = streamed(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}, "stop"),
    )
    assert answer.text == "Hello"
    assert [delta.text for delta in deltas] == ["Hel", "lo"]
    assert answer.finish_reason == "stop"
    assert (answer.response_id, answer.served_model) == ("chatcmpl-1", "served-model")


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": []},
        {"choices": None},
        {},
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        chunk(None),
        {"choices": [{"index": 0, "finish_reason": None}]},
        chunk({"content": None, "tool_calls": None}),
        {"choices": [{"index": 1, "delta": {"content": "the other choice"}}]},
        {"choices": [], "usage": None},
        chunk({"content": 7}),
    ],
)
def test_chunks_that_say_nothing_change_nothing(odd: dict[str, Any]) -> None:
    answer, deltas = streamed(odd, chunk({"content": "x"}), odd, chunk({}, "stop"), odd)
    assert answer.text == "x"
    assert len(deltas) == 1


def test_usage_comes_in_a_chunk_of_its_own() -> None:
    answer, _ = streamed(chunk({"content": "x"}, "stop"), {"choices": [], "usage": USAGE})
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.source) == (12, UsageSource.PROVIDER)


def test_interleaved_tool_calls_keep_their_indices() -> None:
    answer, deltas = streamed(
        chunk({"tool_calls": [call_delta(0, id="a", name="f"), call_delta(1, id="b", name="g")]}),
        *[
            chunk({"tool_calls": [call_delta(i, piece)]})
            for i, piece in ((0, '{"x"'), (1, '{"y"'), (0, ":1}"), (1, ":2}"))
        ],
        chunk({}, "stop"),
    )
    assert answer.tool_calls == (
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": '{"y":2}'}},
    )
    assert [item["index"] for delta in deltas for item in delta.tool_calls] == [0, 1, 0, 1, 0, 1]
    assert answer.finish_reason == "tool_calls", "even where the provider says stop"


def test_missing_indices_are_found_from_the_ids() -> None:
    answer, deltas = streamed(
        chunk({"tool_calls": [call_delta(None, "{", id="a", name="f")]}),
        chunk({"tool_calls": [call_delta(None, "}")]}),
        chunk({"tool_calls": [call_delta(None, "[", id="b", name="g")]}),
        chunk({"tool_calls": [call_delta(None, "]")]}),
        chunk({}, "tool_calls"),
    )
    assert [call["function"] for call in answer.tool_calls] == [
        {"name": "f", "arguments": "{}"},
        {"name": "g", "arguments": "[]"},
    ]
    assert [item["index"] for delta in deltas for item in delta.tool_calls] == [0, 0, 1, 1]


def test_whole_and_streamed_tool_calls_agree() -> None:
    calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    plain = whole({"content": None, "tool_calls": calls}, "tool_calls")
    streaming, _ = streamed(chunk({"tool_calls": [{"index": 0, **calls[0]}]}), chunk({}, "stop"))
    assert plain.tool_calls == streaming.tool_calls == tuple(calls)
    assert plain.finish_reason == streaming.finish_reason == "tool_calls"
    assert json.loads(plain.message_json()) == {"role": "assistant", "content": None, "tool_calls": calls}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_has_two_names(field: str) -> None:
    answer, deltas = streamed(chunk({field: "hmm"}), chunk({"content": "x"}, "stop"))
    assert (answer.reasoning, answer.text) == ("hmm", "x")
    assert deltas[0] == Delta(reasoning="hmm")


def test_content_may_come_in_parts() -> None:
    assert (
        whole({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}, 7]}).text == "ab"
    )


def test_a_refusal_is_kept_apart_from_text() -> None:
    answer = whole({"content": None, "refusal": "No."})
    assert (answer.text, answer.refusal, answer.is_empty) == ("", "No.", False)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("<secret>", "stop"),
    ],
)
def test_finish_reasons_are_openais_words(said: str, meant: str) -> None:
    assert whole({"content": "x"}, said).finish_reason == meant


@pytest.mark.parametrize("body", [None, [], "x", 7, {}, {"choices": []}, {"choices": [7]}, {"choices": [{}]}])
def test_a_body_that_is_no_answer_is_refused(body: object) -> None:
    with pytest.raises(BadAnswerError):
        Answer().take_message(body)


@pytest.mark.parametrize("fields", [{"error": {"message": "x"}}, {"error": "x"}, chunk({}, "error")])
def test_an_error_inside_an_answer_is_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ProviderErrorEventError):
        Answer().take_chunk(fields)


@pytest.mark.parametrize("index", [-1, 128, "0", 1.5, True, [0]])
def test_tool_call_indices_are_bounded(index: object) -> None:
    with pytest.raises(BadAnswerError):
        Answer().take_chunk(chunk({"tool_calls": [{"index": index, "function": {"arguments": "x"}}]}))


@pytest.mark.parametrize("name", ["x" * 129, "line\nbreak", "naïve", 7, None])
def test_names_are_short_printable_words(name: object) -> None:
    answer, _ = streamed({**chunk({"content": "x"}), "id": name, "model": name})
    assert (answer.response_id, answer.served_model) == ("", "")


def test_characters_cut_into_surrogate_halves_are_joined() -> None:
    escaped = json.dumps("a😀b")
    first, second = escaped[1:8], escaped[8:-1]
    halves = [json.loads(f'"{half}"') for half in (first, second)]
    answer, deltas = streamed(*[chunk({"content": half}) for half in halves], chunk({}, "stop"))
    assert answer.text == "a😀b"
    assert [delta.text for delta in deltas] == ["a", "😀b"]


def test_a_lone_surrogate_cannot_break_the_wire() -> None:
    answer, deltas = streamed(
        chunk({"content": "\udc00x"}), chunk({"content": "\ud800"}), chunk({"content": "y"}, "stop")
    )
    assert [delta.text.encode() for delta in deltas]
    assert answer.text.endswith("y")
    assert "x" in answer.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "tool_calls",
                    "index",
                    "id",
                    "function",
                    "arguments",
                    "name",
                    "usage",
                    "error",
                    "finish_reason",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=5))
def test_no_chunk_breaks_it_with_another_error(chunks: list[object]) -> None:
    answer = Answer()
    for item in chunks:
        try:
            answer.take_chunk({"choices": [item]} if isinstance(item, dict) else item)
            answer.take_chunk({"choices": [{"delta": item}]})
            answer.take_message({"choices": [{"message": item}]})
        except (BadAnswerError, ProviderErrorEventError):
            continue
    answer.close()
    answer.message_json()
    assert answer.output_bytes >= 0


def test_tool_call_deltas_keep_only_what_has_the_right_type() -> None:
    _, deltas = streamed(
        chunk({"tool_calls": [{"index": 0, "id": ["x"], "type": {"a": 1}, "function": ["f"], "extra": 1}]}),
        chunk({"tool_calls": [{"index": 0, "id": {"a": 1}, "function": {"name": 7, "arguments": [1]}}]}),
    )
    assert [delta.tool_calls for delta in deltas] == [({"index": 0},), ({"index": 0, "function": {}},)]


def test_a_character_cut_in_two_by_tool_call_deltas_is_whole_again() -> None:
    answer, deltas = streamed(
        chunk({"tool_calls": [call_delta(0, '"\ud834', id="a", name="f")]}),
        chunk({"tool_calls": [call_delta(0, '\udd1e"')]}),
        chunk({"tool_calls": [call_delta(0, "\ud834")]}),
    )
    pieces = [item["function"]["arguments"] for delta in deltas for item in delta.tool_calls]  # type: ignore[index]
    assert pieces == ['"', '\U0001d11e"', ""]
    assert answer.tool_calls[0]["function"] == {"name": "f", "arguments": '"\U0001d11e"'}
