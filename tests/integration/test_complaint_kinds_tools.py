"""Faults of tools and message shapes that users of other gateways report, one test for each kind."""

import json
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.fakes.stack import Stack, running_stack
from tests.fakes.upstream import DONE, USAGE, Reply, answer, chunk, event

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g")
]
WITH_TOOLS: dict[str, dict[str, Any]] = {"w": {"features": ["tools"]}}
_USAGE = event({"choices": [], "usage": USAGE})


def call(name: str, arguments: str, call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


TWO_CALLS = answer(
    finish="tool_calls", tool_calls=[call("f", '{"a":1}', "call_1"), call("g", '{"b":2}', "call_2")]
)


def tool_delta(index: int | None, arguments: str, name: str = "", call_id: str = "") -> bytes:
    delta: dict[str, Any] = {"function": {"arguments": arguments}}
    if index is not None:
        delta["index"] = index
    if name:
        delta = {**delta, "id": call_id, "type": "function"}
        delta["function"]["name"] = name
    return event(chunk({"tool_calls": [delta]}))


async def test_every_streamed_tool_call_has_its_index(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, workers=WITH_TOOLS) as stack:
        stack.upstream.default = TWO_CALLS
        came = await stack.stream(tools=TOOLS)
    deltas = [d for choice in came.choices for d in choice["delta"].get("tool_calls", ())]
    assert sorted(delta["index"] for delta in deltas) == [0, 1]
    assert [c["name"] for c in came.tool_calls] == ["f", "g"]
    ids = [c["id"] for c in came.tool_calls]
    assert len(set(ids)) == 2
    # Ours: signed, so that a result finds the worker that asked, and short enough for every client.
    assert all(call_id.startswith("pod_") and len(call_id) <= 40 for call_id in ids)


async def test_interleaved_argument_deltas_reach_their_own_call(tls_dir: Path, tmp_path: Path) -> None:
    events = (
        tool_delta(0, "", "f", "call_1"),
        tool_delta(1, "", "g", "call_2"),
        tool_delta(0, '{"city":'),
        tool_delta(1, '{"n":'),
        tool_delta(0, '"Ulm"}'),
        tool_delta(1, "12}"),
        event(chunk({}, "tool_calls")),
        _USAGE,
        DONE,
    )
    async with running_stack(tls_dir, tmp_path, workers=WITH_TOOLS) as stack:
        stack.upstream.default = Reply(events=events)
        came = await stack.stream(tools=TOOLS)
    assert [json.loads(c["arguments"]) for c in came.tool_calls] == [{"city": "Ulm"}, {"n": 12}]


@pytest.mark.parametrize("said", ["tool_calls", "stop", "function_call"])
async def test_the_finish_reason_is_tool_calls_streamed_or_not(
    tls_dir: Path, tmp_path: Path, said: str
) -> None:
    async with running_stack(tls_dir, tmp_path, workers=WITH_TOOLS) as stack:
        stack.upstream.default = answer(finish=said, tool_calls=[call("f", "{}", "call_1")])
        came = await stack.stream(tools=TOOLS)
        _, body = await stack.ask(tools=TOOLS)
    assert came.finish_reasons == ["tool_calls"]
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (made,) = choice["message"]["tool_calls"]
    assert made == call("f", "{}", made["id"])


async def test_parallel_calls_without_an_index_stay_apart(tls_dir: Path, tmp_path: Path) -> None:
    events = (
        tool_delta(None, '{"a":1}', "f", "call_1"),
        tool_delta(None, '{"b":2}', "g", "call_2"),
        event(chunk({}, "tool_calls")),
        _USAGE,
        DONE,
    )
    async with running_stack(tls_dir, tmp_path, workers=WITH_TOOLS) as stack:
        stack.upstream.default = Reply(events=events)
        came = await stack.stream(tools=TOOLS)
    assert [json.loads(c["arguments"]) for c in came.tool_calls] == [{"a": 1}, {"b": 2}]


async def test_a_history_with_null_content_passes_unchanged(tls_dir: Path, tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call("f", "{}", "call_1")]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "user", "content": "so?"},
    ]
    async with running_stack(tls_dir, tmp_path, workers=WITH_TOOLS) as stack:
        status, _ = await stack.ask(messages=messages, tools=TOOLS)
        assert status == 200
        assert stack.sent[0]["messages"] == messages


@pytest.mark.parametrize(("features", "role"), [(["developer"], "developer"), ([], "system")])
async def test_the_developer_role_is_passed_or_mapped_and_never_dropped(
    tls_dir: Path, tmp_path: Path, features: list[str], role: str
) -> None:
    said = 'I quote: {"role":"developer"}'
    messages = [{"role": "developer", "content": said}, {"role": "user", "content": said}]
    async with running_stack(tls_dir, tmp_path, workers={"w": {"features": features}}) as stack:
        status, _ = await stack.ask(messages=messages)
        assert status == 200
        assert stack.sent[0]["messages"] == [
            {"role": role, "content": said},
            {"role": "user", "content": said},
        ]


@pytest.mark.parametrize("asked", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize(
    ("features", "sent"), [([], "max_tokens"), (["max_completion_tokens"], "max_completion_tokens")]
)
async def test_each_name_of_the_token_limit_reaches_each_family(
    tls_dir: Path, tmp_path: Path, asked: str, features: list[str], sent: str
) -> None:
    async with running_stack(tls_dir, tmp_path, workers={"w": {"features": features}}) as stack:
        limit: dict[str, Any] = {asked: 77}
        status, _ = await stack.ask(**limit)
        assert status == 200
        names = {"max_tokens", "max_completion_tokens"} & stack.sent[0].keys()
        assert names == {sent}
        assert stack.sent[0][sent] == 77


PARAMETERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "parallel_tool_calls": (False, {"features": ["tools"]}),
    "logprobs": (True, {"features": ["logprobs"]}),
    "logit_bias": ({"7": -100}, {"features": ["logit_bias"]}),
    "prediction": ({"type": "content", "content": "as before"}, {"features": ["prediction"]}),
    "service_tier": ("flex", {"features": ["service_tier"]}),
    "verbosity": ("low", {"features": ["verbosity"]}),
    "reasoning_effort": ("high", {"reasoning_efforts": ["low", "high"]}),
    "prompt_cache_key": ("k", {"features": ["prompt_cache_key"]}),
    "safety_identifier": ("s", {"features": ["safety_identifier"]}),
    "user": ("u", {}),
    "seed": (3, {}),
    "stop": (["\n"], {}),
}
_HINTS = {"reasoning_effort", "prompt_cache_key", "safety_identifier"}


async def test_every_parameter_is_passed_or_refused_by_name_or_told_of(tls_dir: Path, tmp_path: Path) -> None:
    able: dict[str, dict[str, Any]] = {name.replace("_", "-"): how for name, (_, how) in PARAMETERS.items()}
    async with running_stack(tls_dir, tmp_path, workers={**able, "plain": {}}) as stack:
        for name, (value, how) in PARAMETERS.items():
            asked: dict[str, Any] = {name: value}
            if name == "parallel_tool_calls":
                asked["tools"] = TOOLS
            status, _ = await stack.ask(model=f"worker/{name.replace('_', '-')}", **asked)
            assert (name, status) == (name, 200)
            assert stack.sent[-1][name] == value
            seen = len(stack.sent)
            status, body = await stack.ask(model="worker/plain", **asked)
            if name in _HINTS:
                assert status == 200
                assert name not in stack.sent[-1]
                told = body["podium"]["steps"][0]["told_otherwise"]
                assert told == {name: {"asked": value, "told": None}}
            elif how:
                assert (name, status) == (name, 400)
                assert body["error"]["param"] in {name, "tools"}
                assert len(stack.sent) == seen
            else:
                assert stack.sent[-1][name] == value


async def in_responses(stack: Stack, **changes: Any) -> list[dict[str, Any]]:
    """Return the parts of the answer's message in Responses, the same streamed or not."""
    parts: list[list[dict[str, Any]]] = []
    async with AsyncOpenAI(
        base_url=f"http://127.0.0.1:{stack.gateway.port}/v1",
        api_key=stack.audit.tokens["key1"],
        max_retries=0,
    ) as client:
        whole = await client.responses.create(model="worker/w", input="6 times 7?", **changes)
        async with client.responses.stream(model="worker/w", input="6 times 7?", **changes) as stream:
            final = await stream.get_final_response()
    for response in (whole, final):
        told: Any = response.to_dict()["output"]
        (item,) = told
        parts.append([{k: v for k, v in part.items() if k != "parsed"} for part in item["content"]])
    assert parts[0] == parts[1]
    return parts[0]


async def test_log_probabilities_come_back_streamed_or_not(tls_dir: Path, tmp_path: Path) -> None:
    entry = {
        "token": "hi",
        "logprob": -0.1,
        "bytes": [104, 105],
        "top_logprobs": [{"token": "ho", "logprob": -2.5, "bytes": None}],
    }
    whole = {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hi"},
                "logprobs": {"content": [entry], "refusal": None},
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE,
    }
    streamed = chunk({"content": "hi"})
    streamed["choices"][0]["logprobs"] = {"content": [entry], "refusal": None}
    events = (event(streamed), event(chunk({}, "stop")), _USAGE, DONE)
    workers: dict[str, dict[str, Any]] = {"w": {"features": ["logprobs"]}}
    async with running_stack(tls_dir, tmp_path, workers=workers) as stack:
        stack.upstream.default = Reply(json.dumps(whole).encode(), events)
        _, body = await stack.ask(logprobs=True, top_logprobs=1)
        came = await stack.stream(logprobs=True, top_logprobs=1)
        told = await in_responses(stack, top_logprobs=1)
    assert told == [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": [entry]}]
    assert body["choices"][0]["logprobs"] == {"content": [entry], "refusal": None}
    found = [choice["logprobs"] for choice in came.choices if choice["logprobs"]]
    assert found == [{"content": [entry], "refusal": None}]


async def test_a_refusal_stays_a_refusal_streamed_or_not(tls_dir: Path, tmp_path: Path) -> None:
    whole = {
        "choices": [
            {"message": {"role": "assistant", "content": None, "refusal": "No."}, "finish_reason": "stop"}
        ],
        "usage": USAGE,
    }
    events = (event(chunk({"refusal": "No."})), event(chunk({}, "stop")), _USAGE, DONE)
    async with running_stack(tls_dir, tmp_path) as stack:
        stack.upstream.default = Reply(json.dumps(whole).encode(), events)
        _, body = await stack.ask()
        came = await stack.stream()
        assert await in_responses(stack) == [{"type": "refusal", "refusal": "No."}]
    message = body["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "No.")
    assert "".join(c["delta"].get("refusal") or "" for c in came.choices) == "No."
    assert came.text == ""
