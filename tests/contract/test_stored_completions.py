"""Stored chat completions as the official OpenAI client uses them, through any gateway."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from podium_core.config.tenants import Tenant
from podium_core.domain.conversation import ItemKind
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.conversations import FakeConversations
from tests.fakes.gateway import COLLEAGUE_TOKEN, TOKEN, EdgeServer, running_edge
from tests.fakes.pools import pool, worker
from tests.fakes.worker import FakeWorkers, Reply

QUESTION: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "6 times 7?"}]


@asynccontextmanager
async def _client(**ports: Any) -> AsyncGenerator[tuple[AsyncOpenAI, EdgeServer], None]:
    async with (
        running_edge(**ports) as edge,
        AsyncOpenAI(api_key=TOKEN, base_url=f"{edge.url}/v1", max_retries=0) as client,
    ):
        yield client, edge


async def _ask(client: AsyncOpenAI, **changes: Any) -> Any:
    asked: Any = {"model": "worker/alpha", "messages": QUESTION, "store": True, **changes}
    return await client.chat.completions.create(**asked)


async def test_what_is_stored_is_read_relabelled_and_deleted_for_good_on_any_gateway() -> None:
    kept = FakeConversations()
    async with _client(conversations=kept) as (client, _):
        made = await _ask(client, metadata={"case": "7"})
    async with _client(conversations=kept) as (client, _):
        read = await client.chat.completions.retrieve(made.id)
        assert (read.id, read.choices, read.usage) == (made.id, made.choices, made.usage)
        assert read.to_dict()["metadata"] == {"case": "7"}
        messages = await client.chat.completions.messages.list(made.id)
        assert [(m.id, m.role, m.content) for m in messages.data] == [
            (f"{made.id}-0", "system", "Be brief."),
            (f"{made.id}-1", "user", "6 times 7?"),
        ]
        relabelled = await client.chat.completions.update(made.id, metadata={"case": "8"})
        assert relabelled.to_dict()["metadata"] == {"case": "8"}
        gone = await client.chat.completions.delete(made.id)
        assert (gone.id, gone.object, gone.deleted) == (made.id, "chat.completion.deleted", True)
        for call in (
            client.chat.completions.retrieve(made.id),
            client.chat.completions.delete(made.id),
            client.chat.completions.update(made.id, metadata={}),
            client.chat.completions.retrieve("chatcmpl-../../etc"),
        ):
            with pytest.raises(openai.NotFoundError) as caught:
                await call
            assert caught.value.code == "completion_not_found"
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.messages.list(made.id)
    assert not [key for key in kept.items if key.kind in (ItemKind.COMPLETION, ItemKind.COMPLETION_MESSAGES)]
    assert {what for what, _, _ in kept.recorded} == {"read", "deleted"}


async def test_a_streamed_completion_is_stored_whole() -> None:
    async with _client(workers=FakeWorkers(default=Reply("It is forty-two."))) as (client, _):
        stream = await _ask(client, stream=True)
        ids = {chunk.id async for chunk in stream}
        (name,) = ids
        read = await client.chat.completions.retrieve(name)
    assert read.choices[0].message.content == "It is forty-two."


async def test_the_list_is_paged_ordered_and_filtered() -> None:
    async with _client() as (client, _):
        made = [
            (
                await _ask(
                    client, model=f"worker/{'alpha' if n % 2 else 'beta'}", metadata={"n": str(n), "set": "a"}
                )
            ).id
            for n in range(5)
        ]
        await _ask(client, store=False)
        listed = [completion.id async for completion in client.chat.completions.list(limit=2)]
        assert listed == sorted(made)
        newest = await client.chat.completions.list(limit=2, order="desc")
        assert [completion.id for completion in newest.data] == sorted(made, reverse=True)[:2]
        assert newest.has_more
        seven = await client.chat.completions.list(metadata={"n": "3", "set": "a"})
        assert ([completion.id for completion in seven.data], seven.has_more) == ([made[3]], False)
        assert (await client.chat.completions.list(metadata={"n": "3", "set": "b"})).data == []
        alphas = await client.chat.completions.list(model="worker/alpha", limit=2)
        assert ([completion.id for completion in alphas.data], alphas.has_more) == ([made[1], made[3]], False)


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "²"}, "limit"),
        ({"order": "up"}, "order"),
        ({"before": "x"}, "before"),
        ({"after": "chatcmpl-x:y"}, "after"),
        ({"metadata[a]": "x" * 600}, "metadata.a"),
    ],
)
async def test_a_list_that_makes_no_sense_names_its_parameter(query: dict[str, str], param: str) -> None:
    async with _client() as (client, _):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.list(extra_query=query)
    assert caught.value.param == param


async def test_a_completion_belongs_to_its_key() -> None:
    kept = FakeConversations()
    async with _client(conversations=kept) as (client, _):
        made = await _ask(client)
    for tenant, key in ((Tenant("other"), TOKEN), (Tenant("acme"), COLLEAGUE_TOKEN)):
        async with _client(conversations=kept, tenant=tenant) as (client, _):
            theirs = client.with_options(api_key=key).chat.completions
            assert (await theirs.list()).data == []
            for call in (theirs.retrieve(made.id), theirs.delete(made.id), theirs.messages.list(made.id)):
                with pytest.raises(openai.NotFoundError):
                    await call


async def test_a_tenant_whose_words_are_not_kept_cannot_store_and_hears_why() -> None:
    workers = FakeWorkers()
    async with _client(tenant=Tenant("acme", keeps_content=False), workers=workers) as (client, _):
        with pytest.raises(openai.BadRequestError) as caught:
            await _ask(client)
        assert (caught.value.param, caught.value.code) == ("store", "content_not_kept")
        assert (await _ask(client, store=False)).choices
    assert len(workers.calls) == 1


async def test_an_answer_that_cannot_be_stored_is_given_all_the_same() -> None:
    kept = FakeConversations()
    async with _client(conversations=kept) as (client, _):
        kept.error = PodiumError(Code.AUDIT_UNAVAILABLE, "cannot commit")
        made = await _ask(client)
        kept.error = None
        assert made.choices[0].message.content == "an answer"
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.retrieve(made.id)


async def test_only_metadata_can_be_changed() -> None:
    async with _client() as (client, _):
        made = await _ask(client)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.update(made.id, metadata={}, extra_body={"choices": []})
        assert caught.value.param == "choices"
        odd: Any
        for odd in ([], "x", {"a": 1}):
            with pytest.raises(openai.BadRequestError):
                await client.chat.completions.update(made.id, metadata=odd)


async def test_parts_of_a_stored_question_come_back_as_they_were_sent() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts = [{"type": "text", "text": "What is this?"}, image]
    seeing = pool(worker("alpha", modalities=frozenset({"text", "image"})))
    async with _client(workers_of=seeing) as (client, _):
        made = await _ask(client, messages=[{"role": "user", "content": parts}])
        (message,) = (await client.chat.completions.messages.list(made.id)).data
    assert message.content is None
    assert message.to_dict()["content_parts"] == parts
