"""The build of an image ends where Python would run something unasked."""

from pathlib import Path

import pytest

from containers.environment import ALLOWED, keep_commands, problems_of


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    directory = tmp_path / "lib" / "python3.11" / "site-packages"
    directory.mkdir(parents=True)
    return directory


def test_known_file_with_its_known_content_passes(packages: Path, tmp_path: Path) -> None:
    for name, (content, _reason) in ALLOWED.items():
        (packages / name).write_text(content + "\n")
    assert problems_of(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("evil.pth", "import os"),
        ("paths.pth", "/somewhere/else"),
        ("distutils-precedence.pth", "import os; os.system('true')"),
        ("sitecustomize.py", ""),
        ("usercustomize.cpython-311-x86_64-linux-gnu.so", ""),
    ],
)
def test_any_other_file_that_runs_at_every_start_is_named(
    name: str, content: str, packages: Path, tmp_path: Path
) -> None:
    (packages / name).write_text(content)
    (problem,) = problems_of(tmp_path)
    assert problem.startswith(name.partition(".")[0])


def test_only_python_and_the_named_commands_stay(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    (programs / "__pycache__").mkdir(parents=True)
    for name in ("python", "python3", "podium-gateway", "podium-router", "httpx"):
        (programs / name).touch()
    keep_commands(tmp_path, ["podium-gateway"])
    assert {path.name for path in programs.iterdir()} == {"python", "python3", "podium-gateway"}


def test_command_that_is_not_there_ends_the_build(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    with pytest.raises(SystemExit, match="podium-gateway"):
        keep_commands(tmp_path, ["podium-gateway"])
