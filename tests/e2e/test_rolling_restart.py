"""Every service is restarted in turn under load: no call of a client that never retries fails."""

import asyncio
import json
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest

from tests.e2e.replicas import REPLICATED, Replicas, running_replicas
from tests.e2e.test_kill import QUESTION, delay_workers
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.waiting import PATIENCE_S, until

pytestmark = pytest.mark.slow

CLIENTS = 16
_UNAVAILABLE = 503


@dataclass(slots=True)
class Clients:
    """They ask without end and never twice; `failures` is what any of them could complain about."""

    url: str
    headers: dict[str, str]
    streams: bool = True
    receipts: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    lost: int = 0
    is_over: bool = False

    @asynccontextmanager
    async def asking(self, podium: Replicas) -> AsyncIterator[None]:
        """Ask while the block runs, and end what was begun."""
        async with aiohttp.ClientSession() as session:
            await delay_workers(session, podium)
        tasks = [asyncio.create_task(self._ask_on(number)) for number in range(CLIENTS)]
        try:
            await self.more_answers()
            yield
        finally:
            self.is_over = True
            await asyncio.gather(*tasks)

    async def more_answers(self) -> None:
        """Wait until as many answers have come as there are clients; raise what one complains about."""
        enough = len(self.receipts) + CLIENTS
        await until(lambda: len(self.receipts) >= enough or self.failures)
        assert self.failures == []

    async def _ask_on(self, number: int) -> None:
        timeout = aiohttp.ClientTimeout(total=4 * PATIENCE_S)
        async with aiohttp.ClientSession(headers=self.headers, timeout=timeout) as session:
            while not self.is_over:
                number += 1
                try:
                    await (self._stream(session) if self.streams and number % 2 else self._ask(session))
                except aiohttp.ClientError as error:
                    self.failures.append(repr(error))

    async def _ask(self, session: aiohttp.ClientSession) -> None:
        async with session.post(f"{self.url}/v1/chat/completions", json=_body()) as answer:
            told = await answer.json()
        if answer.status == _UNAVAILABLE and told["error"]["code"] == "seen_step_lost":
            self.lost += 1
        elif answer.status != 200:
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
        async with clients.asking(podium):
            await until(lambda: len(balancer.ready) == 2)
            for service in REPLICATED:
                for name in (service, f"{service}-2"):
                    assert await podium.restart(name) == 0, podium.log_of(name)
                    await clients.more_answers()
        records = records_of(podium.databases[0])
    facts_of = check(clients, records)
    assert clients.lost == 0
    ended = Counter(facts["outcome"] for facts in facts_of["attempt_ended"])
    assert ended == {"completed": len(facts_of["attempt_begun"])}, "none failed, none was made twice"


async def test_a_replica_that_is_killed_costs_no_answer(tmp_path: Path, postgres: PostgresServer) -> None:
    """A router may take the end of a step with it on which others build: such a run says so and is asked anew."""
    async with running_replicas(tmp_path, postgres) as (podium, balancer):
        clients = Clients(f"http://127.0.0.1:{balancer.port}", podium.headers, streams=False)
        async with clients.asking(podium):
            for name in ("audit", "router-2", "conductor", "audit-2", "router", "conductor-2"):
                await podium.restart(name, signal.SIGKILL)
                await clients.more_answers()
        records = records_of(podium.databases[0])
    check(clients, records)
    assert clients.lost <= CLIENTS


def check(clients: Clients, records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Hold what clients were told to what is recorded: all answered by the Conductor's plan; return the facts."""
    facts_of: dict[str, list[Any]] = defaultdict(list)
    for record in records:
        facts_of[record["type"]].append(record["facts"])
    outcomes = Counter(facts["outcome"] for facts in facts_of["sealed"])
    assert outcomes == Counter(answered=len(clients.receipts), failed=clients.lost)
    assert clients.failures == []
    assert len({receipt["run_id"] for receipt in clients.receipts}) == len(clients.receipts)
    assert {facts["source"] for facts in facts_of["plan"]} == {"embedded"}
    for receipt in clients.receipts:
        assert {records[index]["run_id"] for index in receipt["leaf_indices"]} == {receipt["run_id"]}
    return facts_of
