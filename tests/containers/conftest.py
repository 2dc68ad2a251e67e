import os
from pathlib import Path

import pytest

from tests.containers.podman import ROOT, podman


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where `make containers` keeps the wheels; every image is built by then."""
    place = os.environ.get("PODIUM_TEST_CONTAINERS")
    if not place:
        pytest.skip("needs podman and the images that `make containers` builds: PODIUM_TEST_CONTAINERS")
    return Path(place)


@pytest.fixture(scope="session")
def hadolint() -> Path:
    place = os.environ.get("PODIUM_TEST_K8S_TOOLS")
    if not place:
        pytest.skip("needs the tools of `make containers`: PODIUM_TEST_K8S_TOOLS")
    return Path(place) / "bin" / "hadolint"


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def network(cache: Path) -> str:
    """A network whose names are resolved, as in a cluster."""
    name = "podium-tests"
    if podman("network", "exists", name, check=False).returncode != 0:
        podman("network", "create", name)
    return name
