"""One running installation for the tests that do not break it."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.e2e.cluster import Cluster, running


@pytest.fixture(scope="session")
def podium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(Cluster(tmp_path_factory.mktemp("podium"))) as cluster:
        asyncio.run(cluster.wait_ready())
        yield cluster
