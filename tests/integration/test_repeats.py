"""Idempotency keys over the gateway's edge: one run per key, its answer for everyone, whichever gateway is asked."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from podium_core.config.tenants import Tenant
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.conversations import FakeConversations
from tests.fakes.gateway import EdgeServer, running_edge
from tests.fakes.waiting import SOON_S, STALL_S, until
from tests.fakes.worker import FakeWorkers, Reply

URL = "/v1/chat/completions"
ASKED: dict[str, Any] = {"model": "podium", "messages": [{"role": "user", "content": "6 times 7?"}]}
STREAMED = {**ASKED, "stream": True}


class Scene:
    """Gateways over the same workers and the same kept items."""

    def __init__(self, *replies: Reply) -> None:
        self.workers = FakeWorkers({"alpha": replies or (Reply(),)})
        self.kept = FakeConversations()

    def edge(self, **settings: Any) -> Any:
        """Return one gateway."""
        return running_edge(workers=self.workers, conversations=self.kept, **settings)


async def post(edge: EdgeServer, body: Any = ASKED, key: str | None = "key-1") -> tuple[int, str, Any]:
    """Post; return the status, the run's id, and the body."""
    headers = {**edge.auth, **({"Idempotency-Key": key} if key is not None else {})}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(edge.url + URL, json=body) as response,
    ):
        text = await response.text()
        found = json.loads(text) if text.startswith("{") else text
        return response.status, response.headers.get("x-podium-run-id", ""), found


@pytest.mark.parametrize("body", [ASKED, STREAMED], ids=["whole", "streamed"])
async def test_requests_at_once_and_later_share_one_run_on_any_gateway(body: dict[str, Any]) -> None:
    gate = asyncio.Event()
    scene = Scene(Reply("forty-two", gate=gate))
    async with scene.edge() as first, scene.edge() as second:
        posting = [asyncio.create_task(post(edge, body)) for edge in (first, first, second)]
        await until(lambda: scene.workers.calls)
        await asyncio.sleep(0.1)
        gate.set()
        answers = await asyncio.gather(*posting)
        answers.append(await post(first, body))
        answers.append(await post(second, body))
    assert len(scene.workers.calls) == 1
    assert {status for status, _, _ in answers} == {200}
    assert len({run_id for _, run_id, _ in answers}) == 1
    assert all(answer == answers[0][2] for _, _, answer in answers)
    if body is STREAMED:
        assert answers[0][2].rstrip().endswith("data: [DONE]")


async def test_a_key_with_another_request_is_a_conflict_live_and_later_and_elsewhere() -> None:
    gate = asyncio.Event()
    scene = Scene(Reply(gate=gate))
    other = {**ASKED, "temperature": 1}
    async with scene.edge() as first, scene.edge() as second:
        posting = asyncio.create_task(post(first))
        await until(lambda: scene.workers.calls)
        refusals = [await post(first, other), await post(second, other)]
        gate.set()
        await posting
        refusals += [await post(first, other), await post(second, STREAMED)]
    for status, _, answer in refusals:
        assert (status, answer["error"]["code"]) == (409, "idempotency_key_reused")
    assert len(scene.workers.calls) == 1


async def test_without_a_key_every_request_is_a_run() -> None:
    scene = Scene()
    async with scene.edge() as edge:
        await post(edge, key=None)
        await post(edge, key=None)
        await post(edge, key="another")
    assert len(scene.workers.calls) == 3
    assert len(scene.kept.items) == 1


async def test_the_same_key_of_another_key_holder_is_another_request() -> None:
    scene = Scene()
    async with scene.edge() as mine, scene.edge(tenant=Tenant("other")) as theirs:
        await post(mine)
        await post(theirs)
    assert len(scene.workers.calls) == 2


@pytest.mark.parametrize("body", [ASKED, STREAMED], ids=["whole", "streamed"])
async def test_a_run_with_a_key_outlives_a_hang_up_and_answers_the_retry(body: dict[str, Any]) -> None:
    gate = asyncio.Event()
    scene = Scene(Reply("forty-two", gate=gate))
    async with scene.edge() as edge:
        hung_up = asyncio.create_task(post(edge, body))
        await until(lambda: scene.workers.calls)
        hung_up.cancel()
        await asyncio.wait([hung_up])
        await asyncio.sleep(0.1)
        retry = asyncio.create_task(post(edge, body))
        await asyncio.sleep(0.1)
        gate.set()
        status, _, answer = await retry
    assert status == 200
    assert "forty-two" in json.dumps(answer)
    assert [end for end, _ in scene.workers.log] == ["begun", "completed"]


async def test_an_unheard_run_with_a_key_is_stopped_after_its_time() -> None:
    scene = Scene(Reply(gate=asyncio.Event()))
    async with scene.edge(idempotency_linger_s=0.1) as edge:
        hung_up = asyncio.create_task(post(edge))
        await until(lambda: scene.workers.calls)
        hung_up.cancel()
        await until(lambda: [end for end, _ in scene.workers.log] == ["begun", "cancelled"])
        await until(lambda: not scene.kept.items)


async def test_without_a_key_a_hang_up_stops_the_run_at_once() -> None:
    scene = Scene(Reply(gate=asyncio.Event()))
    async with scene.edge(idempotency_linger_s=STALL_S) as edge:
        hung_up = asyncio.create_task(post(edge, key=None))
        await until(lambda: scene.workers.calls)
        hung_up.cancel()
        await until(lambda: [end for end, _ in scene.workers.log] == ["begun", "cancelled"], SOON_S)


async def test_a_failed_run_gives_its_key_back() -> None:
    failure = PodiumError(Code.INVALID_REQUEST, "not like this", reason="UPSTREAM_REFUSED")
    scene = Scene(Reply(error=failure, permitted=False), Reply("forty-two"))
    async with scene.edge() as edge:
        failed, _, _ = await post(edge)
        status, _, answer = await post(edge)
    assert failed == 400
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == "forty-two"


async def test_a_gateway_that_died_holds_nobody_up_for_long() -> None:
    scene = Scene()
    async with scene.edge() as edge:
        # A claim of a gateway that renews no more.
        await post(edge)
        (key, item) = next(iter(scene.kept.items.items()))
        held = json.loads(item.data)
        claim = json.dumps({"run_id": "run_dead", "fingerprint": held["fingerprint"]}).encode()
        await scene.kept.put(key, claim, ttl_s=0.3)
        status, _, _ = await post(edge)
    assert status == 200
    assert len(scene.workers.calls) == 2


async def test_a_stream_that_waits_for_another_gateway_is_not_silent() -> None:
    gate = asyncio.Event()
    scene = Scene(Reply("forty-two", gate=gate))
    async with scene.edge() as first, scene.edge(first_byte_s=0.05, keep_alive_s=0.05) as second:
        posting = asyncio.create_task(post(first, STREAMED))
        await until(lambda: scene.workers.calls)
        waiting = asyncio.create_task(post(second, STREAMED))
        await until(lambda: second.edge.admission.count)
        await asyncio.sleep(0.5)
        gate.set()
        _, _, whole = await posting
        _, _, waited = await waiting
    assert waited.startswith(": ")
    assert waited.endswith(whole)
    assert len(scene.workers.calls) == 1


@pytest.mark.parametrize("key", ["", "k" * 256, "caf\u00e9"])
async def test_a_header_that_is_no_key_is_refused(key: str) -> None:
    scene = Scene()
    async with scene.edge() as edge:
        status, _, answer = await post(edge, key=key)
    assert (status, answer["error"]["param"]) == (400, "Idempotency-Key")


async def test_an_audit_that_cannot_answer_refuses_before_any_dispatch() -> None:
    scene = Scene()
    scene.kept.error = PodiumError(Code.AUDIT_UNAVAILABLE, "audit did not answer in time")
    async with scene.edge() as edge:
        status, _, answer = await post(edge)
        assert (status, answer["error"]["code"]) == (503, "audit_unavailable")
        assert edge.edge.admission.count == 0
    assert scene.workers.calls == []


async def test_every_place_is_given_back() -> None:
    scene = Scene()
    async with scene.edge() as edge:
        for _ in range(3):
            await post(edge)
        await post(edge, {**ASKED, "temperature": 1})
        await until(lambda: edge.edge.admission.count == 0)
