"""Requests are read strictly, replies are written in OpenAI's shape, faults are described exactly."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_demo.answer import SPECIALISTS
from podium_demo.api_errors import ApiError
from podium_demo.chat_request import decode_body, read_request
from podium_demo.chat_response import Reply, reply_to, stream_events
from podium_demo.faults import Faults
from podium_demo.tokens import count_tokens, deltas_of, first_tokens

BODY: dict[str, object] = {"model": "demo-text", "messages": [{"role": "user", "content": "uppercase abc"}]}


def chat(text: str, **fields: object) -> Reply:
    return reply_to(read_request(BODY | fields), text, "chatcmpl-1", 7)


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"model": "gpt-9"}, 404, "model"),
        ({"model": 3}, 400, "model"),
        ({"messages": []}, 400, "messages"),
        ({"messages": ["hi"]}, 400, "messages[0]"),
        ({"messages": [{"role": "king", "content": "hi"}]}, 400, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, 400, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            400,
            "messages[0].content[0]",
        ),
        ({"stream": "yes"}, 400, "stream"),
        ({"n": 2}, 400, "n"),
        ({"tools": [{"type": "function"}]}, 400, "tools"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"stop": ["a"] * 5}, 400, "stop"),
    ],
)
def test_refusals_name_the_field(fields: dict[str, object], status: int, param: str) -> None:
    with pytest.raises(ApiError) as caught:
        read_request(BODY | fields)
    assert (caught.value.status, caught.value.param) == (status, param)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 100_000, b""])
def test_bodies_that_are_no_object_are_refused(body: bytes) -> None:
    with pytest.raises(ApiError, match="JSON"):
        decode_body(body)


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "uppercase"}, {"type": "text", "text": "abc"}]
    request = read_request(BODY | {"messages": [{"role": "user", "content": parts}]})
    assert request.messages == (("user", "uppercase\nabc"),)


def test_limits_and_stops_are_kept() -> None:
    assert (chat("one two three", max_tokens=2).text, chat("one two three", max_tokens=2).finish_reason) == (
        "one two ",
        "length",
    )
    assert chat("one two three", stop=[" two"]).text == "one"
    assert chat("one two three").finish_reason == "stop"


def test_usage_is_counted_by_the_stated_tokenizer() -> None:
    reply = chat("ABC")
    assert reply.usage["prompt_tokens"] == 3 + count_tokens("uppercase abc")
    assert reply.usage["completion_tokens"] == 1
    assert reply.usage["total_tokens"] == reply.prompt_tokens + reply.completion_tokens


def test_a_stream_has_role_words_finish_usage_and_done() -> None:
    events, lead = stream_events(chat("ABC DEF"), include_usage=True)
    assert events[-1] == b"data: [DONE]\n\n"
    chunks = [json.loads(event.removeprefix(b"data: ")) for event in events[:-1]]
    assert all(chunk["system_fingerprint"] == "demo" for chunk in chunks)
    assert [chunk["choices"][0]["delta"] for chunk in chunks[:-1]] == [
        {"role": "assistant", "content": ""},
        {"content": "ABC"},
        {"content": " DEF"},
        {},
    ]
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]) == ([], 2)
    assert lead == 1
    assert b"usage" not in b"".join(stream_events(chat("ABC"), include_usage=False)[0])


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 40))
def test_deltas_and_limits_lose_nothing(text: str, limit: int) -> None:
    assert "".join(deltas_of(text)) == text
    kept = first_tokens(text, limit)
    assert text.startswith(kept)
    assert count_tokens(kept) <= limit


def test_every_specialist_is_served() -> None:
    for model in SPECIALISTS:
        assert read_request(BODY | {"model": model}).specialist.model == model


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "*", "kind": "explode"}, "kind"),
        ({"model": "gpt-9", "kind": "delay"}, "model"),
        ({"model": "*", "kind": "delay", "status": 500}, "status"),
        ({"model": "*", "kind": "status", "status": 200}, "status"),
        ({"model": "*", "kind": "delay", "seconds": -1}, "seconds"),
        ({"model": "*", "kind": "split", "chunk_bytes": 0}, "chunk_bytes"),
        ({"model": "*", "kind": "cut", "count": 0}, "count"),
    ],
)
def test_faults_are_refused_by_field(body: dict[str, object], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        Faults().add(body)
    assert caught.value.param == param


def test_faults_are_used_up_in_order_by_their_model() -> None:
    faults = Faults()
    faults.add({"model": "demo-text", "kind": "status", "count": 2})
    faults.add({"model": "*", "kind": "delay"})
    taken = [faults.take(model) for model in ("demo-dates", "demo-text", "demo-text", "demo-text")]
    assert [fault.kind if fault else None for fault in taken] == ["delay", "status", "status", None]
