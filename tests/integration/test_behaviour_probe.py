"""The seventeen checks that gateways are compared by, each under its name, against the whole stack.

One upstream that misbehaves on request, one client that looks at every byte: what reaches the client, what
reaches the provider, and when each of them sees the other go away.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from podium_router.breaker import BreakerLimits
from tests.fakes.leaves import end_of
from tests.fakes.otlp_receiver import OtlpReceiver
from tests.fakes.router_rig import KEY
from tests.fakes.stack import Stack, Streamed, asked, running_stack
from tests.fakes.upstream import DONE, USAGE, Reply, SeenRequest, answer, chunk, event, refusal
from tests.fakes.waiting import SOON_S, STALL_S, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

ABLE = {
    "features": ["tools", "logprobs", "developer", "json_schema"],
    "modalities": ["text", "image"],
    "limits": {"max_concurrency": 64, "timeout_s": 30, "max_output_tokens": 500},
}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
SPANS = InMemorySpanExporter()
PARTIAL = tuple(event(chunk({"content": text})) for text in ("one ", "two ", "three"))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(tls_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    home = tmp_path_factory.mktemp("probe")
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(SPANS))
    with OtlpReceiver() as collector:
        async with running_stack(
            tls_dir,
            home,
            workers={"w": ABLE},
            # Tests share its worker: their failures must not add up to a pause.
            router={"tracer": tracers.get_tracer("router"), "breaker_limits": BreakerLimits(failures=1_000)},
            otlp_endpoint=collector.endpoint,
            trusted_trace_tenants=("acme",),
            retry_max_s=2.0,
        ) as made:
            yield made


@pytest_asyncio.fixture(loop_scope="module")
async def stack(shared: Stack) -> Stack:
    shared.upstream.requests.clear()
    shared.upstream.script.clear()
    shared.upstream.default = answer("hello")
    return shared


async def streamed(stack: Stack, reply: Reply, **fields: Any) -> Streamed:
    stack.upstream.script.append(reply)
    return await stack.stream(**fields)


async def gone(seen: SeenRequest) -> float:
    """Wait until the provider has seen the connection close; return when."""
    await until(lambda: seen.ended_s is not None)
    assert seen.was_hung_up
    assert seen.ended_s is not None
    return seen.ended_s


async def test_01_usage_comes_once_in_a_chunk_without_choices(stack: Stack) -> None:
    got = await streamed(stack, answer("a", "b"), stream_options={"include_usage": True})
    with_usage = [one for one in got.chunks if one.get("usage")]
    assert [one["choices"] for one in with_usage] == [[]]
    assert with_usage == got.chunks[-1:]
    assert with_usage[0]["usage"]["prompt_tokens_details"]["cached_tokens"] == 4
    assert with_usage[0]["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2


async def test_02_usage_that_nobody_asked_for_is_metered_and_not_shown(stack: Stack) -> None:
    got = await streamed(stack, answer("a", "b"))
    assert [one for one in got.chunks if one.get("usage")] == []
    (seen,) = stack.upstream.requests
    assert seen.fields["stream_options"] == {"include_usage": True}
    end = await end_of(stack.audit.home, seen.attempt_id)
    assert (end["usage"]["input_tokens"], end["usage"]["source"]) == (USAGE["prompt_tokens"], "provider")


async def test_03_characters_cut_by_the_network_stay_whole(stack: Stack) -> None:
    text = "漢字かな交じり文 🙂👩‍👩‍👧 é"
    got = await streamed(stack, answer(*text).but(split=7))
    assert got.text == text


async def test_04_interleaved_parallel_tool_calls_stay_apart(stack: Stack) -> None:
    def delta(index: int, arguments: str, **start: Any) -> bytes:
        call = {"index": index, **start, "function": {"arguments": arguments, **start.pop("named", {})}}
        return event(chunk({"tool_calls": [{k: v for k, v in call.items() if k != "named"}]}))

    begun = [
        delta(i, "", id=f"call_{i}", type="function", named={"name": name})
        for i, name in enumerate(("sun", "rain"))
    ]
    pieces = [delta(i % 2, piece) for i, piece in enumerate(('{"a"', '{"b"', ":1}", ":2}"))]
    events = (*begun, *pieces, event(chunk({}, "tool_calls")), DONE)
    tools = [{"type": "function", "function": {"name": name}} for name in ("sun", "rain")]
    got = await streamed(stack, answer("x").but(events=events), tools=tools)
    assert [json.loads(call["arguments"]) for call in got.tool_calls] == [{"a": 1}, {"b": 2}]
    assert [call["name"] for call in got.tool_calls] == ["sun", "rain"]
    assert got.finish_reasons == ["tool_calls"]


async def test_05_a_provider_that_dies_in_mid_stream_is_an_error(stack: Stack) -> None:
    got = await streamed(stack, answer("x").but(events=PARTIAL, cut=True))
    assert got.text == "one two three"
    assert got.finish_reasons == []
    assert got.errors[0]["code"] == "provider_stream_cut"
    assert got.is_done


async def test_06_an_error_event_of_the_provider_is_an_error(stack: Stack) -> None:
    failed = event({"error": {"message": f"out of cheese {KEY}", "type": "server_error"}})
    got = await streamed(stack, answer("x").but(events=(*PARTIAL, failed)))
    assert got.errors[0]["code"] == "provider_error"
    assert KEY not in b"".join(got.pieces).decode()
    assert got.finish_reasons == []


@pytest.mark.parametrize("stream", [False, True])
async def test_07_429_with_retry_after_reaches_the_client_at_once(
    stream: bool, tls_dir: Path, tmp_path: Path
) -> None:
    workers = {"w": ABLE}  # a stack of its own: the worker is paused for all afterwards
    async with running_stack(tls_dir, tmp_path, workers=workers, retry_max_s=2.0) as stack:
        stack.upstream.default = refusal(429, retry_after="40")
        for code in ("provider_rate_limited", "worker_paused"):
            began_s = asyncio.get_running_loop().time()
            async with stack.session.post("/v1/chat/completions", json=asked(stream=stream)) as response:
                body = await response.json()
            assert response.status == 429
            assert 0 < int(response.headers["retry-after"]) <= 40
            assert body["error"]["code"] == code
            assert asyncio.get_running_loop().time() - began_s < SOON_S, "not after the forty seconds"
        assert len(stack.upstream.requests) == 1, "the second run was told what the first one met"


async def test_08_a_500_is_tried_again_and_then_told(stack: Stack) -> None:
    stack.upstream.default = refusal(500)
    status, body = await stack.ask()
    assert (status, body["error"]["code"]) == (502, "provider_failed")
    assert len(stack.upstream.requests) == 3
    assert len({seen.attempt_id for seen in stack.upstream.requests}) == 3


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_09_a_key_that_the_provider_echoes_goes_no_further(status: int, stack: Stack) -> None:
    stack.upstream.default = refusal(status, KEY)
    async with stack.session.post("/v1/chat/completions", json=asked()) as response:
        text = await response.text()
        assert KEY not in text + str(response.headers)
    assert response.status >= 400
    assert stack.upstream.requests[0].headers["Authorization"] == f"Bearer {KEY}"


async def test_10_hanging_up_on_a_stream_closes_the_provider(stack: Stack) -> None:
    stack.upstream.default = answer(*["word "] * 150).but(gap_s=0.2)
    async with stack.session.post("/v1/chat/completions", json=asked(stream=True)) as response:
        async for line in response.content:
            if b"word" in line:
                break
        response.close()
    left_s = asyncio.get_running_loop().time()
    assert await gone(stack.upstream.requests[0]) - left_s < SOON_S


async def test_11_hanging_up_on_a_whole_answer_closes_the_provider(stack: Stack) -> None:
    stack.upstream.default = answer("late").but(delay_s=STALL_S)
    asking = asyncio.create_task(stack.ask())
    await stack.upstream.seen()
    asking.cancel()
    left_s = asyncio.get_running_loop().time()
    assert await gone(stack.upstream.requests[0]) - left_s < SOON_S


async def test_12_the_request_arrives_as_it_was_sent(stack: Stack) -> None:
    image = "data:image/png;base64," + base64.b64encode(b"\x89PNG not really").decode()
    call = {"id": "call_1", "type": "function", "function": {"name": "sun", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "sun?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "yes"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": image}}]},
    ]
    fields: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.25,
        "stop": ["END"],
        "seed": 7,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [{"type": "function", "function": {"name": "sun", "parameters": {"type": "object"}}}],
    }
    status, _ = await stack.ask(messages=messages, max_tokens=50, user="ann", **fields)
    assert status == 200
    sent = stack.sent[0]
    assert sent["messages"] == messages
    assert {name: sent[name] for name in fields} == fields
    assert sent["max_tokens"] == 50


async def test_13_the_clients_key_and_cookies_stay_inside(stack: Stack) -> None:
    headers = {"Cookie": "session=crumbs", "X-Internal": "crumbs", "Proxy-Authorization": "crumbs"}
    async with stack.session.post("/v1/chat/completions", json=asked(), headers=headers) as response:
        assert response.status == 200
    (seen,) = stack.upstream.requests
    told = str(seen.headers) + seen.body.decode()
    assert "crumbs" not in told
    assert stack.session.headers["Authorization"].removeprefix("Bearer ") not in told


@pytest.mark.parametrize("stream", [False, True])
async def test_14_the_callers_trace_goes_on_to_the_provider(stream: bool, stack: Stack) -> None:
    SPANS.clear()
    headers = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
    async with stack.session.post(
        "/v1/chat/completions", json=asked(stream=stream), headers=headers
    ) as response:
        assert response.status == 200
        await response.read()
    (seen,) = stack.upstream.requests
    version, trace_id, parent_id, _ = seen.headers["traceparent"].split("-")
    assert (version, trace_id) == ("00", TRACE)
    (call,) = [span for span in SPANS.get_finished_spans() if span.name.startswith("chat ")]
    assert call.context is not None
    assert parent_id == f"{call.context.span_id:016x}", "the provider's parent is our one span of the call"
    assert call.parent is not None
    assert f"{call.parent.span_id:016x}" != CALLER, "and that stands under our span of the step"


async def test_15_two_answers_with_log_probabilities(stack: Stack) -> None:
    entry = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
    body = json.loads(answer("a").body)
    body["choices"][0]["logprobs"] = {"content": [entry]}
    stack.upstream.default = answer("a").but(body=json.dumps(body).encode())
    status, told = await stack.ask(n=2, logprobs=True)
    assert status == 200
    assert [choice["index"] for choice in told["choices"]] == [0, 1]
    assert [choice["logprobs"]["content"][0]["logprob"] for choice in told["choices"]] == [-0.5, -0.5]


async def test_16_deltas_are_passed_on_one_by_one(stack: Stack) -> None:
    stack.upstream.default = answer(*[f"{number} " for number in range(20)]).but(gap_s=0.05)
    got = await stack.stream()
    assert sum(b'"content"' in piece for piece in got.pieces) > 10, "a busy machine may gather some"
    assert got.text.split() == [str(number) for number in range(20)]


async def test_17_a_first_chunk_without_choices_does_no_harm(stack: Stack) -> None:
    azure = event({"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": []})
    empty = event(chunk(None))
    good = answer("fine")
    got = await streamed(stack, good.but(events=(azure, *good.events[:1], empty, *good.events[1:])))
    assert got.text == "fine"
    assert (got.finish_reasons, got.errors, got.is_done) == (["stop"], [], True)
