"""The official OpenAI client's Responses, unchanged, against the gateway's edge; and readers of its events."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import openai
import pytest
from openai import AsyncOpenAI

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Pool
from podium_core.domain.usage import Usage
from tests.fakes.gateway import TOKEN, EdgeServer, running_edge
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

ASKED = "What is 6 times 7?"
TOOL: Any = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
PATCH = "*** Begin Patch\n*** Update File: a.py\n-x\n+y\n*** End Patch"
APPLY_PATCH: Any = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch hunk+ end_patch"},
}


def able(*features: str) -> Pool:
    """Return a pool of one worker that has the features."""
    return pool(worker("alpha", features=frozenset(features), modalities=frozenset({"text", "image"})))


def call_of(name: str, arguments: str, call_id: str = "call_1", index: int = 0) -> dict[str, object]:
    """Return a tool call as a worker makes it."""
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": call_id, "type": "function", "function": function}


@asynccontextmanager
async def _client(**ports: Any) -> AsyncGenerator[tuple[AsyncOpenAI, EdgeServer], None]:
    async with (
        running_edge(**ports) as edge,
        AsyncOpenAI(api_key=TOKEN, base_url=f"{edge.url}/v1", max_retries=0) as client,
    ):
        yield client, edge


async def _events(edge: EdgeServer, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Read a stream to its end as a reader of parsed events does, which never sees a comment."""
    async with (
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.post(
            f"{edge.url}/v1/responses", json={"model": "podium", "stream": True, **body}
        ) as response,
    ):
        assert response.status == 200, await response.text()
        lines = [line async for line in response.content]
    return [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")]


async def test_a_whole_answer_with_usage_of_the_last_step() -> None:
    planner = FakePlanner(plan_of(("alpha", "compute", ()), ("beta", "say it", (0,))), usage=Usage(100, 20))
    workers = FakeWorkers({"beta": Reply("It is 42.", usage=Usage(30, 4, 8, 0, 1))})
    async with _client(planner=planner, workers=workers) as (client, _):
        answer = await client.responses.create(
            model="podium", input=ASKED, instructions="Be brief.", metadata={"team": "x"}, temperature=0.5
        )
    assert (answer.status, answer.output_text) == ("completed", "It is 42.")
    assert (answer.instructions, answer.metadata, answer.temperature) == ("Be brief.", {"team": "x"}, 0.5)
    assert [item.type for item in answer.output] == ["message"]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (30, 4, 34)
    assert answer.usage.input_tokens_details.cached_tokens == 8
    details: Any = answer.usage.to_dict()
    assert details["input_tokens_details"]["orchestration_input_tokens"] == 110
    assert answer.to_dict()["podium"]["receipt"]  # type: ignore[index]
    first = workers.calls[0].prompt.history[0]
    assert (first.role, first.text) == ("system", "Be brief.")


async def test_a_streamed_answer_as_the_clients_own_accumulator_reads_it() -> None:
    workers = FakeWorkers(default=Reply("one two three", reasoning="count them"))
    async with (
        _client(workers=workers) as (client, _),
        client.responses.stream(model="podium", input=ASKED) as stream,
    ):
        events = [event async for event in stream]
        final = await stream.get_final_response()
    assert final.output_text == "one two three"
    assert [item.type for item in final.output] == ["reasoning", "message"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events if not event.type.endswith("delta")] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_text.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_parallel_function_calls_and_their_results(is_streamed: bool) -> None:
    calls = (call_of("look", '{"a":1}', "call_a", 0), call_of("look", '{"b":2}', "call_b", 1))
    workers = FakeWorkers(default=Reply("", tool_calls=calls, finish_reason="tool_calls"))
    async with _client(workers=workers, workers_of=able("tools")) as (client, _):
        asked: Any = {
            "model": "worker/alpha",
            "tools": [TOOL],
            "tool_choice": "required",
            "parallel_tool_calls": True,
        }
        if is_streamed:
            async with client.responses.stream(input=ASKED, **asked) as stream:
                answer: Any = await stream.get_final_response()
        else:
            answer = await client.responses.create(input=ASKED, **asked)
        assert [(item.type, item.name, item.arguments) for item in answer.output] == [
            ("function_call", "look", '{"a":1}'),
            ("function_call", "look", '{"b":2}'),
        ]
        ids = [item.call_id for item in answer.output]
        follow: list[Any] = [
            {"role": "user", "content": ASKED},
            *[item.to_dict() for item in answer.output],
            {"type": "function_call_output", "call_id": ids[0], "output": "one"},
            {
                "type": "function_call_output",
                "call_id": ids[1],
                "output": [
                    {"type": "input_text", "text": "two"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                ],
            },
        ]
        await client.responses.create(input=follow, **{**asked, "tool_choice": "auto"})
    prompt = workers.calls[-1].prompt
    sent = [message.fields for message in (*prompt.history, prompt.question)]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    made: Any = sent[1]["tool_calls"]
    assert [call["id"] for call in made] == ids
    assert [message["content"] for message in sent[2:4]] == ["one", "two"]
    assert workers.calls[0].parameters["tool_choice"] == "required"
    assert workers.calls[0].parameters["tools"] == [
        {
            "type": "function",
            "function": {"name": "look", "parameters": TOOL["parameters"], "strict": False},
        }
    ]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_freeform_patch_goes_through_a_worker_that_knows_only_functions(is_streamed: bool) -> None:
    wrapped = json.dumps({"input": PATCH})
    pieces = (
        call_of("apply_patch", wrapped[:9]),
        {"index": 0, "function": {"arguments": wrapped[9:]}},
    )
    reply = Reply(
        "",
        tool_calls=pieces if is_streamed else (call_of("apply_patch", wrapped),),
        finish_reason="tool_calls",
    )
    workers = FakeWorkers(default=reply)
    async with _client(workers=workers, workers_of=able("tools")) as (client, _):
        asked: Any = {"model": "worker/alpha", "tools": [APPLY_PATCH]}
        if is_streamed:
            async with client.responses.stream(input=ASKED, **asked) as stream:
                answer: Any = await stream.get_final_response()
        else:
            answer = await client.responses.create(input=ASKED, **asked)
        (item,) = answer.output
        assert (item.type, item.name, item.input) == ("custom_tool_call", "apply_patch", PATCH)
        follow: list[Any] = [
            {"role": "user", "content": ASKED},
            item.to_dict(),
            {"type": "custom_tool_call_output", "call_id": item.call_id, "output": "Done!"},
        ]
        await client.responses.create(input=follow, **asked)
    prompt = workers.calls[-1].prompt
    sent: list[Any] = [message.fields for message in (*prompt.history, prompt.question)]
    assert sent[1]["tool_calls"][0]["function"] == {"name": "apply_patch", "arguments": wrapped}
    assert sent[2] == {"role": "tool", "tool_call_id": "call_1", "content": "Done!"}
    tools: Any = workers.calls[0].parameters["tools"]
    assert tools[0]["type"] == "function"
    assert "begin_patch" in tools[0]["function"]["description"]
    assert tools[0]["function"]["parameters"]["required"] == ["input"]


async def test_summaries_show_the_plans_steps_while_they_run() -> None:
    planner = FakePlanner(plan_of(("alpha", "compute it", ()), ("beta", "say it", (0,))))
    workers = FakeWorkers({"beta": Reply("It is 42.")})
    async with running_edge(planner=planner, workers=workers) as edge:
        events = await _events(edge, {"input": ASKED, "reasoning": {"summary": "auto"}})
        plain = await _events(edge, {"input": ASKED})
    texts = [e["text"] for e in events if e["type"] == "response.reasoning_summary_text.done"]
    assert texts[0] == "**Planned 2 steps**\n\nBy alpha, then beta."
    assert texts[1] == "**Step 1: alpha**\n\ncompute it"
    assert texts[2].startswith("**Step 1: alpha done**")
    assert texts[3] == "**Step 2: beta**\n\nsay it"
    final = events[-1]["response"]
    assert [item["type"] for item in final["output"]] == ["reasoning", "message"]
    assert [part["text"] for part in final["output"][0]["summary"]] == texts
    assert final["reasoning"] == {"summary": "auto"}
    assert not any("summary" in event["type"] for event in plain)


async def test_silence_is_broken_by_typed_events_whose_numbers_rise() -> None:
    gate = asyncio.Event()
    workers = FakeWorkers(default=Reply("late", gate=gate))
    async with running_edge(workers=workers, first_byte_s=0.05, keep_alive_s=0.05) as edge:
        asyncio.get_running_loop().call_later(0.5, gate.set)
        events = await _events(edge, {"input": ASKED})
    assert sum(event["type"] == "response.in_progress" for event in events) >= 4
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    terminal = {"response.completed", "response.failed", "response.incomplete"}
    assert [event["type"] for event in events if event["type"] in terminal] == ["response.completed"]
    assert events[-1]["type"] == "response.completed"


@pytest.mark.parametrize(
    ("finish_reason", "why"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
async def test_a_cut_answer_is_incomplete_and_says_why(finish_reason: str, why: str) -> None:
    workers = FakeWorkers(default=Reply("It is", finish_reason=finish_reason))
    async with running_edge(workers=workers) as edge:
        events = await _events(edge, {"input": ASKED})
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": why}


async def test_a_failure_within_the_stream_is_one_terminal_event() -> None:
    cut = PodiumError(Code.PROVIDER_FAILED, "the worker's answer ended early", reason="STREAM_INCOMPLETE")
    workers = FakeWorkers(default=Reply("one two", error=cut, pieces_before_error=1))
    async with running_edge(workers=workers) as edge:
        events = await _events(edge, {"input": ASKED})
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"] == {
        "code": "server_error",
        "message": "the worker's answer ended early",
        "reason": "stream_incomplete",
    }
    assert events[-1]["response"]["podium"]["outcome"] == "failed"


async def test_without_a_seal_there_is_no_completion() -> None:
    lost = PodiumError(Code.AUDIT_UNAVAILABLE, "gone")
    async with running_edge(recorder=FakeRecorder(seal_errors=[lost] * 9), seal_wait_s=0.2) as edge:
        events = await _events(edge, {"input": ASKED})
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["reason"] == "seal_failed"


async def test_foreign_reasoning_and_searches_in_the_history_do_no_harm() -> None:
    workers = FakeWorkers()
    history: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "reasoning", "id": "rs_foreign", "summary": [], "encrypted_content": "gAAAA="},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hi", "annotations": []}],
        },
        {"role": "user", "content": ASKED},
    ]
    async with _client(workers=workers) as (client, _):
        await client.responses.create(
            model="worker/alpha", input=history, store=False, include=["reasoning.encrypted_content"]
        )
    prompt = workers.calls[0].prompt
    assert [message.fields for message in (*prompt.history, prompt.question)] == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": ASKED},
    ]


@pytest.mark.parametrize(
    ("changes", "param", "code"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "unsupported_tool"),
        ({"tools": [{"type": "code_interpreter", "container": {}}]}, "tools[0].type", "unsupported_tool"),
        ({"api_base": "http://x"}, "api_base", "unknown_parameter"),
        ({"prompt": {"id": "p"}}, "prompt", "unsupported_parameter"),
        ({"conversation": "conv_1"}, "conversation", "unsupported_parameter"),
        ({"truncation": "auto"}, "truncation", "invalid_value"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type", "unsupported_item"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
            "input[0].content[0].type",
            "unsupported_item",
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "name": "other"}},
            "tool_choice.name",
            "invalid_value",
        ),
    ],
)
async def test_what_cannot_be_honoured_is_refused_by_name(
    changes: dict[str, Any], param: str, code: str
) -> None:
    async with _client(workers_of=able("tools")) as (client, _):
        asked = {"input": ASKED, **changes}
        text = asked.pop("input")
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model="podium", input=text, extra_body=asked)
    assert (caught.value.param, caught.value.code) == (param, code)


async def test_a_schema_is_asked_of_the_worker() -> None:
    workers = FakeWorkers(default=Reply('{"n":42}'))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    text: Any = {"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}}
    async with _client(workers=workers, workers_of=able("json_schema")) as (client, _):
        answer = await client.responses.create(model="podium", input=ASKED, text=text)
    assert answer.output_text == '{"n":42}'
    assert workers.calls[-1].parameters["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": schema, "strict": True},
    }


async def test_allowed_tools_leave_the_others_out() -> None:
    workers = FakeWorkers()
    choice: Any = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]}
    async with _client(workers=workers, workers_of=able("tools")) as (client, _):
        await client.responses.create(
            model="podium", input=ASKED, tools=[TOOL, APPLY_PATCH], tool_choice=choice
        )
    tools: Any = workers.calls[-1].parameters["tools"]
    assert [tool["function"]["name"] for tool in tools] == ["look"]
    assert workers.calls[-1].parameters["tool_choice"] == "auto"
