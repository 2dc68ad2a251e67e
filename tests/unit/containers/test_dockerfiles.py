"""The images that the chart names are those that can be built, each by the same rules."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
DOCKERFILES = sorted((ROOT / "services").glob("*/Dockerfile*"))


def image_of(dockerfile: Path) -> str:
    return f"podium/{dockerfile.parent.name}{dockerfile.suffix.replace('.', '-')}"


def repositories_in(values: object) -> set[str]:
    if not isinstance(values, dict):
        return set()
    own = {values["repository"]} if isinstance(values.get("repository"), str) else set()
    return own.union(*map(repositories_in, values.values()))


def test_every_image_of_the_chart_has_a_dockerfile() -> None:
    values = yaml.safe_load((ROOT / "charts/podium/values.yaml").read_text())
    assert repositories_in(values) == set(map(image_of, DOCKERFILES))


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=image_of)
def test_what_comes_from_outside_is_locked_and_checked_before_it_runs(dockerfile: Path) -> None:
    build, final = dockerfile.read_text().split("\nFROM ")[1:]
    steps = re.sub(r"\\\n\s*", "", build)
    for install in re.findall(r"pip\S*(?: --python \S+)? install [^&\n]*", steps):
        assert "--require-hashes" in install or "--no-index" in install, install
    assert steps.index("RUN python3 environment.py /opt/podium") < steps.index("COPY pyproject.toml")
    assert "USER 10001:10001" in final
    assert f'image.title="{image_of(dockerfile)}"' in final
    for lock in set(re.findall(r"requirements/\S+\.txt", steps)):
        assert (ROOT / lock).is_file()
