"""Fixtures that every tier shares."""

from pathlib import Path

import pytest

from podium_cli.local_ca import create_local_ca
from podium_core.runtime.identity import SERVICES


@pytest.fixture(scope="session")
def tls_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one CA and the certificate of every service."""
    directory = tmp_path_factory.mktemp("tls")
    create_local_ca(directory, SERVICES)
    return directory
