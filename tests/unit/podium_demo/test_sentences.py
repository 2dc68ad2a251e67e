"""Instructions fall apart only where a new command starts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_demo.sentences import split_commands


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("Multiply 2 by 3, then reverse it.", ["Multiply 2 by 3", "reverse it."]),
        ("Add 3, 4 and 5", ["Add 3, 4 and 5"]),
        ("What is 1.5 + 2? And what is 3?", ["What is 1.5 + 2", "what is 3?"]),
        ("Reverse 'one, then count two'", ["Reverse 'one, then count two'"]),
        ("add 1 to the dogs' count and then double it", ["add 1 to the dogs' count", "double it"]),
        ("Between March 1, 2026 and March 3, 2026", ["Between March 1, 2026 and March 3, 2026"]),
        ("  ", []),
    ],
)
def test_commands_are_split(text: str, commands: list[str]) -> None:
    assert split_commands(text) == commands


@given(st.text(max_size=300))
def test_nothing_is_invented(text: str) -> None:
    pieces = split_commands(text)
    position = 0
    for piece in pieces:
        position = text.index(piece, position) + len(piece)
