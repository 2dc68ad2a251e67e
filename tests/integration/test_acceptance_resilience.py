"""Concurrency, worker faults and caps as acceptance cases against the whole stack; one worker slows no other."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from opentelemetry.sdk.trace import TracerProvider

from podium_router.breaker import BreakerLimits
from tests.fakes.leaves import leaves_in, seals_in
from tests.fakes.otlp_receiver import OtlpReceiver
from tests.fakes.planner import plan_of
from tests.fakes.stack import Stack, Streamed, asked, running_stack
from tests.fakes.upstream import SeenRequest, answer, refusal
from tests.fakes.waiting import PATIENCE_S, SOON_S, STALL_S, until

SHARED = {"card": {"skills": [{"name": "x", "accuracy": "0.9", "n": 9, "measured_on": "2026-11-30"}]}}
JOIN = plan_of(("a", "one half", ()), ("b", "other half", ()), ("c", "join", (0, 1)))
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]


def of(stack: Stack, model: str) -> list[SeenRequest]:
    """Return the requests that one worker's provider has seen."""
    return [seen for seen in stack.upstream.requests if seen.fields["model"] == f"{model}-model"]


@asynccontextmanager
async def three(tls_dir: Path, home: Path, **settings: Any) -> AsyncIterator[Stack]:
    able = {"features": ["tools"]}
    async with running_stack(tls_dir, home, workers={"a": able, "b": able, "c": able}, **settings) as stack:
        yield stack


async def first_word_of(stack: Stack, tools: list[dict[str, Any]] | None) -> float:
    """Ask for a streamed answer; return when the first word of it came."""
    loop = asyncio.get_running_loop()
    first_word_s = 0.0
    body = asked(model="podium", stream=True, tools=tools)
    async with stack.session.post("/v1/chat/completions", json=body) as response:
        async for line in response.content:
            if b"word" in line and not first_word_s:
                first_word_s = loop.time()
    return first_word_s


@pytest.mark.slow
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["plain", "with tools"])
async def test_independent_steps_run_at_once_and_the_last_one_streams(
    tools: list[dict[str, Any]] | None, tls_dir: Path, tmp_path: Path
) -> None:
    async with three(tls_dir, tmp_path) as stack:
        stack.conductor.plan = JOIN
        stack.upstream.by_model = {
            "a-model": answer("A").but(delay_s=2),
            "b-model": answer("B").but(delay_s=2),
            "c-model": answer(*["word "] * 10).but(gap_s=0.2),
        }
        first_word_s = await first_word_of(stack, tools)
        (a,), (b,), (c,) = of(stack, "a"), of(stack, "b"), of(stack, "c")
        assert a.ended_s is not None
        assert b.ended_s is not None
        assert c.ended_s is not None
        assert max(a.arrived_s, b.arrived_s) < min(a.ended_s, b.ended_s), "both at once"
        assert {"A", "B"} <= set(json.dumps(c.fields["messages"]))
        assert first_word_s < c.ended_s, "the client reads it while the worker still writes"
        assert ("tools" in c.fields, "tools" in a.fields) == (tools is not None, False)


async def test_429_then_500s_ends_at_the_recorded_fallback(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, workers={"a": SHARED, "b": SHARED}) as stack:
        stack.conductor.plan = plan_of(("a", "", ()))
        stack.upstream.script.extend([refusal(429, retry_after="1"), refusal(500)])
        stack.upstream.by_model = {"a-model": refusal(500), "b-model": answer("42")}
        status, body = await stack.ask(model="podium")
        assert (status, body["choices"][0]["message"]["content"]) == (200, "42")
        first, second = of(stack, "a")
        assert second.arrived_s - first.arrived_s >= 1.0, "backed off for as long as it asked"
        assert len(of(stack, "b")) == 1
        (planned,) = leaves_in(tmp_path, "plan")
        assert planned["facts"]["steps"][0]["fallback_worker_id"] == "b"
        begun = [leaf["facts"]["worker_id"] for leaf in leaves_in(tmp_path, "attempt_begun")]
        assert begun == ["a", "a", "b"]
        (step,) = body["podium"]["steps"]
        assert len(step["attempts"]) == 3


async def test_caps_hold_over_retries_for_two_tenants_at_once(tls_dir: Path, tmp_path: Path) -> None:
    async with three(tls_dir, tmp_path) as stack:
        stack.conductor.plan = JOIN
        stack.upstream.default = refusal(500)
        body = asked(model="podium", podium={"max_calls": 4})

        async def ask(key: str) -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {stack.audit.tokens[key]}"}
            async with stack.session.post("/v1/chat/completions", json=body, headers=headers) as response:
                return response.status, (await response.json())["error"]["code"]

        told = await asyncio.gather(ask("key1"), ask("key3"))
        assert all(status >= 400 and code for status, code in told)
        begun = [leaf["run_id"] for leaf in leaves_in(tmp_path, "attempt_begun")]
        assert sorted(begun.count(run_id) for run_id in set(begun)) == [4, 4]
        assert len(stack.upstream.requests) == 8
        for seal in await seals_in(tmp_path, 2):
            assert (seal["outcome"], seal["unknown_attempts"]) == ("failed", []), "nothing stays reserved"


async def test_asking_for_more_than_the_limits_is_refused_before_anything_is_sent(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with three(tls_dir, tmp_path) as stack:
        status, body = await stack.ask(model="podium", podium={"rounds": 99})
        assert (status, body["error"]["param"]) == (400, "podium.rounds")
        status, _ = await stack.ask(model="podium", podium={"max_usd": "0.000001"})
        assert status == 403
        assert stack.upstream.requests == []


async def test_a_trace_of_a_caller_that_is_not_trusted_is_not_continued(
    tls_dir: Path, tmp_path: Path
) -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("router")
    with OtlpReceiver() as collector:
        async with running_stack(
            tls_dir, tmp_path, router={"tracer": tracer}, otlp_endpoint=collector.endpoint
        ) as stack:
            headers = {"traceparent": f"00-{'4b' * 16}-{'f0' * 8}-01"}
            async with stack.session.post("/v1/chat/completions", json=asked(), headers=headers) as response:
                assert response.status == 200
            (seen,) = stack.upstream.requests
            assert "4b" * 16 not in seen.headers["traceparent"]
            assert seen.headers["traceparent"].startswith("00-")


@pytest.mark.parametrize("how", ["hangs", "is dead"])
async def test_one_bad_worker_slows_no_other(how: str, tls_dir: Path, tmp_path: Path) -> None:
    """Named after vllm-project/production-stack#749: one dead backend blocks requests to healthy ones."""
    bad = {"limits": {"max_concurrency": 4, "timeout_s": 60}}
    if how == "is dead":
        bad["base_url"] = "http://127.0.0.1:1/v1"  # type: ignore[assignment]
    async with running_stack(tls_dir, tmp_path, workers={"bad": bad, "good": {}}) as stack:
        stack.upstream.by_model = {
            "bad-model": answer("late").but(delay_s=STALL_S),
            "good-model": answer("42"),
        }
        calls = [asyncio.create_task(stack.ask(model="worker/bad")) for _ in range(40)]
        await asyncio.sleep(0.3)
        loop = asyncio.get_running_loop()
        for _ in range(5):
            began_s = loop.time()
            status, _ = await stack.ask(model="worker/good")
            assert status == 200
            assert loop.time() - began_s < SOON_S
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_paused_worker_leaves_the_eligible_pool_and_comes_back(tls_dir: Path, tmp_path: Path) -> None:
    workers = {"a": SHARED, "b": SHARED}
    rig = {"breaker_limits": BreakerLimits(failures=2, pause_s=1.5)}
    async with running_stack(tls_dir, tmp_path, workers=workers, router=rig) as stack:
        stack.upstream.by_model = {"a-model": refusal(500), "b-model": answer("42")}
        await stack.ask(model="worker/a")
        async with asyncio.timeout(PATIENCE_S):
            while (told := await stack.ask(model="worker/a"))[1]["error"]["code"] != "workers_down":
                await asyncio.sleep(0.05)
        assert told[0] == 503
        stack.upstream.by_model["a-model"] = answer("back")
        async with asyncio.timeout(PATIENCE_S):
            while (told := await stack.ask(model="worker/a"))[0] != 200:
                await asyncio.sleep(0.1)
        assert told[1]["choices"][0]["message"]["content"] == "back"


@pytest.mark.slow
async def test_two_hundred_streams_of_five_seconds_all_end_well(tls_dir: Path, tmp_path: Path) -> None:
    """Named after Portkey-AI/gateway#1659: answers cut off under many concurrent streams."""
    async with running_stack(tls_dir, tmp_path) as stack:
        texts = [f"{number} " for number in range(50)]
        stack.upstream.default = answer(*texts).but(gap_s=0.1)
        got = await asyncio.gather(*[stack.stream() for _ in range(200)])
        assert {one.text for one in got} == {"".join(texts)}
        assert all(one.is_done and one.finish_reasons == ["stop"] for one in got)


@pytest.mark.slow
async def test_a_thousand_streams_stay_open_for_a_minute_and_end_well(tls_dir: Path, tmp_path: Path) -> None:
    """Named after vllm-project/production-stack#448: a router that falls over near a thousand at once.

    They are opened fifty at a time, as fast as the machine can, and go on when all are open.
    """
    texts = [f"{number} " for number in range(7)]
    patient: dict[str, Any] = {"w": {"limits": {"max_concurrency": 1000, "timeout_s": 600}}}
    turn, everybody = asyncio.Semaphore(50), asyncio.Event()
    opened: list[bytes] = []
    async with running_stack(tls_dir, tmp_path, workers=patient, max_concurrent_runs=1500) as stack:
        stack.upstream.default = answer(*texts).but(gap_s=7.5, held_after_text=everybody)
        url, roomy = f"http://127.0.0.1:{stack.gateway.port}", aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(url, headers=stack.session.headers, connector=roomy) as crowd:

            async def one() -> Streamed:
                async with turn:
                    response = await crowd.post("/v1/chat/completions", json=asked(stream=True))
                    first = await response.content.readuntil(b'"0 "')
                    opened.append(first)
                return Streamed(response.status, (first, await response.read()))

            running = [asyncio.create_task(one()) for _ in range(1000)]
            await until(lambda: len(opened) == 1000, 4 * PATIENCE_S)
            everybody.set()
            got = await asyncio.gather(*running)
        assert [one.errors for one in got if one.errors] == []
        assert {one.text for one in got} == {"".join(texts)}
        assert all(one.is_done and one.finish_reasons == ["stop"] for one in got)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
async def test_a_healthy_worker_is_not_cut_after_45_seconds(
    stream: bool, tls_dir: Path, tmp_path: Path
) -> None:
    async with running_stack(tls_dir, tmp_path, workers={"w": {"limits": {}}}) as stack:
        stack.upstream.default = answer("late").but(delay_s=45)
        if stream:
            got = await stack.stream()
            assert (got.text, got.is_done) == ("late", True)
        else:
            status, body = await stack.ask()
            assert (status, body["choices"][0]["message"]["content"]) == (200, "late")


async def test_a_second_attempt_races_a_silent_one_and_both_are_on_record(
    tls_dir: Path, tmp_path: Path
) -> None:
    hedged = {"limits": {"max_concurrency": 8, "timeout_s": 30, "hedge_after_s": 0.2}}
    async with running_stack(tls_dir, tmp_path, workers={"w": hedged}) as stack:
        stack.upstream.script.append(answer("slow").but(delay_s=STALL_S))
        stack.upstream.default = answer("quick ", "words")
        got = await stack.stream()
        assert (got.text, got.is_done) == ("quick words", True)
        slow, _ = stack.upstream.requests
        await until(lambda: slow.was_hung_up, SOON_S)
        await until(lambda: len(leaves_in(tmp_path, "attempt_ended", "attempt_late")) >= 2)
        outcomes = {
            leaf["facts"]["attempt_id"]: leaf["facts"]["outcome"]
            for leaf in leaves_in(tmp_path, "attempt_ended", "attempt_late")
        }
        assert sorted(outcomes.values()) == ["cancelled", "completed"]


async def test_a_straggler_is_cancelled_billed_and_its_provider_closed(tls_dir: Path, tmp_path: Path) -> None:
    async with three(tls_dir, tmp_path, straggler_wait_s=0.3) as stack:
        stack.conductor.plan = JOIN
        stack.upstream.by_model = {
            "a-model": answer("A"),
            "b-model": answer("B").but(delay_s=STALL_S),
            "c-model": answer("joined"),
        }
        status, body = await stack.ask(model="podium")
        assert (status, body["choices"][0]["message"]["content"]) == (200, "joined")
        (late,) = of(stack, "b")
        await until(lambda: late.was_hung_up, SOON_S)
        (opened,) = leaves_in(tmp_path, "opened")
        assert opened["facts"]["caps"]["straggler_wait_ms"] == 300
        await until(lambda: len(leaves_in(tmp_path, "attempt_ended", "attempt_late")) >= 3)
        ends = [leaf["facts"] for leaf in leaves_in(tmp_path, "attempt_ended", "attempt_late")]
        assert sorted(end["outcome"] for end in ends) == ["cancelled", "completed", "completed"]
        assert all(end["cost_usd_micros"] > 0 for end in ends)
