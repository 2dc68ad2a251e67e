"""What is installed is what was tested: every requirement names one version and the hashes of its files."""

import re
from pathlib import Path

import pytest

LOCKS = sorted((Path(__file__).parents[2] / "requirements").glob("*.txt"))
_PINNED = re.compile(r"[A-Za-z0-9._-]+(\[[\w,-]+\])?==[^\s;]+")


@pytest.mark.parametrize(
    "lock", [lock for lock in LOCKS if "overrides" not in lock.name], ids=lambda p: p.name
)
def test_every_dependency_is_pinned_by_hash(lock: Path) -> None:
    entries = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8"))
    requirements = [entry for entry in entries if entry.strip() and not entry.startswith(("#", "--"))]
    assert requirements
    for requirement in requirements:
        assert _PINNED.match(requirement) or " @ https://" in requirement, requirement.split("\n")[0]
        assert "--hash=sha256:" in requirement, requirement.split("\n")[0]
