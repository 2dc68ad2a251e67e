"""Limits in slices, over one process's memory and over replicas that share a database."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import psycopg
import pytest

from podium_audit.sharing.meters import SharedMeters
from podium_audit.slices import Granted, Meters, Slices, Wanted
from podium_audit.stores.postgres.log_schema import WRITER
from podium_audit.stores.postgres.meters import PostgresMeters
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.limits import LimitKind, LimitName
from tests.fakes.shared_database import shared_database
from tests.fakes.waiting import PATIENCE_S

VALID_NS = 2 * 10**9
REQUESTS = LimitName("acme", "", LimitKind.REQUESTS)
OF_KEY = LimitName("acme", "key1", LimitKind.REQUESTS)
RUNS = LimitName("acme", "key1", LimitKind.RUNS)
LIMITS = {REQUESTS: 100, OF_KEY: 40, RUNS: 3}


async def shared(stack: AsyncExitStack, url: str) -> SharedMeters:
    meters = SharedMeters(
        PostgresMeters(shared_database(url).session(WRITER)), LIMITS.get, valid_ns=VALID_NS, wait_s=20
    )
    await meters.open()
    stack.push_async_callback(meters.close)
    return meters


@pytest.fixture(params=["memory", "postgres"])
async def replicas(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Meters, Meters]]:
    """Two ways to the same limits; in memory they are one."""
    if request.param == "memory":
        slices = Slices(LIMITS.get, SystemClock(), valid_ns=VALID_NS)
        yield slices, slices
        return
    url = request.getfixturevalue("database_url")
    async with AsyncExitStack() as stack:
        one, two = await asyncio.gather(shared(stack, url), shared(stack, url))
        yield one, two


async def lease(meters: Meters, name: LimitName, holder_id: str, wanted: Wanted) -> Granted:
    ((limit, granted),) = await meters.lease(holder_id, [(name, wanted)])
    assert limit == LIMITS.get(name)
    return granted


async def test_a_limit_holds_over_all_replicas_at_once(replicas: tuple[Meters, Meters]) -> None:
    asked = [
        lease(replicas[number % 2], OF_KEY, f"gateway_{number}", Wanted(needed=3, wanted=10))
        for number in range(30)
    ]
    granted = [answer.granted for answer in await asyncio.gather(*asked)]
    assert 38 <= sum(granted) <= 40
    refused = await lease(replicas[0], OF_KEY, "gateway_late", Wanted(needed=3, wanted=3))
    assert refused.granted == 0
    assert refused.retry_after_ns is not None
    assert 0 < refused.retry_after_ns <= VALID_NS + 61 * 10**9


async def test_what_one_replica_booked_the_other_knows(replicas: tuple[Meters, Meters]) -> None:
    one, two = replicas
    assert (await lease(one, REQUESTS, "gateway_1", Wanted(needed=1, wanted=60))).granted == 50
    back = await lease(two, REQUESTS, "gateway_1", Wanted(used_total=10, needed=0, wanted=0))
    assert (back.granted, back.left) == (0, 90)
    assert (await lease(one, REQUESTS, "gateway_2", Wanted(needed=90, wanted=90))).granted == 90


async def test_places_of_a_gateway_that_is_gone_come_back_elsewhere(replicas: tuple[Meters, Meters]) -> None:
    one, two = replicas
    assert (await lease(one, RUNS, "gateway_1", Wanted(needed=3, wanted=3))).granted == 3
    assert (await lease(two, RUNS, "gateway_2", Wanted(needed=1, wanted=1))).granted == 0
    async with asyncio.timeout(PATIENCE_S):
        while not (await lease(two, RUNS, "gateway_2", Wanted(needed=1, wanted=1))).granted:
            await asyncio.sleep(0.05)


async def test_wishes_are_answered_in_their_order_limited_or_not(replicas: tuple[Meters, Meters]) -> None:
    free = LimitName("acme", "key2", LimitKind.TOKENS)
    wanted = Wanted(needed=1, wanted=4)
    names = [OF_KEY, free, RUNS, REQUESTS, OF_KEY]
    leases = await replicas[0].lease("gateway_1", [(name, wanted) for name in names])
    assert [(limit, granted.granted) for limit, granted in leases] == [
        (40, 4),
        (None, 4),
        (3, 1),
        (100, 4),
        (40, 4),
    ]


class TestPostgresAlone:
    """What only a shared database must bear."""

    async def test_a_clock_that_was_set_back_does_not_freeze_a_limit(self, database_url: str) -> None:
        async with AsyncExitStack() as stack:
            meters = await shared(stack, database_url)
            await lease(meters, OF_KEY, "gateway_1", Wanted(needed=20, wanted=40))
            await lease(meters, OF_KEY, "gateway_1", Wanted(used_total=20))
            hour_us = 3_600_000_000
            with psycopg.connect(database_url, autocommit=True) as connection:
                ((before_us, text),) = connection.execute("SELECT metered_us, state FROM meters").fetchall()
                state = json.loads(text)
                state["spent"][0][0] += hour_us // 250_000
                for holder in state["holders"]:
                    holder[2] += hour_us * 1_000
                connection.execute(
                    "UPDATE meters SET metered_us = %s, state = %s", (before_us + hour_us, json.dumps(state))
                )
            refused = await lease(meters, OF_KEY, "gateway_2", Wanted(needed=30, wanted=30))
            assert refused.granted == 0
            assert refused.retry_after_ns is not None
            assert refused.retry_after_ns < 61 * 10**9

    async def test_while_the_database_is_away_nothing_is_granted_and_afterwards_all_goes_on(
        self, database_url: str
    ) -> None:
        async with AsyncExitStack() as stack:
            meters = await shared(stack, database_url)
            await lease(meters, RUNS, "gateway_1", Wanted(needed=2, wanted=2))
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            with pytest.raises(PodiumError) as caught:
                await lease(meters, RUNS, "gateway_2", Wanted(needed=2, wanted=2))
            assert caught.value.code is Code.AUDIT_UNAVAILABLE
            assert (await lease(meters, RUNS, "gateway_2", Wanted(needed=2, wanted=2))).granted == 0
            assert (await lease(meters, RUNS, "gateway_2", Wanted(needed=1, wanted=1))).granted == 1
