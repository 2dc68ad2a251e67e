"""Tool call ids: short, signed per tenant, and never mistaken for another provider's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_gateway.codecs.tool_call_ids import ToolCallName, is_ours, read_tool_call_id, tool_call_id

KEY, OTHER = bytes(32), bytes(31) + b"\x01"
RUNS = st.binary(min_size=16, max_size=16).map(lambda data: f"run_{data.hex()}")
NAMES = st.builds(ToolCallName, RUNS, st.integers(0, 255))


@given(NAMES)
def test_an_id_is_short_and_comes_back_as_what_it_names(name: ToolCallName) -> None:
    call_id = tool_call_id(KEY, name)
    assert len(call_id) <= 40
    assert set(call_id) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert is_ours(call_id)
    assert read_tool_call_id(KEY, call_id) == name
    assert read_tool_call_id(OTHER, call_id) is None


@given(NAMES, st.integers(4, 37), st.sampled_from("ABab01-_"))
def test_any_changed_character_makes_it_worthless(name: ToolCallName, place: int, letter: str) -> None:
    call_id = tool_call_id(KEY, name)
    changed = call_id[:place] + letter + call_id[place + 1 :]
    assert (read_tool_call_id(KEY, changed) == name) == (changed == call_id)


@given(st.text(max_size=60))
def test_no_text_makes_reading_fail(text: str) -> None:
    assert read_tool_call_id(KEY, text) is None
    assert read_tool_call_id(KEY, f"pod_{text}") is None


@pytest.mark.parametrize(
    "foreign", ["call_abc123", "toolu_01A09q90qw90lq917835lq9", "", "pod_short", "chatcmpl-tool-1"]
)
def test_other_providers_ids_are_not_ours(foreign: str) -> None:
    assert not is_ours(foreign)
