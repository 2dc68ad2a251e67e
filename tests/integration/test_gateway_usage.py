"""`GET /v1/podium/usage`: a key sees its own, an auditor the tenant's, and nobody more."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from podium_cli.__main__ import main
from podium_gateway.ports import MonthMoney, UsageRow
from tests.fakes.gateway import AUDITOR_TOKEN, TOKEN, EdgeServer, running_edge

DAY = "2026-11-03"
ROWS = [
    UsageRow(DAY, "key-1", "", "podium", (2, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    UsageRow(DAY, "key-1", "alpha", "m-1", (0, 3, 1, 0, 300, 30, 100, 0, 10, 70)),
    UsageRow("2026-11-04", "key-2", "alpha", "m-1", (0, 1, 0, 1, 5, 5, 0, 0, 0, 9)),
]


async def _get(edge: EdgeServer, query: str = "", token: str = TOKEN) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{edge.url}/v1/podium/usage{query}") as response,
    ):
        return response.status, await response.json()


async def test_a_key_reads_its_own_month_so_far() -> None:
    async with running_edge() as edge:
        edge.usage.rows = ROWS[:2]
        edge.usage.money = MonthMoney("2026-11", 1_000, 400, 50)
        edge.usage.key_money = MonthMoney("2026-11", 500, 70, 0)
        status, page = await _get(edge)
        today = datetime.now(UTC).date()
        assert edge.usage.asked == [("acme", "key-1", today.replace(day=1).isoformat(), today.isoformat())]
    assert status == 200
    assert (page["tenant"], page["key"]) == ("acme", "key-1")
    assert page["total"] == {
        "requests": 2,
        "attempts": 3,
        "estimated_attempts": 1,
        "unknown_attempts": 0,
        "input_tokens": 300,
        "output_tokens": 30,
        "cached_input_tokens": 100,
        "cache_write_input_tokens": 0,
        "reasoning_output_tokens": 10,
        "cost_usd_micros": 70,
    }
    assert [(row["day"], row["worker"], row["model"]) for row in page["rows"]] == [
        (DAY, None, "podium"),
        (DAY, "alpha", "m-1"),
    ]
    assert page["money"] == {
        "month": "2026-11",
        "budget_usd_micros": 1_000,
        "spent_usd_micros": 400,
        "reserved_usd_micros": 50,
        "left_usd_micros": 550,
    }
    assert (page["key_money"]["budget_usd_micros"], page["key_money"]["left_usd_micros"]) == (500, 430)


async def test_an_auditor_reads_the_tenants_grouped_as_it_likes() -> None:
    async with running_edge() as edge:
        edge.usage.rows = ROWS
        status, page = await _get(
            edge, f"?scope=tenant&group_by=worker&from={DAY}&to=2026-11-04", AUDITOR_TOKEN
        )
        assert edge.usage.asked == [("acme", "", DAY, "2026-11-04")]
    assert (status, page["key"]) == (200, None)
    assert [(row["worker"], row["requests"], row["cost_usd_micros"]) for row in page["rows"]] == [
        (None, 2, 0),
        ("alpha", 0, 79),
    ]
    assert (page["money"]["left_usd_micros"], page["key_money"]) == (None, None)


async def test_a_client_may_not_read_its_tenants() -> None:
    async with running_edge() as edge:
        status, page = await _get(edge, "?scope=tenant")
        assert edge.usage.asked == []
        assert (await _get(edge, token="podium_x_" + "a" * 43))[0] == 401
    assert (status, page["error"]["code"]) == (403, "role_missing")


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?from=2026-1-1", "from"),
        ("?to=20261101", "to"),
        ("?from=2026-01-01&to=2026-12-31", "from"),
        ("?from=2026-02-02&to=2026-02-01", "from"),
        ("?scope=everybody", "scope"),
        ("?group_by=day,day", "group_by"),
        ("?group_by=tenant", "group_by"),
        ("?tenant=other", "tenant"),
    ],
)
async def test_a_query_that_makes_no_sense_names_its_parameter(query: str, param: str) -> None:
    async with running_edge() as edge:
        status, page = await _get(edge, query)
    assert (status, page["error"]["param"]) == (400, param)


async def test_the_command_shows_it_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    async with running_edge() as edge:
        edge.usage.rows = ROWS
        edge.usage.money = MonthMoney("2026-11", 1_000, 400, 50)
        words = [
            "usage",
            "--by",
            "key,worker",
            "--all-keys",
            "--from",
            DAY,
            "--to",
            "2026-11-30",
            "--url",
            edge.url,
        ]
        assert await asyncio.to_thread(main, [*words, "--api-key", AUDITOR_TOKEN]) == 0
        said = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert await asyncio.to_thread(main, [*words, "--api-key", TOKEN]) == 1
        assert "auditor" in capsys.readouterr().err
    assert ["key-1", "alpha", "0", "3", "300", "30", "$0.000070"] in said
    assert ["all", "2", "4", "305", "35", "$0.000079"] in said
    assert "of $0.001000; $0.000550 left" in " ".join(said[-1])
