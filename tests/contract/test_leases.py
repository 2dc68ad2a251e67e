"""Leases of open runs: renewed or lost, in one process's memory and over replicas that share a database."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psycopg
import pytest

from podium_audit.leases import Leases, MemoryLeases
from podium_audit.sharing.leases import SharedLeases
from podium_audit.stores.postgres.leases import PostgresLeases
from podium_audit.stores.postgres.log_schema import WRITER
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.ids import FakeClock
from tests.fakes.shared_database import shared_database

DEFAULT_MS, MAX_MS = 10_000, 30_000


@dataclass
class Replicas:
    """Two ways to the same leases; in memory they are one. `advance` lets time go by for all."""

    one: Leases
    two: Leases
    advance: Callable[[float], None]


async def shared(stack: AsyncExitStack, url: str, clock: FakeClock) -> SharedLeases:
    of_log, of_loop = (PostgresLeases(shared_database(url).session(WRITER)) for _ in range(2))
    leases = SharedLeases(of_log, of_loop, clock, default_ms=DEFAULT_MS, max_ms=MAX_MS, wait_s=20)
    await leases.open()
    leases.keep_only({})
    stack.push_async_callback(leases.close)
    return leases


def advance_rows(url: str, seconds: float) -> None:
    """Move every lease towards its end: the database's own clock cannot be set."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE leases SET ends_at = ends_at - %(s)s * interval '1 s',"
            " taken_until = taken_until - %(s)s * interval '1 s'",
            {"s": seconds},
        )


@pytest.fixture(params=["memory", "postgres"])
async def replicas(request: pytest.FixtureRequest) -> AsyncIterator[Replicas]:
    clock = FakeClock()
    if request.param == "memory":
        leases = MemoryLeases(clock, default_ms=DEFAULT_MS, max_ms=MAX_MS)
        yield Replicas(leases, leases, clock.advance)
        return
    url = request.getfixturevalue("database_url")

    def advance(seconds: float) -> None:
        clock.advance(seconds)
        advance_rows(url, seconds)

    async with AsyncExitStack() as stack:
        one, two = await shared(stack, url, clock), await shared(stack, url, clock)
        advance(DEFAULT_MS / 1_000)  # from the start on lapsed runs are let alone for so long
        yield Replicas(one, two, advance)


async def test_a_lease_lives_until_its_end(replicas: Replicas) -> None:
    replicas.one.start("run", 3_000)
    assert replicas.one.is_alive("run")
    assert replicas.two.is_alive("run")
    assert not replicas.two.is_alive("another")
    replicas.advance(1)
    assert replicas.two.is_alive("run")
    assert await replicas.two.take_lapsed(9) == []
    replicas.advance(2.1)
    assert not replicas.one.is_alive("run")
    assert not replicas.two.is_alive("run")
    assert await replicas.two.take_lapsed(9) == ["run"]


async def test_renewal_at_any_replica_names_what_is_lost(replicas: Replicas) -> None:
    for run_id in ("live", "taken", "sealed"):
        replicas.one.start(run_id, 1_000 if run_id == "taken" else 0)
    replicas.one.end("sealed")
    replicas.advance(5)
    assert await replicas.one.take_lapsed(9) == ["taken"]
    asked = ["live", "taken", "sealed", "unknown"]
    assert await replicas.two.renew(asked, 8_000) == ["taken", "sealed", "unknown"]
    replicas.advance(7)
    assert replicas.one.is_alive("live")
    assert not replicas.one.is_alive("taken")


async def test_who_was_late_but_not_too_late_keeps_the_run(replicas: Replicas) -> None:
    replicas.one.start("run", 1_000)
    replicas.advance(5)
    assert not replicas.two.is_alive("run")
    assert await replicas.two.renew(["run"], 0) == []
    assert replicas.one.is_alive("run")
    assert await replicas.one.take_lapsed(9) == []


async def test_a_renewal_never_shortens_a_lease(replicas: Replicas) -> None:
    replicas.one.start("run", 20_000)
    assert await replicas.two.renew(["run"], 1_000) == []
    replicas.advance(15)
    assert replicas.two.is_alive("run")


async def test_a_lease_is_never_longer_than_allowed(replicas: Replicas) -> None:
    replicas.one.start("run", 10**9)
    replicas.advance(30.1)
    assert await replicas.one.take_lapsed(9) == ["run"]


async def test_after_a_restart_open_runs_get_one_fresh_lease(replicas: Replicas) -> None:
    replicas.one.start("old", 1_000)
    replicas.one.keep_only({"old": 1, "new": 1})
    replicas.advance(5)
    assert await replicas.two.take_lapsed(9) == ["old"]
    assert replicas.two.is_alive("new")


async def test_a_run_that_is_not_there_to_be_sealed_is_forgotten(replicas: Replicas) -> None:
    replicas.one.start("never opened", 1_000)
    replicas.advance(5)
    assert await replicas.two.take_lapsed(9) == ["never opened"]
    await replicas.two.forget("never opened")
    replicas.advance(60)
    assert await replicas.one.take_lapsed(9) == []


async def test_a_batch_is_prepared_at_once(replicas: Replicas) -> None:
    replicas.one.start("elsewhere")
    replicas.two.prepare([("new", 2_000)], ["elsewhere", "new", "unknown"])
    replicas.two.start("new", 2_000)
    assert [replicas.two.is_alive(run_id) for run_id in ("elsewhere", "new", "unknown")] == [
        True,
        True,
        False,
    ]


class TestPostgresAlone:
    """What only leases in a shared database must bear."""

    async def test_each_lapsed_run_is_taken_by_one_replica_until_that_is_gone_too(
        self, database_url: str
    ) -> None:
        clock = FakeClock()
        async with AsyncExitStack() as stack:
            one, two = await shared(stack, database_url, clock), await shared(stack, database_url, clock)
            for number in range(6):
                one.start(f"run_{number}", 1_000)
            clock.advance(DEFAULT_MS / 1_000)
            advance_rows(database_url, 2)
            taken = [*await one.take_lapsed(2), *await two.take_lapsed(9), *await one.take_lapsed(9)]
            assert sorted(taken) == [f"run_{number}" for number in range(6)]
            advance_rows(database_url, 11)
            assert sorted(await two.take_lapsed(9)) == sorted(taken)

    async def test_open_runs_outlive_a_crash_that_empties_the_table(self, database_url: str) -> None:
        clock = FakeClock()
        async with AsyncExitStack() as stack:
            leases = await shared(stack, database_url, clock)
            open_runs = {"run": 1, "unrenewed": 1}
            leases.keep_only(open_runs)
            clock.advance(DEFAULT_MS / 1_000)
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute("TRUNCATE leases")
            assert await leases.renew(["run", "unknown"], 0) == ["unknown"]
            assert leases.is_alive("run")
            assert await leases.take_lapsed(9) == []
            advance_rows(database_url, DEFAULT_MS / 1_000)
            assert sorted(await leases.take_lapsed(9)) == ["run", "unrenewed"]

    async def test_while_nobody_could_renew_nobody_is_given_up(self, database_url: str) -> None:
        clock = FakeClock()
        async with AsyncExitStack() as stack:
            leases = await shared(stack, database_url, clock)
            leases.start("run", 1_000)
            clock.advance(DEFAULT_MS / 1_000)
            advance_rows(database_url, 5)
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            with pytest.raises(PodiumError) as caught:
                await leases.take_lapsed(9)
            assert caught.value.code is Code.AUDIT_UNAVAILABLE
            assert await leases.take_lapsed(9) == []
            clock.advance(DEFAULT_MS / 1_000)
            assert await leases.take_lapsed(9) == ["run"]
