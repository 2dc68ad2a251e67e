"""JSON from strangers: whatever is ambiguous is refused, and the refusal says where."""

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.errors import Code, PodiumError
from podium_gateway.codecs.strict_json import MAX_DEPTH, MAX_VALUES, parse_object
from tests.fakes.waiting import SOON_S

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), children, max_size=4)
    ),
    max_leaves=20,
)


def _refusal(body: bytes) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        parse_object(body)
    assert caught.value.code is Code.INVALID_REQUEST
    return caught.value


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), _JSON, max_size=4), st.booleans())
def test_every_honest_object_comes_back_equal(value: dict[str, object], ensure_ascii: bool) -> None:
    assert parse_object(json.dumps(value, ensure_ascii=ensure_ascii).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_give_an_object_or_the_typed_error(body: bytes) -> None:
    with suppress(PodiumError):
        assert isinstance(parse_object(body), dict)


def test_malformed_json_names_line_and_column() -> None:
    assert "line 2 column 7" in _refusal(b'{"a": 1,\n "b": }').message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"[]", "must be a JSON object"),
        (b"", "malformed JSON"),
        (b'{"a": 1} x', "malformed JSON"),
        (b'{"model": "a", "model": "b"}', 'the key "model" occurs twice'),
        (b'{"x": {"y": 1, "y": 1}}', 'the key "y" occurs twice'),
        (b'{"x": NaN}', "NaN is not JSON"),
        (b'{"x": -Infinity}', "-Infinity is not JSON"),
        (b'{"x": 1e999}', "too large"),
        (b'{"x": 123456789012345678901234567890}', "too many digits"),
        (b'{"x": "\\ud800"}', "half of a surrogate pair"),
        (b'{"\\udfff": 1}', "half of a surrogate pair"),
        (b'{"x": "\xff"}', "not UTF-8: byte 7"),
        ("\ufeff{}".encode(), "byte order mark"),
    ],
)
def test_ambiguous_bodies_are_refused(body: bytes, says: str) -> None:
    assert says in _refusal(body).message


def test_whole_surrogate_pairs_are_fine() -> None:
    assert parse_object(b'{"x": "\\ud83d\\ude00"}') == {"x": "\U0001f600"}


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 100_000])
def test_nesting_is_bounded(opening: bytes, levels: int) -> None:
    closing = b"]" if opening == b"[" else b"}"
    inner = b"" if opening == b"[" else b"1"
    body = b'{"x":' + opening * levels + inner + closing * levels + b"}"
    assert _refusal(body).reason == "TOO_DEEP"


def test_many_shallow_objects_are_not_deep() -> None:
    messages = [{"role": "user", "content": "x"}] * 1_000
    assert parse_object(json.dumps({"messages": messages}).encode()) == {"messages": messages}


@pytest.mark.parametrize("elements", [b"[],", b"1,", b'{"a":0},', b'"",'])
def test_values_are_counted_before_they_are_made(elements: bytes) -> None:
    body = b'{"x":[' + elements * MAX_VALUES + b"0]}"
    assert _refusal(body).reason == "TOO_MANY_VALUES"


def test_punctuation_in_long_texts_counts_for_nothing() -> None:
    text = '{"a": [1, 2]}, "\\ ' * MAX_VALUES
    assert parse_object(json.dumps({"x": text}).encode()) == {"x": text}


def test_hostile_bodies_take_no_longer_than_their_length_asks_for() -> None:
    many_keys = ",".join(f'"k{number}":0' for number in range(150_000)) + ',"k149999":0'
    bodies = {
        "DUPLICATE_KEY": b"{" + many_keys.encode() + b"}",
        "TOO_MANY_VALUES": b'{"x": [' + b"[" * MAX_VALUES + b'"' + b'\\"' * 2_000_000,
    }
    started = time.process_time()
    assert {reason: _refusal(body).reason for reason, body in bodies.items()} == {r: r for r in bodies}
    assert time.process_time() - started < SOON_S, "comparing each with each would take minutes"
