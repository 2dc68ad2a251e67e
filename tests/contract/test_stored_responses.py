"""Stored and background responses as the official OpenAI client uses them, through any gateway."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import openai
import pytest
from openai import AsyncOpenAI

from podium_core.config.tenants import Tenant
from podium_core.domain.conversation import ItemKey
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import RandomIds
from podium_gateway.stored import StoredResponse, StoredResponses
from tests.fakes.conversations import FakeConversations
from tests.fakes.gateway import AUDITOR_TOKEN, TOKEN, EdgeServer, running_edge, tenants
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.waiting import PATIENCE_S, SOON_S, until
from tests.fakes.worker import FakeWorkers, Reply

ASKED = "What is 6 times 7?"
TOOLS = pool(worker("alpha", features=frozenset({"tools"})))


@asynccontextmanager
async def _client(**ports: Any) -> AsyncGenerator[tuple[AsyncOpenAI, EdgeServer], None]:
    async with (
        running_edge(**ports) as edge,
        AsyncOpenAI(api_key=TOKEN, base_url=f"{edge.url}/v1", max_retries=0) as client,
    ):
        yield client, edge


async def _finished(client: AsyncOpenAI, response_id: str) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            response = await client.responses.retrieve(response_id)
            if response.status not in ("queued", "in_progress"):
                return response
            await asyncio.sleep(0.02)


async def test_a_conversation_goes_on_from_a_response_on_another_gateway() -> None:
    kept, workers = FakeConversations(), FakeWorkers(default=Reply("It is 42."))
    async with _client(conversations=kept) as (first, _):
        one = await first.responses.create(
            model="worker/alpha", input="Hello", instructions="Be brief.", tools=[]
        )
    async with _client(conversations=kept, workers=workers) as (second, _):
        two = await second.responses.create(
            model="worker/alpha", input=ASKED, previous_response_id=one.id, instructions="Be kind."
        )
        three = await second.responses.create(
            model="worker/alpha", input="Sure?", previous_response_id=two.id, store=False
        )
        with pytest.raises(openai.NotFoundError):
            await second.responses.retrieve(three.id)
    assert (one.to_dict()["store"], two.previous_response_id) == (True, one.id)
    prompt = workers.calls[-1].prompt
    sent = [(message.role, message.text) for message in (*prompt.history, prompt.question)]
    assert sent == [
        ("user", "Hello"),
        ("assistant", "an answer"),
        ("user", ASKED),
        ("assistant", "It is 42."),
        ("user", "Sure?"),
    ]


async def test_tool_results_may_follow_a_stored_call_alone() -> None:
    call: dict[str, object] = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
    }
    asking = Reply("", tool_calls=(call,), finish_reason="tool_calls")
    workers = FakeWorkers({"alpha": [asking, Reply("found")]})
    tool: Any = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
    async with _client(workers=workers, workers_of=TOOLS) as (client, _):
        one = await client.responses.create(model="worker/alpha", input=ASKED, tools=[tool])
        (item,) = one.output
        assert item.type == "function_call"
        two = await client.responses.create(
            model="worker/alpha",
            previous_response_id=one.id,
            tools=[tool],
            input=[{"type": "function_call_output", "call_id": item.call_id, "output": "here"}],
        )
    assert two.output_text == "found"


async def test_what_is_stored_can_be_read_and_is_deleted_for_good() -> None:
    kept = FakeConversations()
    async with _client(conversations=kept) as (client, _):
        made = await client.responses.create(model="podium", input=ASKED)
        read = await client.responses.retrieve(made.id)
        assert read.to_dict() == made.to_dict()
        await client.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(made.id)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model="podium", input="x", previous_response_id=made.id)
    assert caught.value.param == "previous_response_id"
    assert kept.items == {}
    assert [(what, principal) for what, _, principal in kept.recorded] == [
        ("read", "key-1"),
        ("deleted", "key-1"),
    ]


async def test_a_response_belongs_to_its_key() -> None:
    kept = FakeConversations()
    async with running_edge(conversations=kept) as edge:
        stored = StoredResponses(kept, kept.clock, 60)
        known = tenants()
        owner, other = (known.authenticate(token, 0) for token in (TOKEN, AUDITOR_TOKEN))
        assert owner is not None
        assert other is not None
        await stored.put(owner, StoredResponse({"id": "resp_1", "status": "completed"}), "run_1")
        assert (await stored.get(owner, "resp_1")).is_finished
        for stranger, name in ((other, "resp_1"), (owner, "resp_2"), (owner, "../resp_1"), (owner, "run_1")):
            with pytest.raises(PodiumError) as caught:
                await stored.get(stranger, name)
            assert caught.value.code is Code.NOT_FOUND
        del edge


async def test_an_answer_that_cannot_be_stored_is_given_all_the_same() -> None:
    kept = FakeConversations(error=PodiumError(Code.AUDIT_UNAVAILABLE, "later"))
    async with _client(conversations=kept) as (client, _):
        answer = await client.responses.create(model="podium", input=ASKED)
    assert answer.output_text == "an answer"


async def test_a_tenant_whose_words_are_not_kept_is_not_told_that_they_are() -> None:
    kept = FakeConversations()
    async with _client(conversations=kept, tenant=Tenant("acme", keeps_content=False)) as (client, _):
        answer = await client.responses.create(model="podium", input=ASKED)
    assert (answer.output_text, answer.to_dict()["store"]) == ("an answer", False)
    assert kept.items == {}


async def test_background_is_polled_on_any_gateway() -> None:
    kept, gate = FakeConversations(), asyncio.Event()
    workers = FakeWorkers(default=Reply("It is 42.", gate=gate))
    async with (
        _client(conversations=kept, workers=workers) as (client, _),
        _client(conversations=kept) as (other, _),
    ):
        begun = await client.responses.create(model="podium", input=ASKED, background=True)
        assert (begun.status, begun.background) == ("in_progress", True)
        assert (await other.responses.retrieve(begun.id)).status == "in_progress"
        gate.set()
        done = await _finished(other, begun.id)
        here = await _finished(client, begun.id)
        follow = await other.responses.create(model="podium", input="Sure?", previous_response_id=begun.id)
    assert (done.status, done.output_text, done.id) == ("completed", "It is 42.", begun.id)
    assert here.to_dict() == done.to_dict()
    assert follow.status == "completed"
    assert done.to_dict()["podium"]["receipt"]


async def _read(edge: EdgeServer, response_id: str, after: int) -> list[dict[str, Any]]:
    url = f"{edge.url}/v1/responses/{response_id}?stream=true&starting_after={after}"
    async with aiohttp.ClientSession(headers=edge.auth) as session, session.get(url) as response:
        assert response.status == 200, await response.text()
        lines = [line async for line in response.content]
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]


async def test_a_cut_stream_is_resumed_here_and_elsewhere_without_loss_or_repetition() -> None:
    kept, gate = FakeConversations(), asyncio.Event()
    workers = FakeWorkers(default=Reply("one two three", end_gate=gate))
    seen: list[Any] = []
    async with (
        _client(conversations=kept, workers=workers) as (client, edge),
        running_edge(conversations=kept) as other,
    ):
        stream = await client.responses.create(model="podium", input=ASKED, background=True, stream=True)
        async for event in stream:
            seen.append(event.to_dict())
            if event.type == "response.output_text.delta":
                break
        await stream.close()
        response_id, last = seen[0]["response"]["id"], seen[-1]["sequence_number"]
        readers = [asyncio.create_task(_read(where, response_id, last)) for where in (edge, other)]
        await asyncio.sleep(0.1)
        gate.set()
        here, elsewhere = await asyncio.gather(*readers)
        later = await _read(edge, response_id, last)
        whole = await _read(other, response_id, -1)
    text = "".join(e["delta"] for e in seen if e["type"] == "response.output_text.delta")
    for rest in (here, elsewhere, later):
        told = [event for event in rest if event["type"] != "response.in_progress"]
        numbers = [event["sequence_number"] for event in told]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > last
        more = "".join(e["delta"] for e in told if e["type"] == "response.output_text.delta")
        assert text + more == "one two three"
        assert rest[-1]["type"] == "response.completed"
    assert [event["type"] for event in whole][:2] == ["response.created", "response.in_progress"]


async def test_following_takes_a_place_and_gives_it_back() -> None:
    kept, gate = FakeConversations(), asyncio.Event()
    workers = FakeWorkers(default=Reply(gate=gate))
    async with (
        _client(conversations=kept, workers=workers) as (client, _),
        running_edge(conversations=kept, max_concurrent_runs=1) as full,
    ):
        begun = await client.responses.create(model="podium", input=ASKED, background=True)
        following = asyncio.create_task(_read(full, begun.id, -1))
        await until(lambda: full.edge.admission.count == 1)
        second = client.with_options(base_url=f"{full.url}/v1").responses
        with pytest.raises(openai.RateLimitError):
            await second.retrieve(begun.id, stream=True)
        assert (await second.retrieve(begun.id)).status == "in_progress", "reading once takes none"
        gate.set()
        assert (await following)[-1]["type"] == "response.completed"
        await until(lambda: not full.edge.admission.count)


async def test_cancelling_stops_the_run_and_seals_it() -> None:
    recorder, gate = FakeRecorder(), asyncio.Event()
    workers = FakeWorkers(default=Reply(gate=gate))
    async with _client(recorder=recorder, workers=workers) as (client, _):
        begun = await client.responses.create(model="podium", input=ASKED, background=True)
        await until(lambda: workers.log)
        stopped = await client.responses.cancel(begun.id)
        again = await client.responses.cancel(begun.id)
    assert (stopped.status, again.status) == ("cancelled", "cancelled")
    assert [what for what, _ in workers.log] == ["begun", "cancelled"]
    assert recorder.only.sealed is not None
    assert recorder.only.sealed.outcome.value == "cancelled"


async def test_cancelling_reaches_the_gateway_that_performs_the_run() -> None:
    kept, gate = FakeConversations(), asyncio.Event()
    workers = FakeWorkers(default=Reply(gate=gate))
    async with (
        _client(conversations=kept, workers=workers) as (client, edge),
        _client(conversations=kept) as (other, _),
    ):
        begun = await client.responses.create(model="podium", input=ASKED, background=True)
        cancelling = asyncio.create_task(other.responses.cancel(begun.id))
        await until(lambda: kept.stopped)
        ((tenant_id, run_id, principal_id),) = kept.stopped
        edge.leases.stops[run_id](PodiumError(Code.CANCELLED, "somebody stopped the run"))
        stopped = await cancelling
    assert (tenant_id, principal_id) == ("acme", "key-1")
    assert stopped.status == "cancelled"


async def test_a_background_response_whose_gateway_died_has_failed() -> None:
    kept = FakeConversations()
    owner = tenants().authenticate(TOKEN, 0)
    assert owner is not None
    stored = StoredResponses(kept, kept.clock, 60)
    await stored.put(owner, StoredResponse({"id": "resp_1", "status": "in_progress"}), "run_1", alive_s=-1)
    async with _client(conversations=kept) as (client, _):
        found = await client.responses.retrieve("resp_1")
    assert found.status == "failed"
    assert found.error is not None


async def test_a_failed_run_is_a_failed_response() -> None:
    cut = PodiumError(Code.PROVIDER_FAILED, "no", reason="STREAM_INCOMPLETE")
    async with _client(workers=FakeWorkers(default=Reply(error=cut))) as (client, _):
        begun = await client.responses.create(model="podium", input=ASKED, background=True)
        done = await _finished(client, begun.id)
    assert done.status == "failed"
    assert done.to_dict()["error"]["reason"] == "stream_incomplete"


class _Stuck(FakeConversations):
    """Never finishes keeping anything."""

    async def put(self, key: ItemKey, data: bytes, **_: Any) -> int:
        await asyncio.Event().wait()
        return 0


async def test_a_hang_up_before_the_id_is_known_stops_the_run() -> None:
    recorder, gate = FakeRecorder(), asyncio.Event()
    workers = FakeWorkers(default=Reply(gate=gate))
    async with _client(conversations=_Stuck(), recorder=recorder, workers=workers) as (client, edge):
        begin = client.responses.create(model="podium", input=ASKED, background=True)
        asking = asyncio.ensure_future(begin)
        await until(lambda: workers.log)
        asking.cancel()
        assert await edge.edge.admission.empty(SOON_S)
    assert recorder.only.sealed is not None
    assert recorder.only.sealed.outcome.value == "cancelled"


async def test_background_without_a_place_to_keep_it_starts_nothing() -> None:
    workers = FakeWorkers()
    kept = FakeConversations(error=PodiumError(Code.AUDIT_UNAVAILABLE, "later"))
    async with _client(conversations=kept, workers=workers) as (client, edge):
        with pytest.raises(openai.InternalServerError):
            await client.responses.create(model="podium", input=ASKED, background=True)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model="podium", input=ASKED, background=True, store=False)
        await edge.edge.admission.empty(SOON_S)
    assert caught.value.param == "background"
    assert not any(what == "completed" for what, _ in workers.log)


def test_ids_of_responses_fit_clients_and_the_store() -> None:
    run_id = RandomIds(FakeConversations().clock).new("run")
    assert run_id == f"run_{run_id.rpartition('_')[2]}"
    assert len(f"resp_{run_id.rpartition('_')[2]}") <= 40


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_what_is_deleted_while_it_is_performed_stops_and_does_not_come_back(elsewhere: bool) -> None:
    kept, recorder, gate = FakeConversations(), FakeRecorder(), asyncio.Event()
    workers = FakeWorkers(default=Reply(gate=gate))
    async with (
        _client(conversations=kept, workers=workers, recorder=recorder) as (client, edge),
        _client(conversations=kept) as (other, _),
    ):
        begun = await client.responses.create(model="podium", input=ASKED, background=True)
        await until(lambda: workers.log)
        await (other if elsewhere else client).responses.delete(begun.id)
        for _, run_id, _ in kept.stopped:
            edge.leases.stops[run_id](PodiumError(Code.CANCELLED, "somebody stopped the run"))
        await until(lambda: recorder.only.sealed is not None)
        await asyncio.sleep(0.1)
        for gateway in (client, other):
            with pytest.raises(openai.NotFoundError):
                await gateway.responses.retrieve(begun.id)
    assert recorder.only.sealed is not None
    assert recorder.only.sealed.outcome.value == "cancelled"
    assert kept.items == {}


async def test_calls_images_and_results_are_listed_as_they_were_sent() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
    asked: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "See"}, image]},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "42"},
        {"role": "user", "content": "Well?"},
    ]
    seeing = pool(worker("alpha", modalities=frozenset({"text", "image"})))
    async with _client(workers_of=seeing) as (client, _):
        made = await client.responses.create(model="worker/alpha", input=asked)
        page = (await client.responses.input_items.list(made.id, order="asc")).to_dict()
    listed: Any = page["data"]
    message, call, output, last = listed
    assert message["content"] == asked[0]["content"]
    assert {**call, **asked[1]} == call
    assert {**output, **asked[2]} == output
    assert last["content"] == [{"type": "input_text", "text": "Well?"}]


async def test_what_an_unfinished_response_was_asked_is_not_listed_yet() -> None:
    gate = asyncio.Event()
    async with _client(workers=FakeWorkers(default=Reply(gate=gate))) as (client, _):
        job = await client.responses.create(model="worker/alpha", input=ASKED, background=True)
        with pytest.raises(openai.ConflictError) as caught:
            await client.responses.input_items.list(job.id)
        assert caught.value.code == "response_unanswered"
        gate.set()
        await _finished(client, job.id)
        assert len((await client.responses.input_items.list(job.id)).data) == 1


async def test_what_a_response_was_asked_can_be_listed() -> None:
    kept = FakeConversations()
    asked: Any = [
        {"role": "user", "content": "Hello"},
        {"type": "message", "role": "assistant", "content": "Hi."},
        {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
    ]
    async with _client(conversations=kept) as (client, _):
        first = await client.responses.create(model="worker/alpha", input=asked)
        job = await client.responses.create(
            model="worker/alpha", input="Sure?", previous_response_id=first.id, background=True
        )
        await _finished(client, job.id)
    async with _client(conversations=kept) as (client, _):
        listed = [item.to_dict() async for item in client.responses.input_items.list(first.id, limit=2)]
        assert [item["content"][0] for item in listed] == [  # type: ignore[index]
            {"type": "input_text", "text": ASKED},
            {"type": "output_text", "text": "Hi."},
            {"type": "input_text", "text": "Hello"},
        ]
        oldest = await client.responses.input_items.list(first.id, order="asc", limit=1)
        assert (oldest.data[0].to_dict(), oldest.has_more) == (listed[2], True)
        (only,) = (await client.responses.input_items.list(job.id)).data
        assert only.to_dict()["content"] == [{"type": "input_text", "text": "Sure?"}]
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.input_items.list(first.id, after="unknown")
        assert caught.value.param == "after"
        await client.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.input_items.list(first.id)
