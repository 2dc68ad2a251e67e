"""Canonical bytes against an independent implementation of RFC 8785."""

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.record import MAX_LEAF_BYTES, canonical

ascii_keys = st.text(st.characters(max_codepoint=127), max_size=8)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ascii_keys, inner, max_size=4),
    max_leaves=20,
)
records = st.dictionaries(ascii_keys, values, max_size=6)


@given(records)
def test_same_bytes_as_an_independent_implementation(record: dict[str, Any]) -> None:
    assert canonical(record) == rfc8785.dumps(record)


@given(records)
def test_decodes_to_the_same_record(record: dict[str, Any]) -> None:
    assert json.loads(canonical(record)) == record


@pytest.mark.parametrize(
    "value", [1.5, float("nan"), 2**53, -(2**53), b"bytes", "\ud800", {"ü": 1}, {1: 1}, [{"deep": 0.5}]]
)
def test_what_the_form_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(PodiumError) as caught:
        canonical({"value": value})
    assert caught.value.code is Code.INVALID_REQUEST


def test_a_record_over_the_limit_is_refused_with_its_size() -> None:
    assert len(canonical({"k": "x" * (MAX_LEAF_BYTES - 8)})) == MAX_LEAF_BYTES
    with pytest.raises(PodiumError, match="65536") as caught:
        canonical({"k": "x" * (MAX_LEAF_BYTES - 7)})
    assert caught.value.code is Code.TOO_LARGE
