"""The official OpenAI client, unchanged, against the gateway's edge."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import Usage
from tests.fakes.gateway import TOKEN, EdgeServer, running_edge
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is 6 times 7?"}]
TOOL: ChatCompletionToolParam = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}


@asynccontextmanager
async def _client(**ports: Any) -> AsyncGenerator[tuple[AsyncOpenAI, EdgeServer], None]:
    async with (
        running_edge(**ports) as edge,
        AsyncOpenAI(api_key=TOKEN, base_url=f"{edge.url}/v1", max_retries=0) as client,
    ):
        yield client, edge


async def test_a_whole_answer() -> None:
    planner = FakePlanner(plan_of(("alpha", "compute", ()), ("beta", "say it", (0,))), usage=Usage(100, 20))
    workers = FakeWorkers({"beta": Reply("It is 42.", usage=Usage(30, 4, 8, 0, 1))})
    async with _client(planner=planner, workers=workers) as (client, _):
        raw = await client.chat.completions.with_raw_response.create(model="podium", messages=ASKED)
        answer = raw.parse()
    assert answer.choices[0].message.content == "It is 42."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (
        30,
        4,
        34,
    )
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 8
    details = answer.usage.to_dict()
    assert details["prompt_tokens_details"]["orchestration_input_tokens"] == 110  # type: ignore[index]
    podium = answer.to_dict()["podium"]
    assert isinstance(podium, dict)
    assert [step["worker"] for step in podium["plan"]["steps"]] == ["alpha", "beta"]
    assert podium["usage"]["billed"]["total_tokens"] == 34 + 15 + 120
    assert podium["receipt"]["run_id"] == podium["run_id"] == raw.headers["x-podium-run-id"]


async def test_a_streamed_answer_with_usage() -> None:
    async with _client(workers=FakeWorkers(default=Reply("one two three"))) as (client, _):
        stream = await client.chat.completions.create(
            model="podium", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "one two three"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert [bool(c.usage) for c in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []
    receipts = [c.to_dict()["podium"] for c in chunks if "podium" in c.to_dict()]
    assert len(receipts) == 1


async def test_the_clients_own_stream_accumulator() -> None:
    workers = FakeWorkers(default=Reply("one two three"))
    async with (
        _client(workers=workers) as (client, _),
        client.chat.completions.stream(model="podium", messages=ASKED) as stream,
    ):
        events = [event.type async for event in stream]
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == "one two three"
    assert "content.done" in events


async def test_step_events_do_not_disturb_a_typed_reader() -> None:
    async with _client() as (client, _):
        stream = await client.chat.completions.create(
            model="podium", messages=ASKED, stream=True, extra_body={"podium": {"events": True}}
        )
        texts, events = [], []
        async for chunk in stream:
            texts += [choice.delta.content or "" for choice in chunk.choices]
            event: Any = chunk.to_dict().get("podium", {})
            events.append(event.get("event"))
    assert "".join(texts) == "an answer"
    assert [e for e in events if e] == ["planned", "step_started", "step_ended"]


async def test_tool_calls_streamed_and_whole() -> None:
    call: dict[str, object] = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "look", "arguments": '{"a":1}'},
    }
    skilled = pool(worker("alpha", features=frozenset({"tools"})), worker("beta"))
    workers = FakeWorkers(default=Reply("", tool_calls=(call,), finish_reason="tool_calls"))
    async with _client(workers=workers, workers_of=skilled) as (client, _):
        answer = await client.chat.completions.create(model="podium", messages=ASKED, tools=[TOOL])
        async with client.chat.completions.stream(model="podium", messages=ASKED, tools=[TOOL]) as stream:
            final = await stream.get_final_completion()
    for message in (answer.choices[0].message, final.choices[0].message):
        assert message.tool_calls is not None
        assert message.tool_calls[0].function.arguments == '{"a":1}'  # type: ignore[union-attr]
        assert message.tool_calls[0].id.startswith("pod_")
    assert answer.choices[0].finish_reason == final.choices[0].finish_reason == "tool_calls"
    assert workers.calls[0].parameters["tools"] == [TOOL]


async def test_models_are_listed_and_described() -> None:
    async with _client() as (client, _):
        listed = [model.id async for model in client.models.list()]
        one = await client.models.retrieve("worker/alpha")
    assert listed == ["podium", "podium-fast", "podium-max", "worker/alpha", "worker/beta"]
    assert (one.id, one.object) == ("worker/alpha", "model")


async def test_a_named_worker_answers_alone() -> None:
    workers = FakeWorkers()
    planner = FakePlanner()
    async with _client(workers=workers, planner=planner) as (client, _):
        answer = await client.chat.completions.create(model="worker/beta", messages=ASKED, temperature=0.5)
    assert answer.model == "worker/beta"
    assert [call.worker_id for call in workers.calls] == ["beta"]
    assert workers.calls[0].parameters == {"temperature": 0.5}
    assert not planner.queries


async def test_errors_arrive_as_the_clients_own_types() -> None:
    async with _client() as (client, edge):
        with pytest.raises(openai.NotFoundError) as missing:
            await client.chat.completions.create(model="gpt-9", messages=ASKED)
        assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.BadRequestError) as bad:
            await client.chat.completions.create(
                model="podium", messages=ASKED, extra_body={"podium": {"budget": 3}}
            )
        assert bad.value.param == "podium.budget"
        with pytest.raises(openai.PermissionDeniedError):
            await client.chat.completions.create(
                model="podium",
                messages=ASKED,
                extra_body={"podium": {"workers": {"except": ["alpha", "beta"]}}},
            )
        async with AsyncOpenAI(api_key="podium_x", base_url=f"{edge.url}/v1", max_retries=0) as stranger:
            with pytest.raises(openai.AuthenticationError):
                await stranger.chat.completions.create(model="podium", messages=ASKED)


@pytest.mark.parametrize(("code", "requests"), [(Code.BUDGET_EXHAUSTED, 1), (Code.AUDIT_UNAVAILABLE, 3)])
async def test_the_client_retries_only_what_can_help(code: Code, requests: int) -> None:
    recorder = FakeRecorder()
    recorder.open_errors = [PodiumError(code, "no", retry_after_s=0.01) for _ in range(5)]
    async with (
        running_edge(recorder=recorder) as edge,
        AsyncOpenAI(api_key=TOKEN, base_url=f"{edge.url}/v1", max_retries=2) as client,
    ):
        with pytest.raises(openai.APIStatusError):
            await client.chat.completions.create(model="podium", messages=ASKED)
    assert 5 - len(recorder.open_errors) == requests


async def test_a_failure_after_the_first_byte_is_raised_by_the_client() -> None:
    failing = Reply("a b c", error=PodiumError(Code.PROVIDER_FAILED, "cut off"), pieces_before_error=2)
    async with _client(workers=FakeWorkers(default=failing)) as (client, _):
        stream = await client.chat.completions.create(model="podium", messages=ASKED, stream=True)
        texts: list[str] = []

        async def read() -> None:
            async for chunk in stream:
                texts.extend(choice.delta.content or "" for choice in chunk.choices)

        with pytest.raises(openai.APIError, match="cut off"):
            await read()
    assert "".join(texts) == "a b "
