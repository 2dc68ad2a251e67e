"""The gateway over real gRPC with mTLS: what it records, what it sends, and what it does when others fail."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from podium.audit.v1 import audit_service_pb2
from podium.plan.v1 import plan_pb2
from podium_core.config.tenants import new_key
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import RandomIds
from podium_core.runtime.telemetry import configure_telemetry
from podium_gateway.service import Gateway, running_gateway
from podium_gateway.settings import GatewaySettings
from tests.fakes.services import Services, running_services, unavailable
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S, SOON_S, until

ASKED: dict[str, Any] = {
    "model": "podium",
    "messages": [
        {"role": "system", "content": 'be "brief"'},
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "user", "content": "What is 6 times 7? \u00e9\u2028", "name": "ann"},
    ],
}


@dataclass(slots=True)
class House:
    """A gateway, the services behind it, and a client in front."""

    services: Services
    gateway: Gateway
    session: aiohttp.ClientSession

    async def ask(self, **changes: Any) -> tuple[int, Any]:
        async with self.session.post("/v1/chat/completions", json={**ASKED, **changes}) as response:
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else text


def _tenants_file(directory: Path) -> tuple[str, Path]:
    """Return a client's key and the file that knows it."""
    token, digest = new_key("k1")
    path = directory / "tenants.yaml"
    keys = f"[{{id: k1, sha256: {digest}, roles: [client]}}]"
    path.write_text(f"tenants:\n  - id: acme\n    keys: {keys}\n")
    return token, path


def _settings(services: Services, tenants_file: Path, **changes: Any) -> dict[str, Any]:
    tls = tls_of(services.tls_dir, "gateway")
    return {
        "tls_cert_file": tls.cert_file,
        "tls_key_file": tls.key_file,
        "tls_ca_file": tls.ca_file,
        "tenants_file": tenants_file,
        "listen": "127.0.0.1:0",
        "conductor_address": f"127.0.0.1:{services.ports['conductor']}",
        "router_address": f"127.0.0.1:{services.ports['router']}",
        "audit_address": f"127.0.0.1:{services.ports['audit']}",
        "audit_wait_s": 30.0,
        "seal_wait_s": 30.0,
        "pool_refresh_s": 60.0,
        **changes,
    }


@asynccontextmanager
async def _house(
    tls_dir: Path, tmp_path: Path, scripted: dict[str, Any] | None = None, **changes: Any
) -> AsyncGenerator[House, None]:
    token, tenants_file = _tenants_file(tmp_path)
    async with running_services(tls_dir, **(scripted or {})) as services:
        settings = GatewaySettings.model_validate(_settings(services, tenants_file, **changes))
        clock = SystemClock()
        telemetry = configure_telemetry("gateway", settings)
        async with running_gateway(settings, telemetry, clock, RandomIds(clock)) as gateway:
            headers = {"Authorization": f"Bearer {token}"}
            url = f"http://127.0.0.1:{gateway.port}"
            async with aiohttp.ClientSession(url, headers=headers) as session:
                async with asyncio.timeout(PATIENCE_S):
                    while (await session.get("/v1/models")).status != 200:
                        await asyncio.sleep(0.01)
                yield House(services, gateway, session)


async def test_a_run_is_recorded_before_it_is_performed_and_sealed_before_it_is_answered(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with _house(tls_dir, tmp_path) as house:
        status, answer = await house.ask(temperature=0.5)
        audit, router = house.services.audit, house.services.router
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == "forty-two"
    assert answer["podium"]["receipt"] == {
        "run_id": answer["podium"]["run_id"],
        "leaf_indices": [0, 1, 2],
        "checkpoint": "note",
    }
    assert answer["usage"]["total_tokens"] == 10
    assert answer["usage"]["prompt_tokens_details"]["orchestration_input_tokens"] == 57
    (opened,) = audit.opened.values()
    assert (opened.tenant_id, opened.principal_id, opened.requested_model) == ("acme", "k1", "podium")
    assert [step.worker_id for step in opened.plan.plan.steps] == ["alpha", "beta"]
    assert [step.subtask for step in opened.plan.plan.steps] == ["", ""]
    held = {part: data.decode() for (_, part), data in audit.contents.items()}
    assert held["plan/0/subtask/0"] == "compute"
    assert held["plan/0/subtask/1"] == "say it"
    assert held["plan/0/text"] == "because"
    assert held["answer"] == "forty-two"
    assert audit.only_seal.outcome == plan_pb2.RUN_OUTCOME_ANSWERED
    for request in router.requests:
        parts = [segment.part_id for segment in request.messages if segment.part_id]
        assert parts == ["history", "question"]
        for segment in request.messages:
            if segment.part_id:
                assert segment.data.decode() == held[segment.part_id]
        sent = json.loads(b"".join(segment.data for segment in request.messages))
        assert sent[:2] == ASKED["messages"][:2]
        assert ASKED["messages"][2]["content"] in sent[2]["content"]
        assert sent[2]["name"] == "ann"
    assert [json.loads(r.parameters_json) for r in router.requests] == [{"temperature": 0.5}] * 2
    assert list(router.requests[1].seen_steps) == [0]


async def test_a_budget_that_a_seal_brings_is_told_with_the_answer(tls_dir: Path, tmp_path: Path) -> None:
    async with _house(tls_dir, tmp_path) as house:
        house.services.audit.budget = audit_service_pb2.BudgetState(
            tenant_id="acme",
            month=datetime.now(UTC).strftime("%Y-%m"),
            budget_usd_micros=100,
            settled_usd_micros=85,
            reserved_usd_micros=10,
            warn_percent=80,
        )
        _, answer = await house.ask(model="worker/beta")
    assert answer["podium"]["budget"]["warning_percent"] == 80
    assert answer["podium"]["budget"]["left_usd_micros"] == 5


async def test_a_named_worker_gets_the_messages_unchanged(tls_dir: Path, tmp_path: Path) -> None:
    async with _house(tls_dir, tmp_path) as house:
        status, text = await house.ask(model="worker/beta", stream=True)
        (request,) = house.services.router.requests
        assert house.services.conductor.requests == []
    assert status == 200
    assert text.endswith("data: [DONE]\n\n")
    assert json.loads(b"".join(segment.data for segment in request.messages)) == ASKED["messages"]
    assert request.stream


async def test_long_conversations_are_streamed_in_once_before_any_attempt(
    tls_dir: Path, tmp_path: Path
) -> None:
    long = [{"role": "assistant", "content": "x" * 300_000}, {"role": "user", "content": "y" * 600_000}]
    async with _house(tls_dir, tmp_path) as house:
        status, _ = await house.ask(messages=long)
        audit, router = house.services.audit, house.services.router
    assert status == 200
    (run_id,) = audit.opened
    assert not [c.part_id for c in audit.opened[run_id].contents if c.part_id in ("history", "question")]
    assert [method for method, _ in audit.calls] == ["OpenRun", "PutContent", "PutContent", "Seal"]
    assert json.loads(audit.contents[run_id, "history"]) == long[0]
    assert audit.contents[run_id, "question"] == b"y" * 600_000
    assert [s.part_id for s in router.requests[0].messages if s.part_id] == ["history", "question"]


async def test_content_that_cannot_be_stored_closes_the_run(tls_dir: Path, tmp_path: Path) -> None:
    long = [{"role": "user", "content": "y" * 600_000}]
    async with _house(tls_dir, tmp_path) as house:
        too_large = PodiumError(Code.TOO_LARGE, "content is too large", reason="CONTENT_TOO_LARGE")
        house.services.audit.errors["PutContent"] = [too_large]
        status, answer = await house.ask(messages=long)
        assert (status, answer["error"]["code"]) == (413, "content_too_large")
        assert house.services.audit.only_seal.outcome == plan_pb2.RUN_OUTCOME_FAILED
        assert house.services.router.requests == []


async def test_calls_to_audit_are_repeated_under_their_event_id(tls_dir: Path, tmp_path: Path) -> None:
    async with _house(tls_dir, tmp_path) as house:
        audit = house.services.audit
        audit.errors = {"OpenRun": [unavailable()] * 2, "Seal": [unavailable()] * 3}
        status, _ = await house.ask()
    assert status == 200
    assert len([c for c in audit.calls if c[0] == "OpenRun"]) == 3
    assert len([c for c in audit.calls if c[0] == "Seal"]) == 4
    assert len(set(audit.calls)) == 2


async def test_without_audit_nothing_is_dispatched(tls_dir: Path, tmp_path: Path) -> None:
    async with _house(tls_dir, tmp_path, audit_wait_s=0.3) as house:
        await until(house.gateway.ops.is_ready)
        await house.services.stop("audit")
        async with house.session.post("/v1/chat/completions", json=ASKED) as response:
            answer = await response.json()
            assert (response.status, answer["error"]["type"]) == (503, "server_error")
            assert response.headers["Retry-After"] == "2"
        assert house.services.router.requests == []
        async with asyncio.timeout(PATIENCE_S):
            while (response := await house.session.get("/readyz")).status != 503:
                await asyncio.sleep(0.05)  # what was found is kept for a second
            assert (await response.json())["checks"]["audit"] == "down"
        assert house.gateway.ops.is_ready(), "no other gateway is better off"


async def test_without_a_seal_the_answer_is_withheld(tls_dir: Path, tmp_path: Path) -> None:
    async with _house(tls_dir, tmp_path, seal_wait_s=0.2) as house:
        house.services.audit.errors["Seal"] = [unavailable()] * 100
        status, answer = await house.ask()
    assert (status, answer["error"]["code"]) == (503, "seal_failed")


async def test_without_a_conductor_the_fallback_plan_answers(tls_dir: Path, tmp_path: Path) -> None:
    async with _house(tls_dir, tmp_path) as house:
        await house.services.stop("conductor")
        status, answer = await house.ask()
        assert (status, answer["podium"]["plan"]["source"]) == (200, "fallback")
        async with house.session.get("/readyz") as response:
            assert (response.status, (await response.json())["status"]) == (200, "degraded")


async def test_what_the_conductor_objects_to_is_not_the_clients_fault(tls_dir: Path, tmp_path: Path) -> None:
    async with _house(tls_dir, tmp_path) as house:
        house.services.conductor.error = PodiumError(Code.INVALID_REQUEST, "cards", reason="ODD")
        status, answer = await house.ask()
    assert (status, answer["podium"]["plan"]["source"]) == (200, "fallback")


async def test_a_stale_pool_that_cannot_be_renewed_tells_the_client_to_retry(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with _house(tls_dir, tmp_path) as house:
        router = house.services.router
        router.error = PodiumError(Code.CONFLICT, "the pool has changed", reason="STALE_POOL")
        async with house.session.post("/v1/chat/completions", json=ASKED) as response:
            assert response.status == 503
            assert "x-should-retry" not in response.headers
        await until(lambda: router.list_calls >= 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_hang_up_reaches_the_router_and_the_log_within_a_second(
    tls_dir: Path, tmp_path: Path, stream: bool
) -> None:
    async with _house(tls_dir, tmp_path) as house:
        router, audit = house.services.router, house.services.audit
        router.gate = asyncio.Event()
        asking = asyncio.ensure_future(house.ask(model="worker/alpha", stream=stream))
        await until(lambda: router.requests)
        asking.cancel()
        await until(lambda: router.cancelled == 1 and audit.sealed, SOON_S)
        assert audit.only_seal.outcome == plan_pb2.RUN_OUTCOME_CANCELLED


async def test_one_call_renews_all_runs_and_lost_ones_are_stopped(tls_dir: Path, tmp_path: Path) -> None:
    async with _house(tls_dir, tmp_path, lease_s=3.0, first_byte_s=0.05) as house:
        router, audit = house.services.router, house.services.audit
        router.gate = asyncio.Event()
        asking = [asyncio.ensure_future(house.ask(model="worker/alpha", stream=True)) for _ in range(3)]
        await until(lambda: len(router.requests) == 3)
        lost, stopped, kept = sorted(audit.opened)
        audit.lost, audit.stopped = {lost}, {stopped}
        await until(lambda: len(audit.sealed) == 2)
        assert [lost, stopped, kept] in audit.renewals
        router.gate.set()
        texts = [text for _, text in await asyncio.gather(*asking)]
        assert {request.lease_ms for request in audit.opened.values()} == {3_000}
    assert sum('"code":"lease_lost"' in text for text in texts) == 1
    assert sum('"code":"run_stopped"' in text for text in texts) == 1
    assert sum('"finish_reason":"stop"' in text for text in texts) == 1


async def test_a_gateway_that_the_services_do_not_know_is_at_fault_itself(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with _house(tls_dir, tmp_path) as house:
        refused = PodiumError(Code.POLICY_DENIED, "gateway may not call", reason="CALLER_NOT_ALLOWED")
        house.services.audit.errors["OpenRun"] = [refused]
        status, answer = await house.ask()
    assert (status, answer["error"]["code"]) == (500, "internal")


async def test_draining_lets_runs_finish_and_then_stops_the_rest(tls_dir: Path, tmp_path: Path) -> None:
    async with _house(tls_dir, tmp_path, drain_timeout_s=0.2) as house:
        house.services.router.gate = asyncio.Event()
        asking = asyncio.ensure_future(house.ask(model="worker/alpha"))
        await until(lambda: house.services.router.requests)
        await house.gateway.drain()
        assert house.services.audit.only_seal.outcome == plan_pb2.RUN_OUTCOME_CANCELLED
        status, answer = await asking
    assert (status, answer["error"]["code"]) == (503, "shutting_down")


async def until_nobody_listens(port: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(ConnectionRefusedError):
            while True:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()


async def over(kept: tuple[asyncio.StreamReader, asyncio.StreamWriter], path: str) -> tuple[bytes, bytes]:
    """Ask over a connection that is open already; return the status, and what becomes of the connection."""
    reader, writer = kept
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
    await reader.readexactly(length)
    return head.split(b" ")[1], b"close" if b"connection: close" in head else b"keep-alive"


async def test_a_draining_gateway_answers_on_open_connections_and_then_parts(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with _house(tls_dir, tmp_path) as house, asyncio.timeout(PATIENCE_S):
        house.services.router.gate = asyncio.Event()
        idle, late, streaming = [
            await asyncio.open_connection("127.0.0.1", house.gateway.port) for _ in range(3)
        ]
        assert [await over(kept, "/healthz") for kept in (idle, late)] == [(b"200", b"keep-alive")] * 2
        body = json.dumps({**ASKED, "model": "worker/alpha", "stream": True}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        head += f"Authorization: {house.session.headers['Authorization']}\r\n\r\n"
        streaming[1].write(head.encode() + body)
        began = await streaming[0].readuntil(b"\r\n\r\n")
        draining = asyncio.create_task(house.gateway.drain())
        await until(lambda: not house.gateway.server.sites)  # nobody listens any more
        assert await over(late, "/healthz") == (b"200", b"close")
        house.services.router.gate.set()
        assert b"data: [DONE]" in await streaming[0].readuntil(b"\r\n0\r\n\r\n")
        assert b"connection: close" not in began.lower()
        assert await over(streaming, "/healthz") == (b"200", b"close"), "as it was promised when it began"
        assert await idle[0].read() == b""
        await draining
        for _, writer in (idle, late, streaming):
            writer.close()
            await writer.wait_closed()


async def test_the_process_drains_on_sigterm(tls_dir: Path, tmp_path: Path) -> None:
    token, tenants_file = _tenants_file(tmp_path)
    async with running_services(tls_dir) as services:
        services.router.gate = asyncio.Event()
        given = _settings(services, tenants_file, first_byte_s=0.05)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "podium_gateway",
            env={
                **os.environ,
                **{f"PODIUM_GATEWAY_{name.upper()}": str(value) for name, value in given.items()},
            },
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            listening = json.loads(await process.stderr.readline())
            url = f"http://127.0.0.1:{listening['port']}"
            async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {token}"}) as session:
                while (await session.get("/v1/models")).status != 200:
                    await asyncio.sleep(0.02)  # the pool is on its way
                kept = await asyncio.open_connection("127.0.0.1", listening["port"])
                assert await over(kept, "/readyz") == (b"200", b"keep-alive")
                body = {**ASKED, "model": "worker/alpha", "stream": True}
                async with session.post("/v1/chat/completions", json=body) as response:
                    assert response.status == 200
                    process.terminate()
                    await process.stderr.readline()
                    assert await over(kept, "/readyz") == (b"503", b"close")
                    await until_nobody_listens(listening["port"])
                    kept[1].close()
                    services.router.gate.set()
                    assert (await response.text()).endswith("data: [DONE]\n\n")
            assert await process.wait() == 0
            rest = await process.stderr.read()
        assert services.audit.only_seal.outcome == plan_pb2.RUN_OUTCOME_ANSWERED
        assert token.split("_", 2)[2].encode() not in rest
        assert b"Traceback" not in rest
