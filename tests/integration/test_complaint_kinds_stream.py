"""Faults of streams that users of other gateways report, one test for each kind."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.stack import URL, Streamed, asked, running_stack
from tests.fakes.upstream import DONE, USAGE, Reply, answer, chunk, event
from tests.fakes.waiting import PATIENCE_S

_USAGE_ASKED: dict[str, Any] = {"stream_options": {"include_usage": True}}


async def test_the_usage_chunk_has_no_choices_and_comes_once(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        came = await stack.stream(**_USAGE_ASKED)
    assert came.is_done
    with_usage = [number for number, chunk in enumerate(came.chunks) if chunk.get("usage")]
    assert with_usage == [len(came.chunks) - 1]
    assert came.chunks[-1]["choices"] == []
    usage = came.chunks[-1]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (12, 5, 17)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 4
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 2


async def test_usage_is_metered_although_the_client_did_not_ask(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        came = await stack.stream()
        assert stack.sent[0]["stream_options"] == {"include_usage": True}
    assert not any("usage" in chunk for chunk in came.chunks)
    billed = came.chunks[-1]["podium"]["usage"]["billed"]
    assert (billed["total_tokens"], billed["source"]) == (17, "provider")


async def test_characters_cut_by_a_network_chunk_stay_whole(tls_dir: Path, tmp_path: Path) -> None:
    texts = ("你好", "世界 🌍", "👩‍👩‍👧 ẞ", "\u2028\u0085 end")
    async with running_stack(tls_dir, tmp_path) as stack:
        stack.upstream.default = answer(*texts).but(split=7)
        came = await stack.stream()
    assert came.text == "".join(texts)


async def test_a_first_chunk_without_choices_and_later_ones_without_delta(
    tls_dir: Path, tmp_path: Path
) -> None:
    filters = {"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": []}
    bare: dict[str, Any] = {"choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {}}]}
    events = (
        event(filters),
        event(chunk({"content": "all "})),
        event(bare),
        event(chunk(None)),
        event(chunk({"content": "there"})),
        event(chunk({}, "stop")),
        event({"choices": [], "usage": USAGE}),
        DONE,
    )
    async with running_stack(tls_dir, tmp_path) as stack:
        stack.upstream.default = Reply(events=events)
        came = await stack.stream()
    assert (came.text, came.finish_reasons, came.errors) == ("all there", ["stop"], [])


async def test_deltas_are_passed_on_one_by_one(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        stack.upstream.default = answer(*[f"word{number} " for number in range(20)]).but(gap_s=0.05)
        came = await stack.stream()
    with_text = [piece for piece in came.pieces if b'"content":"word' in piece]
    assert len(with_text) >= 18


async def test_every_one_of_many_streams_ends(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, max_concurrent_runs=100) as stack:
        stack.upstream.default = answer(*["x"] * 10).but(gap_s=0.05)
        came = await asyncio.gather(*[stack.stream() for _ in range(60)])
    assert all(one.is_done and one.text == "x" * 10 and not one.errors for one in came)


async def test_a_break_in_mid_stream_ends_as_an_error(tls_dir: Path, tmp_path: Path) -> None:
    events = answer("one ", "two ", "three").events[:4]
    async with running_stack(tls_dir, tmp_path) as stack:
        stack.upstream.default = Reply(events=events, cut=True)
        came = await stack.stream()
    assert came.status == 200
    assert came.text == "one two three"
    assert came.finish_reasons == []
    assert [error["code"] for error in came.errors] == ["provider_stream_cut"]


async def test_a_silent_start_is_filled_with_comments(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, first_byte_s=0.05, keep_alive_s=0.1) as stack:
        stack.upstream.default = answer("late").but(delay_s=0.6)
        came = await stack.stream()
    comments = [piece for piece in came.pieces if piece.startswith(b":")]
    assert len(comments) >= 4
    assert (came.text, came.is_done) == ("late", True)


_ENDS: dict[str, tuple[Reply, str]] = {
    "cut before": (Reply(content_type="text/event-stream", events=(b": hi\n\n",), cut=True), ""),
    "cut within": (answer("a", "b").but(events=answer("a", "b").events[:2], cut=True), ""),
    "hang": (answer("late").but(delay_s=30), ""),
    "refused": (Reply(b'{"error":{"message":"no"}}', status=400), ""),
    "empty": (Reply(b"", status=200), ""),
    "length": (answer("a", finish="length"), "length"),
    "content filter": (answer("a", finish="content_filter"), "content_filter"),
}


@pytest.mark.parametrize("name", _ENDS)
async def test_every_stream_ends_in_a_finish_reason_or_an_error(
    tls_dir: Path, tmp_path: Path, name: str
) -> None:
    reply, finish_reason = _ENDS[name]
    async with running_stack(tls_dir, tmp_path, first_byte_s=0.01, max_attempts_per_step=1) as stack:
        stack.upstream.default = reply
        # The limit makes the hanging worker end; the comment makes the status 200 before any end.
        came = await stack.stream(podium={"max_seconds": 1.0})
    if came.status == 200:
        assert came.is_done
        assert came.finish_reasons == ([finish_reason] if finish_reason else [])
        assert len(came.errors) == (0 if finish_reason else 1)
    else:
        assert not finish_reason
        assert json.loads(b"".join(came.pieces))["error"]["code"]


async def test_the_connection_is_not_left_open_after_the_end(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        events = answer("a", "b").events[:3]
        stack.upstream.default = Reply(events=events, cut=True)
        async with stack.session.post(URL, json=asked(stream=True)) as response:
            async with asyncio.timeout(PATIENCE_S):
                body = await response.content.read()
    assert Streamed(200, (body,)).errors


async def test_meters_see_the_last_step_and_the_bill_sees_all(tls_dir: Path, tmp_path: Path) -> None:
    def used(prompt: int, completion: int) -> dict[str, Any]:
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    workers: dict[str, dict[str, Any]] = {"alpha": {}, "beta": {}}
    async with running_stack(tls_dir, tmp_path, workers=workers) as stack:
        # The planned steps: alpha computes, beta says it. Beta's first attempt fails after all was used.
        stack.upstream.script.extend(
            [
                answer("42", usage=used(100, 10)),
                Reply(b'{"error":{"message":"overloaded"}}', status=503, headers={"Retry-After": "0"}),
                answer("forty-two", usage=used(30, 3)),
            ]
        )
        status, body = await stack.ask(model="podium")
        assert status == 200
    usage = body["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (30, 3, 33)
    # The plan itself took 50 and 9.
    assert usage["prompt_tokens_details"]["orchestration_input_tokens"] == 150
    assert usage["completion_tokens_details"]["orchestration_output_tokens"] == 19
    assert body["podium"]["usage"]["billed"]["total_tokens"] == 33 + 110 + 59


async def test_a_client_that_reads_events_only_survives_a_slow_worker(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, first_byte_s=0.05, keep_alive_s=0.1) as stack:
        stack.upstream.default = answer("late").but(delay_s=0.7)
        timeout = aiohttp.ClientTimeout(sock_read=0.5)
        async with stack.session.post(URL, json=asked(stream=True), timeout=timeout) as response:
            body = await response.read()
    assert Streamed(200, (body,)).text == "late"
