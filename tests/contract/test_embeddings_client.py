"""The official OpenAI client's embeddings, unchanged, against the gateway's edge."""

import base64
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import RunKind
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.gateway import TOKEN, EdgeServer, running_edge
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers

POOL = pool(worker("alpha"), worker("bge", features=frozenset({"embeddings"})))


@asynccontextmanager
async def _client(**ports: Any) -> AsyncGenerator[tuple[AsyncOpenAI, EdgeServer], None]:
    async with (
        running_edge(workers_of=POOL, **ports) as edge,
        AsyncOpenAI(api_key=TOKEN, base_url=f"{edge.url}/v1", max_retries=0) as client,
    ):
        yield client, edge


@pytest.mark.parametrize("form", [None, "float", "base64"])
async def test_vectors_as_numbers_and_in_base64(form: Any) -> None:
    embedder, recorder = FakeEmbedder(), FakeRecorder()
    async with _client(embedder=embedder, recorder=recorder) as (client, _):
        given = {} if form is None else {"encoding_format": form}
        made = await client.embeddings.create(
            model="worker/bge", input=["one", "three"], dimensions=2, **given
        )
    vectors = [item.embedding for item in made.data]
    if form == "base64":
        vectors = [list(struct.unpack("<2f", base64.b64decode(str(v)))) for v in vectors]
    assert vectors == [[0.0, 3.0], [1.0, 5.0]]
    assert [item.index for item in made.data] == [0, 1]
    assert (made.usage.prompt_tokens, made.usage.total_tokens) == (7, 7)
    (call,) = embedder.calls
    assert (call.worker_id, call.inputs, call.dimensions) == ("bge", ("one", "three"), 2)
    run = recorder.only
    assert run.opened.kind is RunKind.EMBED
    assert run.plans == []
    assert run.sealed is not None
    assert run.sealed.outcome.value == "answered"
    podium: Any = (made.model_extra or {})["podium"]
    assert podium["receipt"]
    assert podium["cost_usd_micros"] == 3


@pytest.mark.parametrize(
    ("given", "inputs"), [("text", ("text",)), ([1, 2], ([1, 2],)), ([[1], [2]], ([1], [2]))]
)
async def test_texts_and_token_numbers(given: Any, inputs: tuple[object, ...]) -> None:
    embedder = FakeEmbedder()
    async with _client(embedder=embedder) as (client, _):
        await client.embeddings.create(model="worker/bge", input=given)
    assert embedder.calls[0].inputs == inputs


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": "podium"}, "model"),
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": [[1], ["x"]]}, "input[1][0]"),
        ({"input": ["x"] * 2_049}, "input"),
        ({"dimensions": 0}, "dimensions"),
        ({"encoding_format": "int8"}, "encoding_format"),
        ({"truncate": True}, "the body.truncate"),
        ({"podium": {"dry_run": True}}, "podium"),
    ],
)
async def test_a_bad_field_is_named(changes: dict[str, Any], param: str) -> None:
    embedder = FakeEmbedder()
    async with _client(embedder=embedder) as (client, _):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.post(
                "/embeddings", body={"model": "worker/bge", "input": "x", **changes}, cast_to=object
            )
    assert caught.value.param == param
    assert embedder.calls == []


async def test_a_worker_does_only_what_it_is_for() -> None:
    embedder, workers = FakeEmbedder(), FakeWorkers()
    async with _client(embedder=embedder, workers=workers) as (client, _):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.embeddings.create(model="worker/alpha", input="x")
        assert "capability.embeddings" in str(caught.value)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(
                model="worker/bge", messages=[{"role": "user", "content": "x"}]
            )
        assert "capability.chat" in str(caught.value)
        listed = (await client.models.list()).to_dict()
    assert (embedder.calls, workers.calls) == ([], [])
    assert "worker/bge" in {model["id"] for model in listed["data"]}  # type: ignore[attr-defined]
    assert "worker/bge" not in {model["slug"] for model in listed["models"]}  # type: ignore[attr-defined]


async def test_a_failure_is_recorded_and_typed() -> None:
    recorder = FakeRecorder()
    embedder = FakeEmbedder(error=PodiumError(Code.PROVIDER_FAILED, "no", reason="PROVIDER_BAD_ANSWER"))
    async with _client(embedder=embedder, recorder=recorder) as (client, _):
        with pytest.raises(openai.InternalServerError) as caught:
            await client.embeddings.create(model="worker/bge", input="x")
    assert caught.value.code == "provider_bad_answer"
    assert recorder.only.sealed is not None
    assert recorder.only.sealed.outcome.value == "failed"
