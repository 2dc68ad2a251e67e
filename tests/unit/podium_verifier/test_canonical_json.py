import contextlib
import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from podium_verifier.canonical_json import parse_object
from tests.unit.podium_verifier.exported_run import patient

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcXYZ_", max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@patient
@given(st.dictionaries(st.text("abcXYZ_", max_size=6), VALUES, max_size=4))
def test_the_canonical_form_is_that_of_an_independent_implementation(value: dict[str, object]) -> None:
    assert parse_object(rfc8785.dumps(value)) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        "{",
        '{"a":1,"a":1}',
        '{"b":1,"a":1}',
        '{ "a":1}',
        '{"a":1} ',
        '{"a":1.0}',
        '{"a":1e2}',
        '{"a":-0}',
        '{"a":NaN}',
        '{"a":9007199254740992}',
        '{"a":' + "9" * 5000 + "}",
        '{"a":"\\u0041"}',
        '{"a":"\\/"}',
        '{"a":"\\ud800"}',
        '{"a":' + "[" * 100_000,
        '{"a":' + "[" * 5000 + "]" * 5000 + "}",
        "\ufeff{}",
    ],
)
def test_any_other_spelling_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_object(text.encode())


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ValueError, match="UTF-8"):
        parse_object(b'{"a":"\xff"}')


@patient
@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(str.encode)
    | VALUES.map(lambda v: json.dumps(v).encode())
)
def test_nothing_but_value_errors_come_out(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse_object(data)
