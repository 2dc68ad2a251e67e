"""Log-probabilities of any shape come out in one shape, and can be encoded."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podium_router.logprobs import token_logprobs

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content", "token", "logprob", "bytes", "top_logprobs"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(anything)
def test_any_shape_gives_entries_of_one_shape(value: Any) -> None:
    for entry in token_logprobs(value):
        assert set(entry) == {"token", "logprob", "bytes", "top_logprobs"}
        json.dumps(entry, ensure_ascii=False).encode()


def test_half_a_character_can_still_be_sent_on() -> None:
    (entry,) = token_logprobs({"content": [{"token": "\ud83d", "logprob": -1, "bytes": [240, 159]}]})
    json.dumps(entry, ensure_ascii=False).encode()
    assert entry["bytes"] == [240, 159]


def test_a_long_list_of_alternatives_is_cut() -> None:
    many = [{"token": "x", "logprob": -1.0}] * 50
    (entry,) = token_logprobs({"content": [{"token": "y", "logprob": 0, "top_logprobs": many}]})
    alternatives = entry["top_logprobs"]
    assert isinstance(alternatives, list)
    assert len(alternatives) == 20
