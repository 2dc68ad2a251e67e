"""The gateway's HTTP edge over fake ports: bad input, errors, silence, hang-ups, limits."""

import asyncio
import gzip
import json
import logging
import socket
from typing import Any

import aiohttp
import pytest

from podium_core.config.tenants import Tenant
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.policy import Reach, WorkerFilter
from podium_core.domain.run import Caps, RunOutcome
from podium_core.orchestration.ports import PlanQuery, PlanReply
from podium_gateway.errors import HTTP_TABLE
from podium_gateway.ports import Readiness
from tests.fakes.gateway import AUDITOR_TOKEN, TOKEN, EdgeServer, running_edge
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool
from tests.fakes.recorder import FakeRecorder
from tests.fakes.waiting import PATIENCE_S, SOON_S, until
from tests.fakes.worker import FakeWorkers, Reply

URL = "/v1/chat/completions"
ASKED: dict[str, Any] = {"model": "podium", "messages": [{"role": "user", "content": "6 times 7?"}]}
STREAMED = {**ASKED, "stream": True}


async def _post(edge: EdgeServer, body: object = ASKED, **headers: str) -> tuple[int, Any, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with (
        aiohttp.ClientSession(headers={**edge.auth, **headers}) as session,
        session.post(edge.url + URL, data=data) as response,
    ):
        text = await response.text()
        return response.status, response.headers, json.loads(text) if text.startswith("{") else text


async def _hang_up(posting: "asyncio.Future[aiohttp.ClientResponse]") -> None:
    if posting.done():
        posting.result().close()
    else:
        posting.cancel()
        await asyncio.wait([posting])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed_json"),
        (b"\xff\xfe", 400, "malformed_json"),
        (b'{"model":"podium","model":"x"}', 400, "duplicate_key"),
        (b"[" * 5_000, 400, "too_deep"),
        ({**ASKED, "model": "gpt-9"}, 404, "model_not_found"),
        ({**ASKED, "model": "worker/gamma"}, 404, "model_not_found"),
        ({**ASKED, "tools": [{"type": "function", "function": {"name": "f"}}]}, 400, "unsupported_parameter"),
        ({**ASKED, "best_of": 2}, 400, "unknown_parameter"),
        ({**ASKED, "podium": {"budget": 1}}, 400, "unknown_parameter"),
        ({**ASKED, "podium": {"rounds": 2}}, 400, "invalid_value"),
        ({**ASKED, "podium": {"workers": {"only": ["gamma"]}}}, 400, "unknown_worker"),
        ({**ASKED, "podium": {"workers": {"except": ["alpha", "beta"]}}}, 403, "no_eligible_worker"),
    ],
)
async def test_bad_requests_say_what_to_mend_and_reach_no_worker(
    body: object, status: int, code: str
) -> None:
    workers = FakeWorkers()
    async with running_edge(workers=workers) as edge:
        found, _, answer = await _post(edge, body)
    assert (found, answer["error"]["code"]) == (status, code)
    assert set(answer["error"]) == {"message", "type", "code", "param"}
    assert workers.calls == []


async def test_an_empty_eligible_pool_is_recorded_as_refused() -> None:
    recorder = FakeRecorder()
    async with running_edge(recorder=recorder) as edge:
        _, headers, answer = await _post(
            edge, {**ASKED, "podium": {"workers": {"except": ["alpha", "beta"]}}}
        )
    assert "client.except" in answer["error"]["message"]
    assert headers["x-podium-run-id"] == recorder.only.opened.run_id
    assert recorder.only.opened.refusal_reason == "NO_ELIGIBLE_WORKER"


@pytest.mark.parametrize("encoding", ["identity", "gzip", "chunked"])
async def test_oversize_bodies_are_refused_by_their_real_size(encoding: str) -> None:
    async def pieces() -> Any:
        for _ in range(40):
            yield b" " * 1_000

    async with running_edge(max_body_bytes=20_000) as edge:
        large = b" " * 900_000
        if encoding == "gzip":
            status, _, answer = await _post(edge, gzip.compress(large), **{"content-encoding": "gzip"})
        elif encoding == "identity":
            status, _, answer = await _post(edge, large)
        else:
            async with (
                aiohttp.ClientSession(headers=edge.auth) as session,
                session.post(edge.url + URL, data=pieces()) as response,
            ):
                status, answer = response.status, await response.json()
    assert status == 413
    assert answer["error"]["code"] == "body_too_large"
    assert "20000 bytes" in answer["error"]["message"]


async def test_a_compressed_body_is_read_and_a_broken_one_refused() -> None:
    async with running_edge() as edge:
        packed = gzip.compress(json.dumps(ASKED).encode())
        assert (await _post(edge, packed, **{"content-encoding": "gzip"}))[0] == 200
        status, _, answer = await _post(edge, b"no gzip", **{"content-encoding": "gzip"})
    assert (status, answer["error"]["code"]) == (400, "body_unreadable")


async def test_a_body_that_never_comes_is_not_waited_for() -> None:
    async with running_edge(body_timeout_s=0.05) as edge:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(edge.url.rsplit(":", 1)[1]))
        writer.write(
            f"POST {URL} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n{{".encode()
        )
        head = await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE_S)
        writer.close()
    assert b" 400 " in head


@pytest.mark.parametrize(
    ("header", "status", "code"),
    [
        ("", 401, "missing_api_key"),
        ("Bearer ' OR '1'='1", 401, "invalid_api_key"),
        (f"Bearer {AUDITOR_TOKEN}", 403, "role_missing"),
    ],
    ids=["no key", "sql", "auditor"],
)
async def test_strangers_stay_out_of_every_route(header: str, status: int, code: str) -> None:
    async with running_edge() as edge, aiohttp.ClientSession(headers={"Authorization": header}) as session:
        for method, path in (("POST", URL), ("GET", "/v1/models"), ("GET", "/v1/models/podium")):
            async with session.request(method, edge.url + path, data=b"{") as response:
                assert response.status == status
                assert (await response.json())["error"]["code"] == code


async def test_unknown_urls_and_methods_get_the_same_error_shape() -> None:
    async with running_edge() as edge, aiohttp.ClientSession(headers=edge.auth) as session:
        async with session.get(edge.url + "/v1/unknown") as response:
            assert (response.status, (await response.json())["error"]["code"]) == (404, "unknown_url")
        async with session.put(edge.url + URL) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (405, "method_not_allowed")
            assert response.headers["Server"] == "podium"


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.CANCELLED])
async def test_every_code_of_a_failed_run_has_its_status_and_its_receipt(code: Code) -> None:
    reply = Reply(error=PodiumError(code, "told to", retry_after_s=9.0), permitted=False)
    async with running_edge(workers=FakeWorkers(default=reply)) as edge:
        status, headers, answer = await _post(edge, {**ASKED, "model": "worker/alpha"})
    row = HTTP_TABLE[code]
    assert (status, answer["error"]["type"]) == (row.status, row.type)
    assert headers["x-podium-run-id"] == answer["podium"]["run_id"]
    assert answer["podium"]["receipt"]["leaf_indices"]
    assert ("x-should-retry" in headers) == (row.status >= 409 and not row.is_retryable)


async def test_a_defect_leaks_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(FakePlanner):
        async def plan(self, query: PlanQuery) -> PlanReply:
            raise RuntimeError("canary-7f3a /etc/secret")

    async with running_edge(planner=Broken()) as edge:
        for body in (ASKED, STREAMED):
            status, headers, answer = await _post(edge, body)
            assert (status, answer["error"]["code"]) == (500, "internal")
            assert "canary" not in json.dumps(answer) + str(headers)
    assert any(record.levelno >= logging.ERROR for record in caplog.records)


async def test_a_client_key_appears_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    recorder = FakeRecorder()
    workers = FakeWorkers()
    async with running_edge(recorder=recorder, workers=workers) as edge:
        told = [await _post(edge), await _post(edge, STREAMED), await _post(edge, b"{")]
    secret = TOKEN.split("_", 2)[2]
    everything = [str(told), str(recorder.runs), str(workers.calls), caplog.text]
    assert not [text for text in everything if secret in text]


async def test_a_slow_worker_is_covered_by_comments_from_the_first_second_on() -> None:
    gate = asyncio.Event()
    workers = FakeWorkers(default=Reply(gate=gate))
    async with (
        running_edge(workers=workers, first_byte_s=0.05, keep_alive_s=0.05) as edge,
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.post(edge.url + URL, json=STREAMED) as response,
    ):
        assert response.status == 200
        heard = b""
        async with asyncio.timeout(PATIENCE_S):
            while heard.count(b"\n\n") < 3:
                heard += await response.content.readany()
        assert set(heard.decode().split("\n\n")) == {": podium is working", ""}
        gate.set()
        rest = (await response.content.read()).decode()
    assert rest.endswith("data: [DONE]\n\n")
    assert '"content":"answer"' in rest


async def test_output_goes_out_as_it_comes() -> None:
    end = asyncio.Event()
    workers = FakeWorkers(default=Reply("first last", end_gate=end))
    async with (
        running_edge(workers=workers) as edge,
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.post(edge.url + URL, json=STREAMED) as response,
    ):
        heard = b""
        async with asyncio.timeout(PATIENCE_S):
            while b'"content":"last"' not in heard:
                heard += await response.content.readany()
        assert b'finish_reason":"stop' not in heard
        end.set()
        assert b"[DONE]" in await response.content.read()


@pytest.mark.parametrize("body", [ASKED, STREAMED], ids=["whole", "streamed"])
async def test_a_hang_up_cancels_and_seals_within_a_second(body: dict[str, Any]) -> None:
    recorder = FakeRecorder()
    workers = FakeWorkers(default=Reply("a b", end_gate=asyncio.Event()))
    async with running_edge(recorder=recorder, workers=workers) as edge:
        async with aiohttp.ClientSession(headers=edge.auth) as session:
            posting = asyncio.ensure_future(session.post(edge.url + URL, json=body))
            await until(lambda: workers.log)
            await _hang_up(posting)
        await until(lambda: recorder.only.sealed is not None, SOON_S)
        assert recorder.only.sealed is not None
        assert recorder.only.sealed.outcome is RunOutcome.CANCELLED
        assert workers.log[-1][0] == "cancelled"
        await until(lambda: edge.edge.admission.count == 0, SOON_S)
        assert edge.leases.stops == {}


async def test_a_hang_up_while_planning_leaves_no_run_behind() -> None:
    recorder = FakeRecorder()
    planner = FakePlanner(gate=asyncio.Event())
    async with running_edge(recorder=recorder, planner=planner) as edge:
        async with aiohttp.ClientSession(headers=edge.auth) as session:
            posting = asyncio.ensure_future(session.post(edge.url + URL, json=ASKED))
            await until(lambda: planner.queries)
            await _hang_up(posting)
        await until(lambda: edge.edge.admission.count == 0, SOON_S)
    assert planner.cancelled == 1
    assert recorder.runs == {}


async def test_a_client_that_stops_reading_loses_its_run() -> None:
    recorder = FakeRecorder()
    piece = "x" * 200_000
    workers = FakeWorkers(default=Reply(pieces=(piece,) * 400))
    async with running_edge(recorder=recorder, workers=workers, write_stall_s=0.2) as edge:
        sock = socket.create_connection(("127.0.0.1", int(edge.url.rsplit(":", 1)[1])))
        data = json.dumps(STREAMED).encode()
        head = f"POST {URL} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {len(data)}\r\n\r\n"
        sock.sendall(head.encode() + data)
        await until(lambda: recorder.runs and recorder.only.sealed is not None)
        sock.close()
    assert recorder.only.sealed is not None
    assert recorder.only.sealed.outcome is RunOutcome.CANCELLED


async def test_a_failed_seal_withholds_the_answer_or_the_good_ending() -> None:
    recorder = FakeRecorder()
    async with running_edge(recorder=recorder) as edge:
        recorder.seal_errors = [PodiumError(Code.AUDIT_UNAVAILABLE, "gone")]
        status, headers, answer = await _post(edge)
        assert (status, answer["error"]["code"]) == (503, "seal_failed")
        assert headers["x-should-retry"] == "false"
        recorder.seal_errors = [PodiumError(Code.AUDIT_UNAVAILABLE, "gone")]
        status, _, text = await _post(edge, {**STREAMED, "podium": {"events": True}})
    assert status == 200
    assert '"code":"seal_failed"' in text
    assert "[DONE]" not in text


async def test_a_stopped_run_tells_its_client() -> None:
    recorder = FakeRecorder()
    workers = FakeWorkers(default=Reply("a b", end_gate=asyncio.Event()))
    async with running_edge(recorder=recorder, workers=workers) as edge:
        posting = asyncio.ensure_future(_post(edge, STREAMED))
        await until(lambda: workers.log)
        await until(lambda: edge.leases.stops)
        (stop,) = edge.leases.stops.values()
        stop(PodiumError(Code.AUDIT_UNAVAILABLE, "the run's lease was lost", reason="LEASE_LOST"))
        _, _, text = await posting
    assert '"code":"lease_lost"' in text
    assert text.endswith("data: [DONE]\n\n")


async def test_a_full_gateway_asks_to_come_back() -> None:
    gate = asyncio.Event()
    workers = FakeWorkers(default=Reply(gate=gate))
    async with running_edge(workers=workers, max_concurrent_runs=1) as edge:
        first = asyncio.ensure_future(_post(edge))
        await until(lambda: workers.log)
        status, headers, answer = await _post(edge)
        assert (status, answer["error"]["code"], headers["retry-after"]) == (429, "too_many_runs", "1")
        gate.set()
        assert (await first)[0] == 200
        assert (await _post(edge))[0] == 200


async def test_draining_turns_readiness_red_and_lets_running_requests_finish() -> None:
    gate = asyncio.Event()
    workers = FakeWorkers(default=Reply(gate=gate))
    async with running_edge(workers=workers) as edge, aiohttp.ClientSession() as session:
        running = asyncio.ensure_future(_post(edge))
        await until(lambda: workers.log)
        edge.edge.admission.close()
        async with session.get(edge.url + "/readyz") as response:
            assert response.status == 503
        async with session.get(edge.url + "/healthz") as response:
            assert response.status == 200
        status, headers, _ = await _post(edge)
        assert (status, headers["connection"]) == (503, "close")
        assert "x-should-retry" not in headers
        gate.set()
        assert (await running)[0] == 200


async def test_readiness_is_degraded_without_the_conductor_and_red_without_audit() -> None:
    async with running_edge() as edge, aiohttp.ClientSession() as session:
        found: list[tuple[int, str]] = []
        for is_ready in (True, False):
            edge.readiness.found = Readiness(is_ready=is_ready, checks={"audit": "up", "conductor": "down"})
            async with session.get(edge.url + "/readyz") as response:
                found.append((response.status, (await response.json())["status"]))
    assert found == [(200, "degraded"), (503, "unready")]


async def test_without_a_pool_requests_are_asked_to_come_back() -> None:
    async with running_edge() as edge:
        edge.pool.pool = PodiumError(Code.UNAVAILABLE, "not yet", reason="POOL_NOT_LOADED", retry_after_s=1)
        status, headers, _ = await _post(edge)
    assert (status, headers["retry-after"]) == (503, "1")


async def test_the_tenants_limits_hold_and_are_shown() -> None:
    tenant = Tenant(
        "acme",
        Caps(max_cost_usd_micros=500_000, max_calls=4),
        9_000_000,
        reach=Reach("tenant", WorkerFilter(excluded=frozenset({"beta"}))),
    )
    recorder = FakeRecorder()
    async with running_edge(tenant=tenant, recorder=recorder) as edge:
        _, _, answer = await _post(edge, {**ASKED, "podium": {"max_usd": 3, "max_calls": 2}})
    assert answer["podium"]["caps"]["max_usd_micros"] == 500_000
    assert answer["podium"]["caps"]["max_calls"] == 2
    opened = recorder.only.opened
    assert opened.tenant_budget_usd_micros == 9_000_000
    assert [(v.worker_id, v.rule_id) for v in opened.verdicts if not v.allowed] == [
        ("beta", "tenant.workers.except")
    ]


async def test_a_dry_run_plans_records_and_dispatches_nothing() -> None:
    recorder, workers = FakeRecorder(), FakeWorkers()
    planner = FakePlanner(plan_of(("alpha", "compute", ()), ("beta", "say", (0,))))
    async with running_edge(recorder=recorder, workers=workers, planner=planner) as edge:
        status, headers, answer = await _post(edge, {**ASKED, "podium": {"dry_run": True}})
        assert edge.edge.admission.count == 0
    podium = answer["podium"]
    assert (status, podium["dry_run"]) == (200, True)
    assert [step["worker"] for step in podium["plan"]["steps"]] == ["alpha", "beta"]
    assert 0 < podium["cost_range_usd_micros"]["least"] < podium["cost_range_usd_micros"]["most"]
    assert recorder.only.opened.refusal_reason == "DRY_RUN"
    assert headers["x-podium-run-id"] == podium["receipt"]["run_id"]
    assert workers.calls == []


async def test_short_streams_do_not_wait_for_nagle() -> None:
    async with (
        running_edge(workers=FakeWorkers(default=Reply(end_gate=asyncio.Event()))) as edge,
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.post(edge.url + URL, json=STREAMED) as response,
    ):
        await response.content.readany()
        assert edge.server.server is not None
        (connection,) = edge.server.server.connections
        assert connection.transport is not None
        sock = connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_an_empty_pool_is_a_refusal_too() -> None:
    async with running_edge(workers_of=pool()) as edge:
        status, _, answer = await _post(edge)
    assert (status, answer["error"]["code"]) == (403, "no_eligible_worker")
