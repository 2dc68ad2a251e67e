"""JSON for audit and workers: the bytes are the same however long the strings are."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium_core.domain.run import Message
from podium_gateway.adapters.json_text import escaped, json_bytes, long_json_bytes, message_bytes

_SLICE_CHARS = 64 * 1024
_ANY_TEXT = st.text(max_size=8)  # half a surrogate pair included
_LONG_TEXT = st.builds(
    lambda unit, count, end: unit * (count // len(unit)) + end,
    st.text(min_size=1, max_size=3),
    st.integers(_SLICE_CHARS - 8, 2 * _SLICE_CHARS + 8),
    _ANY_TEXT,
)
_LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _ANY_TEXT | _LONG_TEXT
_VALUE = st.recursive(
    _LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_ANY_TEXT, inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=50)
@given(_VALUE)
def test_long_strings_come_out_as_in_one_go(value: Any) -> None:
    assert long_json_bytes(value) == json_bytes(value)


@settings(max_examples=25)
@given(_LONG_TEXT)
def test_escaped_text_stands_between_quotes_as_json(text: str) -> None:
    assert b'"' + escaped(text) + b'"' == json_bytes(text)


@settings(max_examples=10)
@given(_LONG_TEXT)
def test_a_message_with_an_image_is_its_exact_json(url: str) -> None:
    fields = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}, {"n": []}]}
    assert message_bytes(Message("user", "", fields)) == json_bytes(fields)
