"""What the pages say holds: commands parse, snippets compile, files are accepted, links lead on, promises are tested."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml

from podium_cli.__main__ import COMMANDS
from podium_cli.arguments import build_parser
from podium_core.config.plans import load_plans
from podium_core.config.pool import load_pool
from podium_core.config.tenants import load_tenants

ROOT = Path(__file__).parents[2]
PAGES = (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("services/*/README.md"))
BEHAVIOUR = ROOT / "docs" / "behaviour.md"
READERS = {"tenants": load_tenants, "workers": load_pool, "plans": load_plans}
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`( ¹)?")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def _commands(page: Path) -> list[list[str]]:
    lines = [line for block in _blocks(page, "sh") for line in block.splitlines()]
    typed = [line.split(" #")[0].split(" > ")[0].strip() for line in lines]
    typed = [
        line.removeprefix('eval "$(').removesuffix(')"') if "$(podium" in line else line for line in typed
    ]
    return [shlex.split(line)[1:] for line in typed if line.startswith("podium ")]


def test_every_command_on_a_page_is_one() -> None:
    shown: set[str] = set()
    for page in PAGES:
        for words in _commands(page):
            try:
                shown.add(build_parser().parse_args(words).command)
            except SystemExit as left:
                if left.code:
                    pytest.fail(f"{page.name}: podium {' '.join(words)}")
                shown.add(words[0])
    told = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [verb for verb in COMMANDS if verb not in shown and f"`podium {verb}" not in told] == []


def test_every_python_snippet_compiles() -> None:
    for page in PAGES:
        for block in _blocks(page, "python"):
            ast.parse(block, page.name)


@pytest.mark.parametrize("name", ["operating.md", "quickstart.md", "retention.md"])
def test_files_shown_for_copying_are_accepted(tmp_path: Path, name: str) -> None:
    shown = _blocks(ROOT / "docs" / name, "yaml")
    assert shown
    for number, block in enumerate(shown):
        text = block if block.startswith(tuple(READERS)) else f"workers:\n{block}"
        (what,) = yaml.safe_load(text)
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        READERS[what](path)


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{page.name}: {link}"
            if anchor:
                assert anchor in _anchors(target), f"{page.name}: {link}"


def test_every_promise_has_its_test() -> None:
    rows = [line for line in BEHAVIOUR.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    promises = [row for row in rows if "| test |" not in row]
    assert len(promises) > 45
    for row in promises:
        named = _TEST.findall(row)
        assert named, row
        for path, name, is_slow in named:
            text = (ROOT / "tests" / path).read_text(encoding="utf-8")
            before, found, _ = text.partition(f"def {name}(")
            assert found, f"{path} has no {name}"
            decorators = before[before.rfind("\n\n\n") :]
            marked = "pytestmark = pytest.mark.slow" in text or "@pytest.mark.slow" in decorators
            assert marked == bool(is_slow), f"{name}: what is slow is marked, and nothing else"


def _anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
