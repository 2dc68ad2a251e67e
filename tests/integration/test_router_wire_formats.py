"""Gemini, Vertex AI, Bedrock and Azure through a real router: each in its own format, both ways, refused and cut."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.router_rig import KEY, Outcome, Rig, router_rig
from tests.fakes.upstream import Reply
from tests.fakes.vertex import VertexUpstream
from tests.fakes.waiting import SOON_S, STALL_S, until
from tests.fakes.wire_formats import (
    AzureUpstream,
    BedrockUpstream,
    GeminiUpstream,
    WireUpstream,
    bedrock_answer,
    frame,
    gemini_answer,
)

TOOLS = json.dumps(
    {
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
                },
            }
        ]
    }
).encode()
BEDROCK_MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"


@dataclass(frozen=True, slots=True)
class Format:
    """One provider: its stand-in, its worker, and a plain answer's way of breaking."""

    upstream: type[WireUpstream]
    worker: dict[str, Any]


FORMATS = {
    "gemini": Format(GeminiUpstream, {"provider": "gemini", "model": "gemini-2.5-flash"}),
    "vertex": Format(
        VertexUpstream,
        {
            "provider": "vertex",
            "model": "gemini-2.5-flash",
            "project": "our-project",
            "region": "europe-west4",
        },
    ),
    "bedrock": Format(
        BedrockUpstream, {"provider": "bedrock", "model": BEDROCK_MODEL, "region": BedrockUpstream.region}
    ),
    "azure": Format(
        AzureUpstream, {"provider": "azure", "model": "my-deployment", "api_version": "2024-10-21"}
    ),
    "azure-v1": Format(AzureUpstream, {"provider": "azure", "model": "my-deployment"}),
}


@pytest.fixture(params=FORMATS)
async def rig(request: pytest.FixtureRequest, tls_dir: Path, tmp_path: Path) -> AsyncIterator[Rig]:
    async with _rig(FORMATS[request.param], tls_dir, tmp_path) as rig:
        yield rig
        _check_log(rig)


def _rig(wanted: Format, tls_dir: Path, tmp_path: Path, **changes: Any) -> Any:
    worker = {**wanted.worker, **changes}
    return router_rig(tls_dir, tmp_path, worker=worker, upstream=wanted.upstream())


def _check_log(rig: Rig) -> None:
    assert isinstance(rig.upstream, WireUpstream)
    assert rig.upstream.problems == []
    attempts = [seen.attempt_id for seen in rig.upstream.requests]
    assert len(set(attempts)) == len(attempts), "one attempt is one request"
    for seen in rig.upstream.requests:
        assert rig.audit.bodies[seen.attempt_id] == seen.body, "the log holds the very bytes"
        assert rig.audit.begun_s[seen.attempt_id] <= seen.arrived_s


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer(rig: Rig, stream: bool) -> None:
    outcome = await rig.complete(rig.request(stream=stream))
    assert (outcome.text, outcome.done.finish_reason) == ("hello", "stop")
    assert outcome.done.usage.source == plan_pb2.USAGE_SOURCE_PROVIDER
    assert outcome.done.usage.cached_input_tokens == 4
    assert len(rig.upstream.requests) == 1
    assert rig.audit.begun["att_1"].endpoint_host == "127.0.0.1"


@pytest.mark.parametrize("stream", [False, True])
async def test_refusals(rig: Rig, stream: bool) -> None:
    for status, code in ((401, Code.PROVIDER_FAILED), (429, Code.RATE_LIMITED), (500, Code.PROVIDER_FAILED)):
        error = json.dumps({"error": {"message": "bad key @KEY@", "code": status}}).encode()
        rig.upstream.script.append(Reply(error, status=status, headers={"retry-after": "1"}, echo_key=True))
        with pytest.raises(PodiumError) as refused:
            await rig.complete(rig.request(stream=stream))
        assert (refused.value.code, refused.value.metadata["status"]) == (code, str(status))
        assert refused.value.retry_after_s == (None if status == 401 else 1.0)
        assert KEY not in f"{refused.value!r} {refused.value.metadata}"
    assert len(rig.upstream.requests) == 3


async def test_a_stream_that_is_cut(rig: Rig) -> None:
    whole = rig.upstream.default
    rig.upstream.default = whole.but(events=whole.events[:1], cut=True)
    with pytest.raises(PodiumError) as broken:
        await rig.complete(rig.request(stream=True))
    assert broken.value.code is Code.PROVIDER_FAILED
    assert broken.value.reason in {"PROVIDER_CONNECTION_LOST", "PROVIDER_STREAM_CUT"}


@pytest.mark.parametrize("stream", [False, True])
async def test_hanging_up(rig: Rig, stream: bool) -> None:
    rig.upstream.default = rig.upstream.default.but(delay_s=STALL_S)
    asking = asyncio.create_task(rig.complete(rig.request(stream=stream)))
    (seen,) = await rig.upstream.seen()
    asking.cancel()
    await until(lambda: seen.ended_s is not None, SOON_S)
    assert seen.was_hung_up
    assert (await rig.audit.end_of("att_1")).outcome == plan_pb2.ATTEMPT_OUTCOME_CANCELLED


# What each has of its own


@pytest.mark.parametrize("provider", ["gemini", "vertex"])
@pytest.mark.parametrize("stream", [False, True])
async def test_gemini_thought_signatures_survive_a_round_trip(
    tls_dir: Path, tmp_path: Path, stream: bool, provider: str
) -> None:
    call = {"functionCall": {"name": "weather", "args": {"city": "Bonn"}}, "thoughtSignature": "c2lnbmVk"}
    async with _rig(FORMATS[provider], tls_dir, tmp_path) as rig:
        rig.upstream.default = gemini_answer({"text": "Where?", "thought": True}, call)
        first = await rig.complete(rig.request(stream=stream, parameters_json=TOOLS))
        assert first.done.finish_reason == "tool_calls"
        assert (first.done.usage.output_tokens, first.done.usage.reasoning_output_tokens) == (7, 2)
        (asked,) = _calls(first)
        assert len(asked["id"]) <= 40
        message = json.loads(first.done.replay_message_json)
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sunny"}
        await rig.complete(_continued(rig, message, result))
        _, model, tool = rig.upstream.requests[1].fields["contents"]
        (part,) = [part for part in model["parts"] if "function_call" in part or "functionCall" in part]
        assert part["thoughtSignature"] == "c2lnbmVk"
        assert tool["role"] == "user"
        _check_log(rig)


@pytest.mark.parametrize("stream", [False, True])
async def test_vertex_is_called_with_a_token_that_may_change(
    tls_dir: Path, tmp_path: Path, stream: bool
) -> None:
    async with _rig(FORMATS["vertex"], tls_dir, tmp_path) as rig:
        await rig.complete(rig.request(stream=stream, parameters_json=TOOLS))
        rig.key_path.write_text("ya29.the-next-hour")
        await rig.complete(rig.request(stream=stream))
        shown = [seen.headers["Authorization"] for seen in rig.upstream.requests]
        assert shown == [f"Bearer {KEY}", "Bearer ya29.the-next-hour"]
        assert rig.upstream.requests[0].path.startswith(VertexUpstream.place + "/models/gemini-2.5-flash:")
        assert KEY not in str(rig.audit.bodies)
        _check_log(rig)


async def test_gemini_says_its_wait_in_the_body(tls_dir: Path, tmp_path: Path) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}]
    async with _rig(FORMATS["gemini"], tls_dir, tmp_path) as rig:
        rig.upstream.default = Reply(
            json.dumps({"error": {"code": 429, "details": details}}).encode(), status=429
        )
        with pytest.raises(PodiumError) as refused:
            await rig.complete()
        assert (refused.value.code, refused.value.retry_after_s) == (Code.RATE_LIMITED, 17.5)


@pytest.mark.parametrize("stream", [False, True])
async def test_bedrock_thinking_and_tools(tls_dir: Path, tmp_path: Path, stream: bool) -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "It is in Bonn.", "signature": "c2lnbmVk"}}}
    use = {"toolUse": {"toolUseId": "tooluse_1", "name": "weather", "input": {"city": "漢字"}}}
    async with _rig(FORMATS["bedrock"], tls_dir, tmp_path) as rig:
        rig.upstream.default = bedrock_answer(thought, use, stop_reason="tool_use").but(split=5)
        first = await rig.complete(rig.request(stream=stream, parameters_json=TOOLS))
        assert [json.loads(call["arguments"]) for call in _calls(first)] == [{"city": "漢字"}]
        assert (first.done.finish_reason, first.done.usage.cache_write_input_tokens) == ("tool_calls", 3)
        result = {"role": "tool", "tool_call_id": "tooluse_1", "content": "sunny"}
        await rig.complete(_continued(rig, json.loads(first.done.replay_message_json), result))
        assert thought in rig.upstream.requests[1].fields["messages"][1]["content"]
        _check_log(rig)


async def test_bedrock_exceptions_inside_a_stream(tls_dir: Path, tmp_path: Path) -> None:
    async with _rig(FORMATS["bedrock"], tls_dir, tmp_path) as rig:
        whole = bedrock_answer({"text": "one two"})
        throttled = frame("throttlingException", {"message": "Too many tokens"}, "exception")
        rig.upstream.default = whole.but(events=(*whole.events[:2], throttled))
        with pytest.raises(PodiumError) as broken:
            await rig.complete(rig.request(stream=True))
        assert broken.value.code is Code.PROVIDER_FAILED
        assert broken.value.metadata["retryable"] == "true"


async def test_bedrock_requests_are_signed_with_access_keys(tls_dir: Path, tmp_path: Path) -> None:
    secret, access = tmp_path / "secret", tmp_path / "access"
    secret.write_text(BedrockUpstream.secret)
    access.write_text("AKIACANARY")
    aws = {"access_key_id": {"file": str(access)}, "secret_access_key": {"file": str(secret)}}
    async with _rig(FORMATS["bedrock"], tls_dir, tmp_path, key=None, aws=aws) as rig:
        for stream in (False, True):
            assert (await rig.complete(rig.request("漢字", stream=stream))).text == "hello"
        assert rig.upstream.requests[0].headers["Authorization"].startswith("AWS4-HMAC-SHA256 ")
        assert BedrockUpstream.secret not in str(rig.upstream.requests)
        secret.unlink()
        with pytest.raises(PodiumError) as refused:
            await rig.complete()
        assert refused.value.reason == "WORKER_UNCONFIGURED"
        _check_log(rig)


async def test_azure_is_called_at_its_deployment(tls_dir: Path, tmp_path: Path) -> None:
    async with _rig(FORMATS["azure"], tls_dir, tmp_path) as rig:
        await rig.complete()
        (seen,) = rig.upstream.requests
        assert seen.path == "/openai/deployments/my-deployment/chat/completions"
        assert seen.headers["api-key"] == KEY


def _continued(rig: Rig, *messages: dict[str, Any]) -> pb.CompleteRequest:
    data = json.dumps([{"role": "user", "content": "hi"}, *messages]).encode()
    return rig.request(messages=[pb.Segment(data=data)], parameters_json=TOOLS)


def _calls(outcome: Outcome) -> list[dict[str, Any]]:
    calls: dict[int, dict[str, Any]] = {}
    for delta in (*outcome.deltas, outcome.done.message):
        for item in json.loads(delta.tool_calls_json or b"[]"):
            call = calls.setdefault(item["index"], {"id": "", "arguments": ""})
            call["id"] = item.get("id") or call["id"]
            call["arguments"] += item.get("function", {}).get("arguments", "")
    return [call for _, call in sorted(calls.items())]
