"""The official Anthropic client, unchanged, against the gateway's edge."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anthropic
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import MessageParam, ToolParam

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import Usage
from tests.fakes.gateway import TOKEN, EdgeServer, running_edge
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

ASKED: list[MessageParam] = [{"role": "user", "content": "What is 6 times 7?"}]
TOOL: ToolParam = {
    "name": "look",
    "description": "Looks a word up",
    "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}},
}


@asynccontextmanager
async def _client(**ports: Any) -> AsyncGenerator[tuple[AsyncAnthropic, EdgeServer], None]:
    async with (
        running_edge(**ports) as edge,
        AsyncAnthropic(api_key=TOKEN, base_url=edge.url, max_retries=0) as client,
    ):
        yield client, edge


async def _read(stream: Any, names: list[str]) -> None:
    async for event in stream:
        names += [event.type]


def _call(index: int, name: str, arguments: str, call_id: str) -> dict[str, object]:
    return {
        "index": index,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


async def test_a_whole_answer_with_the_key_in_its_own_header() -> None:
    planner = FakePlanner(plan_of(("alpha", "compute", ()), ("beta", "say it", (0,))), usage=Usage(100, 20))
    workers = FakeWorkers({"beta": Reply("It is 42.", usage=Usage(30, 4, 8, 2, 1))})
    async with _client(planner=planner, workers=workers) as (client, _):
        raw = await client.messages.with_raw_response.create(model="podium", max_tokens=50, messages=ASKED)
        answer = await raw.parse()
    assert [block.to_dict() for block in answer.content] == [{"type": "text", "text": "It is 42."}]
    assert (answer.type, answer.role, answer.stop_reason) == ("message", "assistant", "end_turn")
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens) == (20, 4)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (8, 2)
    assert usage.to_dict()["orchestration_input_tokens"] == 110
    podium = answer.to_dict()["podium"]
    assert isinstance(podium, dict)
    assert podium["receipt"]["run_id"] == raw.headers["x-podium-run-id"] == raw.headers["request-id"]
    assert workers.calls[-1].max_output_tokens == 50


async def test_a_streamed_answer_as_the_clients_own_accumulator_reads_it() -> None:
    workers = FakeWorkers(
        default=Reply("one two three", reasoning="count", usage=Usage(9, 3), finish_reason="length")
    )
    async with (
        _client(workers=workers) as (client, _),
        client.messages.stream(model="podium", max_tokens=50, messages=ASKED) as stream,
    ):
        names = [event.type async for event in stream]
        final = await stream.get_final_message()
    assert [block.type for block in final.content] == ["thinking", "text"]
    assert (final.content[0].thinking, final.content[1].text) == ("count", "one two three")  # type: ignore[union-attr]
    assert (final.stop_reason, final.usage.input_tokens, final.usage.output_tokens) == ("max_tokens", 9, 3)
    assert [name for name in names if name.startswith(("message", "content_block_st"))] == [
        "message_start",
        *("content_block_start", "content_block_stop") * 2,
        "message_delta",
        "message_stop",
    ]


async def test_disabled_thinking_shows_none() -> None:
    async with _client(workers=FakeWorkers(default=Reply("yes", reasoning="hm"))) as (client, _):
        answer = await client.messages.create(
            model="podium", max_tokens=9, messages=ASKED, thinking={"type": "disabled"}
        )
    assert [block.type for block in answer.content] == ["text"]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_parallel_tool_calls_even_when_their_pieces_are_interleaved(is_streamed: bool) -> None:
    pieces = (
        _call(0, "look", '{"wor', "call_a"),
        _call(1, "look", '{"word":', "call_b"),
        {"index": 0, "function": {"arguments": 'd": "x"}'}},
        {"index": 1, "function": {"arguments": ' "y"}'}},
    )
    whole = (_call(0, "look", '{"word": "x"}', "call_a"), _call(1, "look", '{"word": "y"}', "call_b"))
    reply = Reply("", tool_calls=pieces if is_streamed else whole, finish_reason="tool_calls")
    able = pool(worker("alpha", features=frozenset({"tools"})))
    async with _client(workers=FakeWorkers(default=reply), workers_of=able) as (client, edge):
        asked: Any = {"model": "podium-fast", "max_tokens": 9, "messages": ASKED, "tools": [TOOL]}
        if is_streamed:
            async with client.messages.stream(**asked) as stream:
                answer: Any = await stream.get_final_message()
        else:
            answer = await client.messages.create(**asked)
        del edge
    assert answer.stop_reason == "tool_use"
    assert [(b.type, b.name, b.input) for b in answer.content] == [
        ("tool_use", "look", {"word": "x"}),
        ("tool_use", "look", {"word": "y"}),
    ]


async def test_what_a_worker_reads_of_tools_results_images_and_thoughts() -> None:
    looks: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    workers = FakeWorkers(default=Reply("", tool_calls=(looks,), finish_reason="tool_calls"))
    able = pool(worker("alpha", features=frozenset({"tools"}), modalities=frozenset({"text", "image"})))
    source: Any = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    history: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "secret", "signature": "abc"},
                {"type": "text", "text": "looking"},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"word": "x"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "gone", "is_error": True},
                {"type": "image", "source": source},
                {"type": "text", "text": "and now?"},
            ],
        },
    ]
    async with _client(workers=workers, workers_of=able) as (client, _):
        await client.messages.create(
            model="worker/alpha",
            max_tokens=9,
            system=[{"type": "text", "text": "Be brief."}],
            messages=history,
            tools=[TOOL],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
            stop_sequences=["END"],
        )
    (call,) = workers.calls
    sent = [message.fields for message in (*call.prompt.history, call.prompt.question)]
    function = {"name": "look", "arguments": '{"word": "x"}'}
    assert sent == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "looking",
            "tool_calls": [{"id": "toolu_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": "Error: gone"},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                {"type": "text", "text": "and now?"},
            ],
        },
    ]
    assert call.parameters["tool_choice"] == "required"
    assert call.parameters["parallel_tool_calls"] is False
    assert call.parameters["stop"] == ["END"]
    assert call.parameters["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": "Looks a word up",
                "parameters": TOOL["input_schema"],
            },
        }
    ]


async def test_tokens_are_counted_without_a_run() -> None:
    recorder = FakeRecorder()
    async with _client(recorder=recorder) as (client, _):
        short = await client.messages.count_tokens(model="podium", messages=ASKED)
        long = await client.messages.count_tokens(
            model="podium", messages=ASKED, system="word " * 400, tools=[TOOL]
        )
    assert 4 <= short.input_tokens < 20
    assert long.input_tokens > short.input_tokens + 400
    assert recorder.runs == {}


@pytest.mark.parametrize(
    ("changes", "param", "code"),
    [
        (
            {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            "tools[0].type",
            "unsupported_tool",
        ),
        ({"top_k": 5}, "top_k", "unsupported_parameter"),
        ({"api_base": "http://x"}, "api_base", "unknown_parameter"),
        ({"max_tokens": 0}, "max_tokens", "invalid_value"),
        (
            {"messages": [{"role": "user", "content": [{"type": "video"}]}]},
            "messages[0].content[0].type",
            "invalid_value",
        ),
    ],
)
async def test_what_cannot_be_honoured_is_refused_by_name(
    changes: dict[str, Any], param: str, code: str
) -> None:
    async with _client() as (client, _):
        asked: dict[str, Any] = {"max_tokens": 5, "messages": ASKED, **changes}
        messages, limit = asked.pop("messages"), asked.pop("max_tokens")
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.messages.create(
                model="podium", max_tokens=limit, messages=messages, extra_body=asked
            )
    body: Any = caught.value.body
    assert body["type"] == "error"
    assert (body["error"]["type"], body["error"]["param"], body["error"]["code"]) == (
        "invalid_request_error",
        param,
        code,
    )


async def test_errors_are_the_clients_own_classes() -> None:
    async with _client() as (client, edge):
        with pytest.raises(anthropic.NotFoundError):
            await client.messages.create(model="claude-9", max_tokens=5, messages=ASKED)
        stranger = client.with_options(api_key="pk_wrong")
        with pytest.raises(anthropic.AuthenticationError):
            await stranger.messages.create(model="podium", max_tokens=5, messages=ASKED)
        edge.pool.pool = PodiumError(Code.UNAVAILABLE, "later", retry_after_s=1)
        with pytest.raises(anthropic.APIStatusError) as caught:
            await client.messages.create(model="podium", max_tokens=5, messages=ASKED)
    assert caught.value.status_code == 503
    assert caught.value.body["error"]["type"] == "overloaded_error"  # type: ignore[index]


async def test_a_failure_within_the_stream_is_an_error_and_never_a_stop() -> None:
    cut = PodiumError(Code.PROVIDER_FAILED, "the worker's answer ended early", reason="STREAM_INCOMPLETE")
    workers = FakeWorkers(default=Reply("one two", error=cut, pieces_before_error=1))
    names: list[str] = []
    async with _client(workers=workers) as (client, _):
        stream = await client.messages.create(model="podium", max_tokens=5, messages=ASKED, stream=True)
        with pytest.raises(anthropic.APIStatusError) as caught:
            await _read(stream, names)
    assert "stream_incomplete" in str(caught.value.body)
    assert "message_stop" not in names


async def test_silence_is_broken_by_pings_that_event_readers_see() -> None:
    gate = asyncio.Event()
    workers = FakeWorkers(default=Reply("late", gate=gate))
    seen: list[str] = []
    async with (
        running_edge(workers=workers, first_byte_s=0.05, keep_alive_s=0.05) as edge,
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.post(
            f"{edge.url}/v1/messages",
            json={"model": "podium", "max_tokens": 5, "messages": ASKED, "stream": True},
        ) as response,
    ):
        async for line in response.content:
            if line.startswith(b"data: "):
                seen.append(json.loads(line.removeprefix(b"data: "))["type"])
                if seen.count("ping") == 3:
                    gate.set()
    assert seen[:2] == ["message_start", "ping"]
    assert seen.count("message_start") == 1
    assert seen[-1] == "message_stop"


async def test_a_dry_run_dispatches_nothing() -> None:
    workers = FakeWorkers()
    async with _client(workers=workers) as (client, _):
        answer = await client.messages.create(
            model="podium", max_tokens=5, messages=ASKED, extra_body={"podium": {"dry_run": True}}
        )
    assert answer.content == []
    assert answer.to_dict()["podium"]["plan"]["steps"]  # type: ignore[index]
    assert workers.calls == []


async def test_a_schema_and_an_effort_reach_the_worker_in_its_own_words() -> None:
    workers = FakeWorkers(default=Reply('{"n": 42}'))
    able = pool(worker("alpha", features=frozenset({"json_schema", "reasoning_effort"})))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with _client(workers=workers, workers_of=able) as (client, _):
        answer = await client.messages.create(
            model="podium",
            max_tokens=5,
            messages=ASKED,
            extra_body={"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        )
    assert answer.content[0].text == '{"n": 42}'  # type: ignore[union-attr]
    wanted: Any = workers.calls[-1].parameters["response_format"]
    assert wanted["json_schema"]["schema"] == schema
