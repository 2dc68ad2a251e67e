"""The body is exact, recorded as it is sent, and holds only what it may."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import Price
from podium_router.body import _RESERVED, MAX_IMAGE_TOKENS, Body, BodyShape, build_body, max_cost_usd_micros
from podium_router.calls import Piece

SHAPE = BodyShape.of("gpt-9", max_completion_tokens=False)
HI = b'[{"role":"user","content":"hi"}]'


def build(
    messages: tuple[Piece, ...] | bytes = HI,
    parameters: bytes = b"",
    *,
    shape: BodyShape = SHAPE,
    stream: bool = False,
    max_bytes: int = 10_000,
) -> Body:
    pieces = (Piece("", messages),) if isinstance(messages, bytes) else messages
    return build_body(shape, pieces, parameters, max_output_tokens=64, stream=stream, max_bytes=max_bytes)


def test_a_plain_body() -> None:
    assert build().data == b'{"model":"gpt-9","messages":%b,"max_tokens":64}' % HI


def test_a_streamed_body_asks_for_usage() -> None:
    fields = json.loads(build(stream=True).data)
    assert fields["stream"] is True
    assert fields["stream_options"] == {"include_usage": True}


def test_the_token_limit_has_two_names() -> None:
    fields = json.loads(build(shape=BodyShape.of("o9", max_completion_tokens=True)).data)
    assert fields["max_completion_tokens"] == 64
    assert "max_tokens" not in fields


def test_model_names_are_json() -> None:
    assert (
        json.loads(build(shape=BodyShape.of('a"b\n', max_completion_tokens=False)).data)["model"] == 'a"b\n'
    )


def test_messages_are_never_decoded() -> None:
    odd = b'[ {"role":"user","content":"\\u0041\\/ \xe2\x82\xac", "n":1.50, "n":1.5} ]'
    assert odd in build(odd, b'{"temperature":0.70}').data
    assert b'"temperature":0.70' in build(odd, b'{"temperature":0.70}').data


# Hypothesis also tries words that it finds in the code, so the router's own fields must be left out.
own_names = st.text(max_size=5).filter(lambda name: name != "n" and name not in _RESERVED)


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "run/question", "a/output"]), st.binary(max_size=20)), max_size=8
    ),
    st.dictionaries(own_names, st.integers() | st.text(max_size=5), max_size=3),
    st.booleans(),
)
def test_pieces_join_to_the_body(
    parts: list[tuple[str, bytes]], parameters: dict[str, Any], stream: bool
) -> None:
    pieces = (Piece("", b"["), *[Piece(part_id, data) for part_id, data in parts], Piece("", b"]"))
    body = build(pieces, json.dumps(parameters).encode(), stream=stream)
    assert b"".join(piece.data for piece in body.pieces) == body.data
    assert hashlib.sha256(body.data).digest() == body.sha256
    named = [(piece.part_id, piece.data) for piece in body.pieces if piece.part_id]
    assert named == [part for part in parts if part[0]]
    neighbours = zip(body.pieces, body.pieces[1:], strict=False)
    assert all(first.part_id or second.part_id for first, second in neighbours)


@given(st.dictionaries(own_names, st.integers() | st.text(max_size=5), max_size=4))
def test_parameters_are_merged_as_they_are(parameters: dict[str, Any]) -> None:
    fields = json.loads(build(parameters=json.dumps(parameters, indent=1).encode()).data)
    assert fields == {"model": "gpt-9", "messages": json.loads(HI), "max_tokens": 64, **parameters}


@pytest.mark.parametrize(
    "parameters",
    [
        b"[]",
        b"7",
        b"null",
        b"{",
        b'{"a":1} {"b":2}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"model":"other"}',
        b'{"mod\\u0065l":"other"}',
        b'{"messages":[]}',
        b'{"stream":true}',
        b'{"stream_options":{}}',
        b'{"max_tokens":999999}',
        b'{"max_completion_tokens":999999}',
        b'{"n":2}',
        b"\xff{}",
        b"[" * 100_000,
    ],
)
def test_parameters_that_would_change_the_call_are_refused(parameters: bytes) -> None:
    with pytest.raises(PodiumError) as refused:
        build(parameters=parameters, max_bytes=1_000_000)
    assert refused.value.code is Code.INVALID_REQUEST
    assert refused.value.reason == "PARAMETERS_INVALID"


@pytest.mark.parametrize("messages", [b"", b"  ", b"{}", b'"x"', b"[", b"]", b'],"model":"other"'])
def test_messages_must_be_an_array(messages: bytes) -> None:
    with pytest.raises(PodiumError) as refused:
        build(messages)
    assert refused.value.reason == "MESSAGES_INVALID"


def test_no_messages_at_all_are_refused() -> None:
    with pytest.raises(PodiumError):
        build(())


def test_a_body_is_bounded() -> None:
    with pytest.raises(PodiumError) as refused:
        build(b"[" + b" " * 10_000 + b"]")
    assert refused.value.code is Code.TOO_LARGE


def cost(body: Body, price: Price | None, *, context_tokens: int = 0, takes_images: bool = False) -> int:
    return max_cost_usd_micros(
        body, price, max_output_tokens=64, context_tokens=context_tokens, takes_images=takes_images
    )


def test_the_most_a_call_can_cost_counts_a_token_a_byte() -> None:
    body = build()
    assert cost(body, Price(1_000_000, 2_000_000)) == len(body.data) + 2 * 64


def test_the_window_bounds_the_input() -> None:
    assert cost(build(), Price(1_000_000, 2_000_000), context_tokens=10) == 10 + 2 * 64


def test_images_by_address_are_reserved_for() -> None:
    image = b'[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a/b.png"}}]}]'
    talk = b'[{"role":"user","content":"say \\"image_url\\""}]'
    price = Price(1_000_000, 0)
    assert cost(build(image), price, takes_images=True) == len(build(image).data) + MAX_IMAGE_TOKENS
    assert cost(build(talk), price, takes_images=True) == len(build(talk).data)


def test_without_a_price_nothing_is_reserved() -> None:
    assert cost(build(), None) == 0
