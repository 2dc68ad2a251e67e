"""No test fails because its machine is busy: how long a wait may be is said in one place."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
FILES = sorted(TESTS.rglob("*.py"))
_WAITS = {"timeout": 0, "wait_for": 1}
"""asyncio's, by name, each with the place of its seconds."""


def own_numbers(tree: ast.AST) -> Iterator[int]:
    """Give the lines on which a wait of asyncio's ends after a number of seconds written there."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        of, place = call.func.value, _WAITS.get(call.func.attr)
        if place is None or not isinstance(of, ast.Name) or of.id != "asyncio":
            continue
        seconds = [*call.args[place : place + 1], *[word.value for word in call.keywords]]
        if any(isinstance(one, ast.Constant) and one.value is not None for one in seconds):
            yield call.lineno


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_waits_end_with_patience(path: Path) -> None:
    lines = list(own_numbers(ast.parse(path.read_text(encoding="utf-8"))))
    assert lines == [], "take PATIENCE_S or SOON_S of tests/fakes/waiting.py, which says when which"


def test_numbers_are_found() -> None:
    tree = ast.parse("asyncio.timeout(5)\nasyncio.wait_for(x, 0.5)\nasyncio.wait_for(x, timeout=2)")
    assert list(own_numbers(tree)) == [1, 2, 3]
    assert list(own_numbers(ast.parse("asyncio.timeout(SOON_S)\nasyncio.wait_for(x, 2 * SOON_S)"))) == []
