"""Every service is restarted in turn under load: no call of a client that never retries fails."""

import asyncio
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest

from tests.e2e.replicas import REPLICATED, running_replicas
from tests.e2e.test_kill import QUESTION, delay_workers
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.waiting import PATIENCE_S, until

pytestmark = pytest.mark.slow

CLIENTS = 8


@dataclass(slots=True)
class Clients:
    """They ask without end and never twice; `failures` is what any of them could complain about."""

    url: str
    headers: dict[str, str]
    receipts: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    is_over: bool = False

    async def ask_on(self, number: int) -> None:
        timeout = aiohttp.ClientTimeout(total=4 * PATIENCE_S)
        async with aiohttp.ClientSession(headers=self.headers, timeout=timeout) as session:
            while not self.is_over:
                number += 1
                try:
                    await (self._stream(session) if number % 2 else self._ask(session))
                except aiohttp.ClientError as error:
                    self.failures.append(repr(error))

    def has_answers(self, count: int) -> bool:
        return len(self.receipts) >= count or bool(self.failures)

    async def _ask(self, session: aiohttp.ClientSession) -> None:
        async with session.post(f"{self.url}/v1/chat/completions", json=_body()) as answer:
            told = await answer.json()
        if answer.status != 200:
            self.failures.append(f"{answer.status} {told}")
        else:
            self._answered(told)

    async def _stream(self, session: aiohttp.ClientSession) -> None:
        async with session.post(f"{self.url}/v1/chat/completions", json=_body(stream=True)) as answer:
            text = await answer.text()
        datas = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
        if answer.status != 200 or datas[-1:] != ["[DONE]"]:
            self.failures.append(f"{answer.status} {text[-600:]}")
            return
        for chunk in map(json.loads, datas[:-1]):
            if "error" in chunk:
                self.failures.append(str(chunk))
            elif "receipt" in chunk.get("podium", {}):
                self._answered(chunk)

    def _answered(self, told: dict[str, Any]) -> None:
        self.receipts.append(told["podium"]["receipt"])


def _body(**fields: Any) -> dict[str, Any]:
    return {"model": "podium", "messages": [{"role": "user", "content": QUESTION}], **fields}


def records_of(database_url: str) -> list[dict[str, Any]]:
    """Read every record past the service."""
    with psycopg.connect(database_url) as database:
        rows = database.execute("SELECT data FROM leaves ORDER BY leaf_index").fetchall()
    return [json.loads(row[0]) for row in rows]


async def test_each_service_restarted_in_turn_fails_no_call(tmp_path: Path, postgres: PostgresServer) -> None:
    async with running_replicas(tmp_path, postgres) as (podium, balancer):
        clients = Clients(f"http://127.0.0.1:{balancer.port}", podium.headers)
        async with aiohttp.ClientSession() as session:
            await delay_workers(session, podium)
        await until(lambda: len(balancer.ready) == 2)
        asking = [asyncio.create_task(clients.ask_on(number)) for number in range(CLIENTS)]
        codes = {}
        for service in REPLICATED:
            for name in (service, f"{service}-2"):
                codes[name] = await podium.restart(name)
                assert clients.failures == [], name
                enough = len(clients.receipts) + CLIENTS
                await until(partial(clients.has_answers, enough))
        clients.is_over = True
        await asyncio.gather(*asking)
        records = records_of(podium.databases[0])
    assert set(codes.values()) == {0}, codes
    check(clients, records)


def check(clients: Clients, records: list[dict[str, Any]]) -> None:
    """Hold what clients were told to what is recorded: all answered, each by the Conductor's plan, at once."""
    facts_of: dict[str, list[Any]] = defaultdict(list)
    for record in records:
        facts_of[record["type"]].append(record["facts"])
    outcomes = Counter(facts["outcome"] for facts in facts_of["sealed"])
    assert set(outcomes) == {"answered"}, outcomes
    assert outcomes["answered"] == len(clients.receipts) == len({r["run_id"] for r in clients.receipts})
    assert {facts["source"] for facts in facts_of["plan"]} == {"embedded"}
    ended = Counter(facts["outcome"] for facts in facts_of["attempt_ended"])
    assert set(ended) == {"completed"}, ended
    assert len(facts_of["attempt_begun"]) == ended["completed"]
    for receipt in clients.receipts:
        assert {records[index]["run_id"] for index in receipt["leaf_indices"]} == {receipt["run_id"]}
