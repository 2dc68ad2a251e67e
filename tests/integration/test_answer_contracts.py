"""JSON schemas, tool choices and several answers, from the client to the provider and the log."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.stack import running_stack
from tests.fakes.upstream import answer

SCHEMA = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
WANTED = {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA, "strict": True}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ABLE: dict[str, dict[str, Any]] = {"w": {"features": ["json_schema", "tools"]}, "v": {}}


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_fails_its_schema_is_repaired_once(
    tls_dir: Path, tmp_path: Path, stream: bool
) -> None:
    async with running_stack(tls_dir, tmp_path, workers=ABLE) as stack:
        stack.upstream.script.extend([answer('{"age":"three"}'), answer('{"age":3}')])
        if stream:
            came = await stack.stream(response_format=WANTED)
            text, podium = came.text, came.chunks[-1]["podium"]
            assert (came.finish_reasons, came.is_done) == (["stop"], True)
        else:
            status, body = await stack.ask(response_format=WANTED)
            assert status == 200
            text, podium = body["choices"][0]["message"]["content"], body["podium"]
        first, repair = stack.sent
        _, told = await stack.audit.get(f"/v1/runs/{podium['run_id']}")
    assert json.loads(text) == {"age": 3}
    assert first["response_format"] == repair["response_format"] == WANTED
    assert repair["messages"][:-2] == first["messages"]
    assert repair["messages"][-2] == {"role": "assistant", "content": '{"age":"three"}'}
    assert "$.age" in repair["messages"][-1]["content"]
    assert len(podium["steps"][0]["attempts"]) == 2
    assert podium["usage"]["billed"]["total_tokens"] == 34
    assert '"repair"' in json.dumps(told)


async def test_an_answer_that_never_meets_its_schema_is_an_error_and_not_lost(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with running_stack(tls_dir, tmp_path, workers=ABLE) as stack:
        stack.upstream.default = answer("I would say three.")
        async with stack.session.post(
            "/v1/chat/completions",
            json={
                "model": "worker/w",
                "messages": [{"role": "user", "content": "age?"}],
                "response_format": {"type": "json_object"},
            },
        ) as response:
            body = await response.json()
            assert response.headers["x-should-retry"] == "false"
        assert len(stack.sent) == 2
    assert (response.status, body["error"]["code"]) == (502, "schema_not_met")
    assert body["podium"]["unaccepted_answer"] == "I would say three."


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"$ref": "http://127.0.0.1:1/schema"}, "into the schema itself"),
        ({"$ref": "#/nowhere"}, "leads nowhere"),
        ({"type": "strung"}, "strung"),
        ({"enum": ["x"] * 20_000}, "at most"),
    ],
)
async def test_a_schema_that_cannot_be_used_is_refused_before_anything_is_sent(
    tls_dir: Path, tmp_path: Path, schema: dict[str, Any], told: str
) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "p", "schema": schema}}
    async with running_stack(tls_dir, tmp_path, workers=ABLE) as stack:
        status, body = await stack.ask(response_format=wanted)
        assert stack.sent == []
    assert (status, body["error"]["param"]) == (400, "response_format.json_schema.schema")
    assert told in body["error"]["message"]


async def test_a_worker_without_schemas_is_left_out_by_name(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, workers=ABLE) as stack:
        status, body = await stack.ask(model="worker/v", response_format=WANTED)
        assert stack.sent == []
    assert (status, body["error"]["param"]) == (400, "response_format")


@pytest.mark.parametrize("choice", ["required", TOOL])
async def test_a_demanded_tool_call_is_asked_for_once_more(
    tls_dir: Path, tmp_path: Path, choice: object
) -> None:
    choice = choice if isinstance(choice, str) else {"type": "function", "function": {"name": "f"}}
    async with running_stack(tls_dir, tmp_path, workers=ABLE) as stack:
        called = answer(finish="tool_calls", tool_calls=[CALL])
        stack.upstream.script.extend([answer("no need"), called])
        came = await stack.stream(tools=[TOOL], tool_choice=choice)
        assert (came.text, came.finish_reasons) == ("", ["tool_calls"])
        assert [call["name"] for call in came.tool_calls] == ["f"]
        stack.upstream.default = answer("no need")
        status, body = await stack.ask(tools=[TOOL], tool_choice=choice)
        assert all(sent["tool_choice"] == choice for sent in stack.sent)
    assert (status, body["error"]["code"], body["error"]["param"]) == (
        502,
        "tool_choice_not_met",
        "tool_choice",
    )


async def test_several_answers_come_as_choices(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        status, body = await stack.ask(n=2)
        came = await stack.stream(n=2, stream_options={"include_usage": True})
        assert all("n" not in sent for sent in stack.sent)
        refused, told = await stack.ask(model="podium-max", n=2)
    assert status == 200
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert {choice["message"]["content"] for choice in body["choices"]} == {"hello"}
    assert body["usage"]["prompt_tokens"] == 12
    assert body["usage"]["completion_tokens"] == 10
    assert body["podium"]["usage"]["billed"]["total_tokens"] == 34
    assert sorted(c["index"] for c in came.choices if c["finish_reason"]) == [0, 1]
    assert sorted(c["index"] for c in came.choices if c["delta"].get("role")) == [0, 1]
    assert came.chunks[-1]["choices"] == []
    assert came.is_done
    assert (refused, told["error"]["param"]) == (400, "n")
