"""One attempt through a real router: what goes out, what comes back, what the log holds."""

import json
from pathlib import Path
from typing import Any

import pytest

from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_core.wire.pool import pool_from_proto
from podium_router.outbox import BatchLimits
from tests.fakes.router_rig import KEY, router_rig
from tests.fakes.upstream import DONE, USAGE, Reply, answer, chunk, event
from tests.fakes.waiting import STALL_S

MANY_SCRIPTS = 'Größe 漢字 かな 한글 👩‍👩‍👧‍👦 🇩🇪 \n\t\\"end'
CALLS: list[dict[str, Any]] = [
    {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
    {"id": "call_b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
]


async def test_a_whole_answer(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer(MANY_SCRIPTS, reasoning="because")
        outcome = await rig.complete()
        done = outcome.done
        assert (outcome.text, done.message.reasoning, outcome.deltas) == (MANY_SCRIPTS, "because", [])
        assert (done.finish_reason, done.provider_response_id, done.served_model) == (
            "stop",
            "chatcmpl-1",
            "served-model",
        )
        assert done.usage == plan_pb2.Usage(
            input_tokens=12,
            output_tokens=5,
            cached_input_tokens=4,
            reasoning_output_tokens=2,
            source=plan_pb2.USAGE_SOURCE_PROVIDER,
        )
        assert done.cost_usd_micros == 12 * 1 + 5 * 2
        assert done.latency_us > 0
        end = await rig.audit.end_of("att_1")
        assert (end.usage, end.cost_usd_micros, end.latency_us) == (done.usage, 22, done.latency_us)
        assert end.outcome == plan_pb2.ATTEMPT_OUTCOME_COMPLETED
        assert end.dispatched
        assert {content.name: content.data.decode() for content in end.contents} == {
            "output": MANY_SCRIPTS,
            "reasoning": "because",
        }


@pytest.mark.parametrize(("cached_usd", "cost"), [("0.25", 8 + 1 + 10), ("0", 8 + 10)])
async def test_cached_input_is_reserved_in_full_and_settled_at_its_own_price(
    tls_dir: Path, tmp_path: Path, cached_usd: str, cost: int
) -> None:
    price = {"input_usd_per_mtok": "1", "cached_input_usd_per_mtok": cached_usd, "output_usd_per_mtok": "2"}
    worker = {"price": price, "limits": {"max_output_tokens": 50}}
    async with router_rig(tls_dir, tmp_path, worker=worker) as rig:
        done = (await rig.complete()).done
        assert (done.usage.input_tokens, done.usage.cached_input_tokens) == (12, 4)
        end = await rig.audit.end_of("att_1")
        assert (done.cost_usd_micros, end.cost_usd_micros) == (cost, cost)
        sent = len(rig.upstream.requests[0].body)
        assert rig.audit.begun["att_1"].max_cost_usd_micros == sent + 2 * 50


@pytest.mark.parametrize("stream", [False, True])
async def test_answers_teach_after_what_silence_a_second_call_may_race(
    tls_dir: Path, tmp_path: Path, stream: bool
) -> None:
    async with router_rig(tls_dir, tmp_path, worker={"limits": {"hedge_learned": True}}) as rig:
        for _ in range(20):
            await rig.complete(rig.request(stream=stream))
        (listed,) = pool_from_proto(await rig.stub().ListWorkers(pb.ListWorkersRequest())).workers
    learned_s = listed.hedge_delay_s(streamed=stream)
    assert learned_s is not None
    assert 0 < learned_s < STALL_S
    assert listed.hedge_delay_s(streamed=not stream) is None


async def test_answers_teach_speed_and_length_and_nothing_else(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        (before,) = (await rig.stub().ListWorkers(pb.ListWorkersRequest())).workers
        assert not before.HasField("live")
        latency_us = (await rig.complete()).done.latency_us
        rig.upstream.default = Reply(status=500)
        with pytest.raises(PodiumError):
            await rig.complete()
        (after,) = (await rig.stub().ListWorkers(pb.ListWorkersRequest())).workers
        assert (after.live.answer_count, after.live.output_tokens_per_answer) == (1, 5)
        assert after.live.output_tokens_per_second == pytest.approx(5e6 / latency_us, abs=1)
        after.ClearField("live")
        assert after == before


async def test_the_request_is_what_the_log_holds(tls_dir: Path, tmp_path: Path) -> None:
    worker = {"region": "eu", "limits": {"max_output_tokens": 50}}
    async with router_rig(tls_dir, tmp_path, worker=worker) as rig:
        question = b'{"role":"user","content":"\\u0041 \xe6\xbc\xa2"}'
        rig.audit.parts["run_1/question"] = question
        segments = [
            pb.Segment(data=b"["),
            pb.Segment(part_id="run_1/question", data=question),
            pb.Segment(data=b"]"),
        ]
        await rig.complete(
            rig.request(
                messages=segments,
                parameters_json=b'{"temperature":0.50}',
                round=1,
                step_index=2,
                seen_steps=[0, 1],
                sees_previous_round=True,
            )
        )
        (seen,) = rig.upstream.requests
        begun = rig.audit.begun["att_1"]
        assert seen.body == rig.audit.bodies["att_1"]
        assert seen.body == (
            b'{"model":"w-model","messages":[%b],"max_tokens":50,"temperature":0.50}' % question
        )
        assert [part.part_id for part in begun.body] == ["", "run_1/question", ""]
        assert seen.attempt_id == begun.attempt_id
        assert rig.audit.begun_s["att_1"] <= seen.arrived_s
        assert (begun.provider, begun.provider_model, begun.region) == ("openai-compatible", "w-model", "eu")
        assert begun.endpoint_host == "127.0.0.1"
        assert (begun.round, begun.step_index, list(begun.seen_steps)) == (1, 2, [0, 1])
        assert begun.sees_previous_round
        assert begun.max_cost_usd_micros == len(seen.body) + 2 * 50
        assert begun.pool_digest == rig.catalog.pool().pool_digest
        assert begun.price_digest == rig.catalog.pool().price_digest


async def test_only_what_must_goes_out(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        await rig.complete()
        (seen,) = rig.upstream.requests
        assert set(seen.headers) == {
            "Host",
            "Accept",
            "Accept-Encoding",
            "Authorization",
            "Content-Length",
            "Content-Type",
            "User-Agent",
            "X-Client-Request-Id",
        }
        assert seen.headers["Authorization"] == f"Bearer {KEY}"
        assert seen.path == "/v1/chat/completions"


async def test_a_worker_without_a_key_gets_none(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker={"key": None}) as rig:
        await rig.complete()
        assert "Authorization" not in rig.upstream.requests[0].headers


async def test_streamed_text_arrives_as_it_is_made(tls_dir: Path, tmp_path: Path) -> None:
    texts = [f"word{number} " for number in range(20)]
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer(*texts).but(gap_s=0.02)
        outcome = await rig.complete(rig.request(stream=True))
        assert outcome.text == "".join(texts)
        assert len(outcome.deltas) > 5, "gathered whole it would be one or two"
        assert outcome.deltas[0].text == texts[0]
        assert outcome.arrived_s[-1] - outcome.arrived_s[0] > 0.3
        assert 0 < outcome.done.first_delta_us < outcome.done.latency_us
        assert outcome.done.usage.input_tokens == 12
        assert outcome.done.message == pb.Delta()
        assert rig.upstream.requests[0].fields["stream_options"] == {"include_usage": True}
        end = await rig.audit.end_of("att_1")
        assert end.contents[0].data.decode() == "".join(texts)


async def test_many_small_deltas_become_few_messages(tls_dir: Path, tmp_path: Path) -> None:
    texts = [f"{number:03d} " for number in range(300)]
    async with router_rig(tls_dir, tmp_path, batch_limits=BatchLimits(interval_s=0.05)) as rig:
        rig.upstream.default = answer(*texts).but(gap_s=0.0005)
        outcome = await rig.complete(rig.request(stream=True))
        assert outcome.text == "".join(texts)
        assert outcome.deltas[0].text == texts[0]
        assert len(outcome.deltas) < 60


@pytest.mark.parametrize("split", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
async def test_bytes_may_be_cut_anywhere(split: int, ending: bytes, tls_dir: Path, tmp_path: Path) -> None:
    reply = answer(*MANY_SCRIPTS.split(" "), tool_calls=CALLS)
    events = (b"\xef\xbb\xbf: hello\n\n", event({"choices": []}), event(chunk(None)), *reply.events)
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = Reply(events=tuple(e.replace(b"\n", ending) for e in events), split=split)
        outcome = await rig.complete(rig.request(stream=True))
        assert outcome.text == MANY_SCRIPTS.replace(" ", "")
        assert outcome.done.usage.input_tokens == 12


async def test_tool_calls_keep_their_indices(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer(tool_calls=CALLS, finish="stop")
        streamed = await rig.complete(rig.request(stream=True))
        whole = await rig.complete(rig.request())
        expected = [{"index": 0, **CALLS[0]}, {"index": 1, **CALLS[1]}]
        deltas = [item for delta in streamed.deltas for item in json.loads(delta.tool_calls_json or b"[]")]
        assert deltas == expected
        assert json.loads(whole.done.message.tool_calls_json) == expected
        assert streamed.done.finish_reason == whole.done.finish_reason == "tool_calls"
        for attempt_id in ("att_1", "att_2"):
            (content,) = (await rig.audit.end_of(attempt_id)).contents
            assert content.media_type == "application/json"
            assert json.loads(content.data) == {"role": "assistant", "content": None, "tool_calls": CALLS}


async def test_without_usage_an_estimate_says_so(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer("x" * 400, usage=None)
        for stream in (True, False):
            done = (await rig.complete(rig.request(stream=stream))).done
            assert done.usage.source == plan_pb2.USAGE_SOURCE_ESTIMATED
            assert done.usage.output_tokens == 100
            assert done.usage.input_tokens > 0
            assert done.cost_usd_micros == done.usage.input_tokens + 200


@pytest.mark.parametrize(
    "events",
    [
        (event(chunk({"content": "hi"})), DONE),
        (event(chunk({"content": "hi"}, "stop")),),
        (event(chunk({"content": "hi"}, "stop")).rstrip(),),
        (event(chunk({"content": "hi"})), b"data: [DONE]"),
        (b"data:\n\n", event(chunk({"content": "hi"})), b"event: ping\ndata: {}\n\n", b"data: [DONE] \n\n"),
        (event(chunk({"content": "hi"}, "stop")), event({"choices": [], "usage": USAGE})),
    ],
)
async def test_an_answer_is_complete_when_the_provider_says_so_in_any_way(
    events: tuple[bytes, ...], tls_dir: Path, tmp_path: Path
) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = Reply(events=events)
        outcome = await rig.complete(rig.request(stream=True))
        assert (outcome.text, outcome.done.finish_reason) == ("hi", "stop")


async def test_a_break_after_the_finish_reason_loses_nothing(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = Reply(events=(event(chunk({"content": "hi"}, "stop")),), cut=True)
        outcome = await rig.complete(rig.request(stream=True))
        assert (outcome.text, outcome.done.usage.source) == ("hi", plan_pb2.USAGE_SOURCE_ESTIMATED)


async def test_a_provider_that_cannot_stream_is_understood(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer("hi").but(events=())
        outcome = await rig.complete(rig.request(stream=True))
        assert (outcome.text, len(outcome.deltas)) == ("hi", 1)
        assert outcome.done.message == pb.Delta()


async def test_a_provider_that_leaves_the_stream_open_keeps_nobody_waiting(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer("hi").but(
            events=(*answer("hi").events, b": still here\n\n"), gap_s=0.15
        )
        outcome = await rig.complete(rig.request(stream=True))
        (seen,) = rig.upstream.requests
        assert outcome.text == "hi"
        assert seen.ended_s is None, "the answer came before the provider was done"


async def test_connections_are_used_again(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        for stream in (False, True, True, False):
            await rig.complete(rig.request(stream=stream))
        assert len({seen.connection for seen in rig.upstream.requests}) == 1


async def test_a_large_body_goes_through_and_a_larger_one_does_not(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        text = "x" * 5_000_000
        await rig.complete(rig.request(text))
        assert rig.upstream.requests[0].body == rig.audit.bodies["att_1"]
        assert rig.upstream.requests[0].fields["messages"][0]["content"] == text
        with pytest.raises(PodiumError) as refused:
            await rig.complete(rig.request("x" * 33 * 1024 * 1024))
        assert refused.value.code is Code.TOO_LARGE
        assert len(rig.upstream.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("inputs", "outputs", "source"),
    [
        (10**9, 10**9, plan_pb2.USAGE_SOURCE_ESTIMATED),
        (12, 10**9, plan_pb2.USAGE_SOURCE_ESTIMATED),
        (5_000, 5_000, plan_pb2.USAGE_SOURCE_PROVIDER),
    ],
)
async def test_no_count_of_a_providers_costs_more_than_was_permitted(
    tls_dir: Path, tmp_path: Path, inputs: int, outputs: int, source: int, stream: bool
) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer("x", usage={"prompt_tokens": inputs, "completion_tokens": outputs})
        outcome = await rig.complete(rig.request(stream=stream))
        end = await rig.audit.end_of("att_1")
        assert end.usage.source == source
        assert outcome.done.cost_usd_micros == end.cost_usd_micros
        assert 0 < end.cost_usd_micros <= rig.audit.begun["att_1"].max_cost_usd_micros


@pytest.mark.parametrize("stream", [False, True])
async def test_tool_calls_arrive_as_openais_fields_and_nothing_else(
    tls_dir: Path, tmp_path: Path, stream: bool
) -> None:
    hostile = (
        b'{"index":0,"id":"call_a","type":"function","x":NaN,"deep":' + b"[" * 900 + b"]" * 900 + b","
        b'"function":{"name":"f","y":1e999,"arguments":"{\\"half\\":\\"\\ud800\\"}"}}'
    )
    body = b'{"choices":[{"%b":{"tool_calls":[%b]},"finish_reason":"tool_calls"}]}'
    streamed = b"data: " + body % (b"delta", hostile) + b"\n\n"
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = Reply(body % (b"message", hostile), (streamed, DONE))
        outcome = await rig.complete(rig.request(stream=stream))
        deltas = [delta for delta in (*outcome.deltas, outcome.done.message) if delta.tool_calls_json]
        (call,) = json.loads(deltas[0].tool_calls_json)
        function = {"name": "f", "arguments": '{"half":"\ufffd"}'}
        assert call == {"index": 0, "id": "call_a", "type": "function", "function": function}
