"""When providers fail: the caller hears what and what to do, the log hears how it ended, nobody the key."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import read_failure_facts
from podium_router.breaker import BreakerLimits
from podium_router.providers.exchange import ProviderLimits
from tests.fakes.router_rig import KEY, Outcome, Rig, router_rig
from tests.fakes.upstream import DONE, Reply, answer, chunk, event, refusal
from tests.fakes.waiting import PATIENCE_S, STALL_S

FAILED = plan_pb2.ATTEMPT_OUTCOME_FAILED
TIMED_OUT = plan_pb2.ATTEMPT_OUTCOME_TIMED_OUT
PARTIAL = event(chunk({"content": "partial"}))


async def failure(rig: Rig, reply: Reply | None = None, *, stream: bool = False) -> PodiumError:
    """Make an attempt that must fail; check what holds for every failure."""
    if reply is not None:
        rig.upstream.script.append(reply)
    before = len(rig.upstream.requests)
    request = rig.request(stream=stream)
    with pytest.raises(PodiumError) as failed:
        await rig.complete(request)
    error = failed.value
    end = await rig.audit.end_of(request.attempt_id)
    assert end.error_reason == error.reason
    told = read_failure_facts(error.metadata)
    assert told is not None
    assert told[1] == end.cost_usd_micros, "the caller accounts for it as the log does"
    assert told[0].total_tokens == end.usage.input_tokens + end.usage.output_tokens
    assert len(rig.upstream.requests) <= before + 1, "one attempt is one request"
    assert KEY not in f"{error.message} {error.reason} {error.metadata} {end}"
    return error


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reply", "code", "reason", "retryable"),
    [
        (refusal(400), Code.PROVIDER_FAILED, "PROVIDER_REFUSED", "false"),
        (refusal(401, KEY), Code.PROVIDER_FAILED, "PROVIDER_REFUSED", "false"),
        (refusal(404), Code.PROVIDER_FAILED, "PROVIDER_REFUSED", "false"),
        (refusal(429), Code.RATE_LIMITED, "PROVIDER_RATE_LIMITED", "true"),
        (refusal(500), Code.PROVIDER_FAILED, "PROVIDER_FAILED", "true"),
        (refusal(503), Code.PROVIDER_FAILED, "PROVIDER_FAILED", "true"),
        (
            Reply(b"<html>@KEY@</html>", status=502, echo_key=True),
            Code.PROVIDER_FAILED,
            "PROVIDER_FAILED",
            "true",
        ),
        (Reply(b"{", status=500, cut=True), Code.PROVIDER_FAILED, "PROVIDER_FAILED", "true"),
    ],
)
async def test_refusals(
    reply: Reply, code: Code, reason: str, retryable: str, stream: bool, tls_dir: Path, tmp_path: Path
) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        error = await failure(rig, reply, stream=stream)
        assert (error.code, error.reason, error.metadata["retryable"]) == (code, reason, retryable)
        end = rig.audit.ended["att_1"]
        assert (end.outcome, end.dispatched, end.cost_usd_micros) == (FAILED, True, 0)
        assert end.usage == plan_pb2.Usage(source=plan_pb2.USAGE_SOURCE_ESTIMATED)


async def test_how_long_to_wait_is_passed_on(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        assert (await failure(rig, refusal(503, retry_after="7"))).retry_after_s == 7.0
        assert (await failure(rig, refusal(429))).retry_after_s is None
        assert (await failure(rig, refusal(429, retry_after="7"))).retry_after_s == 7.0


@pytest.mark.parametrize(
    ("reply", "stream", "reason"),
    [
        (Reply(events=(PARTIAL, PARTIAL), cut=True), True, "PROVIDER_STREAM_CUT"),
        (Reply(events=(PARTIAL, PARTIAL)), True, "PROVIDER_STREAM_CUT"),
        (Reply(events=(PARTIAL, b'data: {"choices": [{"de')), True, "PROVIDER_STREAM_CUT"),
        (Reply(events=(b": nothing\n\n",)), True, "PROVIDER_STREAM_CUT"),
        (
            Reply(events=(PARTIAL, event({"error": {"message": "@KEY@"}})), echo_key=True),
            True,
            "PROVIDER_ERROR",
        ),
        (Reply(events=(PARTIAL, b"event: error\ndata: @KEY@\n\n"), echo_key=True), True, "PROVIDER_ERROR"),
        (Reply(events=(PARTIAL, b"data: @KEY@\n\n"), echo_key=True), True, "PROVIDER_BAD_ANSWER"),
        (Reply(events=(PARTIAL, b"data: \xff\n\n")), True, "PROVIDER_BAD_ANSWER"),
        (Reply(events=(b"data: %b\n\n" % (b"[" * 100_000), DONE)), True, "PROVIDER_BAD_ANSWER"),
        (Reply(b'{"choices": ['), False, "PROVIDER_BAD_ANSWER"),
        (Reply(b'{"note": "@KEY@"}', echo_key=True), False, "PROVIDER_BAD_ANSWER"),
        (Reply(b"[" * 100_000), False, "PROVIDER_BAD_ANSWER"),
        (Reply(b'{"error": {"message": "@KEY@"}}', echo_key=True), False, "PROVIDER_ERROR"),
        (Reply(b'{"choices": [', cut=True), False, "PROVIDER_CONNECTION_LOST"),
    ],
)
async def test_broken_answers(reply: Reply, stream: bool, reason: str, tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        error = await failure(rig, reply, stream=stream)
        assert (error.code, error.reason) == (Code.PROVIDER_FAILED, reason)
        assert error.metadata["retryable"] == "true"
        end = rig.audit.ended["att_1"]
        assert (end.outcome, end.dispatched) == (FAILED, True)
        if PARTIAL in reply.events:
            assert end.usage.source == plan_pb2.USAGE_SOURCE_ESTIMATED
            assert end.contents[0].data.startswith(b"partial")
        else:
            assert end.usage.source == plan_pb2.USAGE_SOURCE_UNKNOWN
            assert end.cost_usd_micros == rig.audit.begun["att_1"].max_cost_usd_micros


async def test_what_came_before_a_break_reaches_the_caller(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = Reply(events=(PARTIAL, PARTIAL, PARTIAL), gap_s=0.03, cut=True)
        outcome = Outcome()
        with pytest.raises(PodiumError) as failed:
            await rig.complete(rig.request(stream=True), into=outcome)
        assert failed.value.reason == "PROVIDER_STREAM_CUT"
        assert "".join(delta.text for delta in outcome.deltas) == "partial" * 3


async def test_redirects_are_not_followed(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        elsewhere = Reply(status=307, headers={"Location": f"{rig.upstream.base_url}/elsewhere"})
        error = await failure(rig, elsewhere)
        assert error.reason == "PROVIDER_REFUSED"
        assert len(rig.upstream.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_answers_are_bounded(stream: bool, tls_dir: Path, tmp_path: Path) -> None:
    limits = ProviderLimits(max_answer_bytes=10_000, max_event_bytes=5_000)
    async with router_rig(tls_dir, tmp_path, provider_limits=limits) as rig:
        error = await failure(rig, answer(*["x" * 1_000] * 20), stream=stream)
        assert (error.reason, error.metadata["retryable"]) == ("PROVIDER_ANSWER_TOO_LARGE", "false")
        error = await failure(rig, answer("x" * 9_000 if stream else "x" * 20_000), stream=stream)
        assert error.reason == "PROVIDER_ANSWER_TOO_LARGE"


async def test_nobody_listening_is_not_a_dispatch(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker={"base_url": "http://127.0.0.1:1/v1"}) as rig:
        error = await failure(rig)
        assert (error.code, error.reason) == (Code.PROVIDER_FAILED, "PROVIDER_UNREACHABLE")
        end = rig.audit.ended["att_1"]
        assert (end.dispatched, end.cost_usd_micros) == (False, 0)


async def test_a_worker_has_its_own_time_limit(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker={"limits": {"timeout_s": 0.2}}) as rig:
        error = await failure(rig, answer("x").but(delay_s=STALL_S))
        assert (error.code, error.reason) == (Code.DEADLINE, "WORKER_TIMEOUT")
        end = rig.audit.ended["att_1"]
        assert (end.outcome, end.usage.source) == (TIMED_OUT, plan_pb2.USAGE_SOURCE_UNKNOWN)
        error = await failure(rig, answer("a", "b").but(gap_s=0.15), stream=True)
        assert error.reason == "WORKER_TIMEOUT", "a stream that never pauses long is bounded too"


async def test_a_failing_worker_is_paused_and_taken_back(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, breaker_limits=BreakerLimits(failures=3, pause_s=1.5)) as rig:
        for _ in range(3):
            await failure(rig, refusal(500))
        with pytest.raises(PodiumError) as refused:
            await rig.complete()
        assert (refused.value.code, refused.value.reason) == (Code.PROVIDER_FAILED, "WORKER_DOWN")
        assert (len(rig.upstream.requests), len(rig.audit.begun)) == (3, 3), (
            "no permit is asked for, nothing sent"
        )
        listed = await rig.stub().ListWorkers(pb.ListWorkersRequest())
        assert listed.workers[0].health == pb.WORKER_HEALTH_DOWN
        async with asyncio.timeout(PATIENCE_S):
            while listed.workers[0].health != pb.WORKER_HEALTH_UP:
                await asyncio.sleep(0.05)
                listed = await rig.stub().ListWorkers(pb.ListWorkersRequest())
        assert (await rig.complete()).text == "hello"


async def test_refused_requests_and_rate_limits_pause_nobody(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, breaker_limits=BreakerLimits(failures=1)) as rig:
        for status in (400, 429, 404):
            await failure(rig, refusal(status))
        assert (await rig.complete()).text == "hello"


@dataclass
class RawProvider:
    """Answers the first request of each connection, then closes on the second without a word."""

    requests: list[bytes] = field(default_factory=list)
    base_url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = answer("first").body
        for number in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            self.requests.append(head + await reader.readexactly(length))
            if number == 0:
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                    % len(body)
                )
                writer.write(body)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def raw_provider() -> AsyncIterator[RawProvider]:
    provider = RawProvider()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    provider.base_url = f"http://{host}:{port}/v1"
    async with server:
        yield provider


async def test_a_broken_kept_alive_connection_is_not_tried_again(tls_dir: Path, tmp_path: Path) -> None:
    async with (
        raw_provider() as provider,
        router_rig(tls_dir, tmp_path, worker={"base_url": provider.base_url}) as rig,
    ):
        assert (await rig.complete()).text == "first"
        error = await failure(rig)
        assert error.reason == "PROVIDER_CONNECTION_LOST"
        assert rig.audit.ended["att_2"].dispatched
        await asyncio.sleep(0.1)
        assert len(provider.requests) == 2, "two attempts, two requests"
        assert [b"att_1" in provider.requests[0], b"att_2" in provider.requests[1]] == [True, True]


async def test_the_key_is_nowhere_but_at_the_provider(
    tls_dir: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echoing = answer("fine").but(echo_key=True)
    body = echoing.body.replace(b"chatcmpl-1", b"id-@KEY@").replace(b"served-model", b"@KEY@")
    body = body.replace(b"Bearer ", b"")
    async with router_rig(tls_dir, tmp_path, breaker_limits=BreakerLimits(failures=100)) as rig:
        for reply in (
            refusal(401, KEY),
            refusal(429, KEY),
            refusal(500, KEY),
            Reply(b"@KEY@", echo_key=True),
        ):
            await failure(rig, reply)
            await failure(rig, reply.but(events=(b"data: @KEY@\n\n",)), stream=True)
        rig.upstream.script.append(echoing.but(body=body.replace(b"@KEY@", KEY.encode())))
        outcome = await rig.complete()
        assert (outcome.done.provider_response_id, outcome.done.served_model) == ("", "")
        assert all(seen.headers["Authorization"] == f"Bearer {KEY}" for seen in rig.upstream.requests)
        ends = await rig.audit.all_ended(9)
        assert KEY not in f"{ends} {rig.audit.begun} {outcome}"
        logged = "".join(f"{vars(record)} {record.getMessage()}" for record in caplog.records)
        assert "an attempt failed" in logged
        assert KEY not in logged
