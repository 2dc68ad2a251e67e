"""Anthropic's Messages through a real router: LiteLLM's translation, our permit, connection and errors."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podium.plan.v1 import plan_pb2
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.router_rig import KEY, Outcome, Rig, router_rig
from tests.fakes.upstream import Reply
from tests.fakes.waiting import SOON_S, STALL_S, until
from tests.fakes.wire_formats import AnthropicUpstream, anthropic_answer, png, sse

WORKER: dict[str, Any] = {
    "provider": "anthropic",
    "model": "claude-sonnet-4-5",
    "modalities": ["text", "image"],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Says how the weather is",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]
USES = [
    {"type": "tool_use", "id": "toolu_a", "name": "weather", "input": {"city": "Bonn"}},
    {"type": "tool_use", "id": "toolu_b", "name": "weather", "input": {"city": "漢字"}},
]


@pytest.fixture
async def rig(tls_dir: Path, tmp_path: Path) -> AsyncIterator[Rig]:
    async with router_rig(tls_dir, tmp_path, worker=WORKER, upstream=AnthropicUpstream()) as rig:
        yield rig
        assert rig.upstream.problems == []  # type: ignore[attr-defined]
        for seen in rig.upstream.requests:  # one attempt, one request, of exactly the bytes in the log
            assert rig.audit.bodies[seen.attempt_id] == seen.body
        attempts = [seen.attempt_id for seen in rig.upstream.requests]
        assert len(set(attempts)) == len(attempts)


def _messages(*messages: dict[str, Any]) -> Any:
    from podium.router.v1 import router_service_pb2 as pb

    return [pb.Segment(data=json.dumps(messages).encode())]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_with_its_counts(rig: Rig, stream: bool) -> None:
    rig.upstream.default = anthropic_answer({"type": "text", "text": "Größe 漢字 👩‍👩‍👧‍👦"}).but(split=7)
    outcome = await rig.complete(rig.request(stream=stream))
    assert outcome.text == "Größe 漢字 👩‍👩‍👧‍👦"
    # A stream's model is the library's echo of what was asked for, so none is claimed.
    served = "" if stream else "claude-served"
    assert (outcome.done.finish_reason, outcome.done.served_model) == ("stop", served)
    assert outcome.done.usage == plan_pb2.Usage(
        input_tokens=17,
        output_tokens=5,
        cached_input_tokens=4,
        cache_write_input_tokens=3,
        source=plan_pb2.USAGE_SOURCE_PROVIDER,
    )
    assert outcome.done.cost_usd_micros == 17 * 1 + 5 * 2
    (seen,) = rig.upstream.requests
    assert seen.headers["x-api-key"] == KEY
    begun = rig.audit.begun["att_1"]
    assert (begun.provider, begun.endpoint_host) == ("anthropic", "127.0.0.1")


async def test_roles_and_limits_are_put_into_its_words(rig: Rig) -> None:
    messages = _messages(
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": png()}}],
        },
    )
    await rig.complete(
        rig.request(messages=messages, parameters_json=b'{"stop":["END"],"temperature":0.5,"user":"u1"}')
    )
    fields = rig.upstream.requests[0].fields
    assert "Be brief." in json.dumps(fields["system"])
    assert "Be kind." in json.dumps(fields)
    (user,) = fields["messages"]
    assert [part["type"] for part in user["content"]] == ["text", "image"]
    assert (fields["max_tokens"], fields["stop_sequences"], fields["temperature"]) == (100, ["END"], 0.5)
    assert fields["metadata"] == {"user_id": "u1"}


@pytest.mark.parametrize("stream", [False, True])
async def test_parallel_tool_calls(rig: Rig, stream: bool) -> None:
    rig.upstream.default = anthropic_answer(*USES, stop_reason="tool_use")
    parameters = json.dumps({"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": True})
    outcome = await rig.complete(rig.request(stream=stream, parameters_json=parameters.encode()))
    calls = _calls(outcome)
    assert [(call["id"], json.loads(call["arguments"])) for call in calls] == [
        ("toolu_a", {"city": "Bonn"}),
        ("toolu_b", {"city": "漢字"}),
    ]
    assert outcome.done.finish_reason == "tool_calls"
    fields = rig.upstream.requests[0].fields
    assert fields["tools"][0]["input_schema"]["required"] == ["city"]
    assert fields["tool_choice"]["type"] == "any"


async def test_deltas_arrive_as_they_are_made(rig: Rig) -> None:
    text = "".join(f"word{number} " for number in range(12))
    rig.upstream.default = anthropic_answer({"type": "text", "text": text}, pieces=12).but(gap_s=0.03)
    outcome = await rig.complete(rig.request(stream=True))
    assert outcome.text == text
    assert len(outcome.deltas) > 3, "a busy machine may gather some of the twelve, not all"
    (seen,) = rig.upstream.requests
    assert seen.ended_s is not None
    assert outcome.arrived_s[0] < seen.ended_s, "the caller reads while the provider still writes"


@pytest.mark.parametrize(
    ("reply", "code", "reason", "facts"),
    [
        (
            Reply(status=401),
            Code.PROVIDER_FAILED,
            "PROVIDER_REFUSED",
            {"retryable": "false", "status": "401"},
        ),
        (Reply(status=429, headers={"retry-after": "7"}), Code.RATE_LIMITED, "PROVIDER_RATE_LIMITED", {}),
        (Reply(status=500), Code.PROVIDER_FAILED, "PROVIDER_FAILED", {"retryable": "true"}),
        (Reply(status=529), Code.PROVIDER_FAILED, "PROVIDER_FAILED", {"retryable": "true"}),
        (Reply(status=307, headers={"Location": "/elsewhere"}), Code.PROVIDER_FAILED, "PROVIDER_REFUSED", {}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_refusals_say_nothing_of_the_providers_text(
    rig: Rig, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str],
    reply: Reply, code: Code, reason: str, facts: dict[str, str], stream: bool,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    error = {"type": "error", "error": {"type": "some_error", "message": "invalid x-api-key: @KEY@"}}
    rig.upstream.default = reply.but(body=json.dumps(error).encode(), echo_key=True)
    with pytest.raises(PodiumError) as refused:
        await rig.complete(rig.request("a secret question", stream=stream))
    assert (refused.value.code, refused.value.reason) == (code, reason)
    assert facts.items() <= refused.value.metadata.items()
    assert refused.value.retry_after_s == (7.0 if reply.status == 429 else None)
    assert len(rig.upstream.requests) == 1
    end = await rig.audit.end_of("att_1")
    said = f"{refused.value!r} {refused.value.metadata} {end} {caplog.text} {capfd.readouterr()}"
    assert KEY not in said
    assert "invalid x-api-key" not in said
    assert "a secret question" not in said


async def test_a_question_that_is_too_long_is_named(rig: Rig) -> None:
    error = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"},
    }
    rig.upstream.default = Reply(json.dumps(error).encode(), status=400)
    with pytest.raises(PodiumError) as refused:
        await rig.complete()
    assert refused.value.metadata["provider_code"] == "context_length_exceeded"


@pytest.mark.parametrize("cut", [True, False])
async def test_an_answer_that_stops_half_way_is_no_answer(rig: Rig, cut: bool) -> None:
    whole = anthropic_answer({"type": "text", "text": "one two"})
    rig.upstream.default = whole.but(events=whole.events[:4], cut=cut)
    outcome = Outcome()
    with pytest.raises(PodiumError) as broken:
        await rig.complete(rig.request(stream=True), into=outcome)
    assert broken.value.reason == "PROVIDER_STREAM_CUT"
    assert [delta.text for delta in outcome.deltas] == ["one "]
    end = await rig.audit.end_of("att_1")
    assert (end.dispatched, end.usage.source) == (True, plan_pb2.USAGE_SOURCE_ESTIMATED)


async def test_an_error_inside_a_stream(rig: Rig) -> None:
    whole = anthropic_answer({"type": "text", "text": "one two"})
    overloaded = sse("error", error={"type": "overloaded_error", "message": "Overloaded"})
    rig.upstream.default = whole.but(events=(*whole.events[:4], overloaded))
    with pytest.raises(PodiumError) as broken:
        await rig.complete(rig.request(stream=True))
    assert broken.value.reason == "PROVIDER_ERROR"
    assert broken.value.metadata["retryable"] == "true"


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"content": 3}'])
async def test_an_answer_that_is_none(rig: Rig, body: bytes) -> None:
    rig.upstream.default = Reply(body)
    with pytest.raises(PodiumError) as broken:
        await rig.complete()
    assert broken.value.reason == "PROVIDER_BAD_ANSWER"


@pytest.mark.parametrize("stream", [False, True])
async def test_hanging_up_closes_the_upstream_within_a_second(rig: Rig, stream: bool) -> None:
    text = {"type": "text", "text": "x" * 50}
    rig.upstream.default = anthropic_answer(text, pieces=50).but(delay_s=0 if stream else STALL_S, gap_s=0.5)
    asking = asyncio.create_task(rig.complete(rig.request(stream=stream)))
    (seen,) = await rig.upstream.seen()
    await asyncio.sleep(0.4)
    asking.cancel()
    await until(lambda: seen.ended_s is not None, SOON_S)
    assert seen.was_hung_up, "the provider had 25 s of stream left, or was silent"
    assert (await rig.audit.end_of("att_1")).outcome == plan_pb2.ATTEMPT_OUTCOME_CANCELLED


async def test_the_workers_time_ends_the_call(tls_dir: Path, tmp_path: Path) -> None:
    worker = {**WORKER, "limits": {"timeout_s": 0.3}}
    async with router_rig(tls_dir, tmp_path, worker=worker, upstream=AnthropicUpstream()) as rig:
        rig.upstream.default = AnthropicUpstream.answer("late").but(delay_s=STALL_S)
        with pytest.raises(PodiumError) as late:
            await rig.complete()
        assert (late.value.code, late.value.reason) == (Code.DEADLINE, "WORKER_TIMEOUT")
        (seen,) = rig.upstream.requests
        await until(lambda: seen.was_hung_up)


async def test_without_a_permit_nothing_is_sent(rig: Rig) -> None:
    rig.audit.refusal = PodiumError(Code.BUDGET_EXHAUSTED, "no money")
    with pytest.raises(PodiumError) as refused:
        await rig.complete()
    assert refused.value.code is Code.BUDGET_EXHAUSTED
    await asyncio.sleep(0.05)
    assert rig.upstream.requests == []


@pytest.mark.parametrize(
    "name", ["logprobs", "seed", "api_base", "mock_response", "extra_headers", "metadata"]
)
async def test_what_it_cannot_be_asked_is_named_and_nothing_is_sent(rig: Rig, name: str) -> None:
    with pytest.raises(PodiumError) as refused:
        await rig.complete(rig.request(parameters_json=json.dumps({name: "http://127.0.0.1:1"}).encode()))
    assert (refused.value.code, refused.value.reason, refused.value.param) == (
        Code.INVALID_REQUEST,
        "PARAMETER_UNSUPPORTED",
        name,
    )
    assert rig.upstream.requests == []
    assert rig.audit.begun == {}


async def test_no_address_of_a_clients_is_fetched(rig: Rig) -> None:
    url = f"{rig.upstream.base_url}/image.png"
    image = {"type": "image_url", "image_url": {"url": url}}
    with pytest.raises(PodiumError) as refused:
        await rig.complete(rig.request(messages=_messages({"role": "user", "content": [image]})))
    assert refused.value.reason == "ADDRESS_UNSUPPORTED"
    assert rig.upstream.requests == []


def _calls(outcome: Outcome) -> list[dict[str, Any]]:
    calls: dict[int, dict[str, Any]] = {}
    for delta in (*outcome.deltas, outcome.done.message):
        for item in json.loads(delta.tool_calls_json or b"[]"):
            call = calls.setdefault(item["index"], {"id": "", "arguments": ""})
            call["id"] = item.get("id") or call["id"]
            call["arguments"] += item.get("function", {}).get("arguments", "")
    return [call for _, call in sorted(calls.items())]


@pytest.mark.parametrize("stream", [False, True])
async def test_signed_thinking_survives_a_round_trip(rig: Rig, stream: bool) -> None:
    thinking = {"type": "thinking", "thinking": "It is in Bonn.", "signature": "c2lnbmVk"}
    hidden = {"type": "redacted_thinking", "data": "aGlkZGVu"}
    rig.upstream.default = anthropic_answer(thinking, hidden, *USES[:1], stop_reason="tool_use")
    parameters = json.dumps({"tools": TOOLS, "reasoning_effort": "low"}).encode()
    first = await rig.complete(rig.request(stream=stream, parameters_json=parameters, max_output_tokens=4000))
    reasoning = "".join(delta.reasoning for delta in (*first.deltas, first.done.message))
    assert reasoning == "It is in Bonn."
    assert first.done.usage.reasoning_output_tokens == 0  # it counts none, so neither do we
    result = {"role": "tool", "tool_call_id": "toolu_a", "content": "sunny"}
    messages = _messages(
        {"role": "user", "content": "hi"}, json.loads(first.done.replay_message_json), result
    )
    await rig.complete(rig.request(messages=messages, parameters_json=parameters, max_output_tokens=4000))
    assistant = rig.upstream.requests[1].fields["messages"][1]
    assert assistant["content"] == [thinking, hidden, USES[0]]
    assert rig.upstream.requests[0].fields["thinking"]["type"] == "enabled"


async def test_an_answer_without_signatures_has_nothing_to_put_back(rig: Rig) -> None:
    rig.upstream.default = anthropic_answer(*USES, stop_reason="tool_use").but(
        headers={"request-id": "req_7"}
    )
    outcome = await rig.complete()
    assert outcome.done.replay_message_json == b""
    assert outcome.done.provider_response_id == "req_7"


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_written_to_the_cache_is_reserved_and_settled_at_its_own_price(
    tls_dir: Path, tmp_path: Path, stream: bool
) -> None:
    price = {
        "input_usd_per_mtok": "1",
        "cached_input_usd_per_mtok": "0",
        "cache_write_input_usd_per_mtok": "2",
        "output_usd_per_mtok": "2",
    }
    worker = {**WORKER, "price": price, "limits": {"max_output_tokens": 50}}
    async with router_rig(tls_dir, tmp_path, worker=worker, upstream=AnthropicUpstream()) as rig:
        done = (await rig.complete(rig.request(stream=stream))).done
        usage = done.usage
        assert (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_input_tokens) == (17, 4, 3)
        end = await rig.audit.end_of("att_1")
        assert (done.cost_usd_micros, end.cost_usd_micros) == (10 + 2 * 3 + 2 * 5,) * 2
        # One token a byte at most, and all of them may be written.
        (reserved,) = [begun.max_cost_usd_micros for begun in rig.audit.begun.values()]
        assert reserved >= 2 * len(rig.request().messages[0].data) + 2 * 50
