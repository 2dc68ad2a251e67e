"""The house rules that no linter knows: sizes, names of rooms, and who may touch what."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for top in ("src", "services", "training", "verifier")
    for path in (ROOT / top).rglob("*.py")
    if "__pycache__" not in path.parts
)
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "misc", "base"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_there_is_something_to_check() -> None:
    assert len(SOURCES) > 50


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_files_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_FILE_LINES, "split this file: a room holds one thing"
    assert path.stem not in BANNED_NAMES, "name the room by what it holds"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "open with what this is and why it is here"


@pytest.mark.parametrize(
    ("module", "allowed_in"),
    [
        ("opentelemetry.sdk", ("src/podium_core/runtime/",)),
        ("sqlite3", ("services/audit/",)),
        ("litellm", ("services/router/",)),
        ("jsonschema", ("services/gateway/podium_gateway/schemas/child.py",)),
        (
            "vllm",
            (
                "services/conductor/podium_conductor/engines/vllm/serving.py",
                "services/conductor/podium_conductor/engines/vllm/plugin.py",
            ),
        ),
        ("torch", ("training/",)),
        ("transformers", ("training/",)),
        ("trl", ("training/",)),
        ("sklearn", ("training/",)),
        ("cryptography", ("services/audit/", "src/podium_cli/", "verifier/")),
    ],
)
def test_heavy_or_powerful_libraries_stay_in_their_rooms(module: str, allowed_in: tuple[str, ...]) -> None:
    users = [
        relative(path)
        for path in SOURCES
        if any(name == module or name.startswith(f"{module}.") for name in imports_of(path))
    ]
    assert [user for user in users if not user.startswith(allowed_in)] == []


def test_nothing_broad_is_caught_outside_the_edges() -> None:
    edges = (
        "grpc_errors.py",
        "grpc_server.py",
        "http.py",
        "__main__.py",
        "perform.py",
        "runner.py",
        "inside.py",
        "rollouts.py",  # a scorer is whatever its author wrote
    )
    caught = [
        f"{relative(path)}:{node.lineno}"
        for path in SOURCES
        if path.name not in edges
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
    ]  # fmt: skip
    assert caught == []
