"""Limits as a client meets them: headers, refusals, and two gateways that share one limit."""

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI, RateLimitError

from podium_core.config.tenants import Tenant
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.limits import Limits
from podium_core.domain.usage import Usage
from podium_gateway.budgets import Budget
from tests.fakes.gateway import NO_LIMITS, TOKEN, EdgeServer, running_edge, tenants
from tests.fakes.limits import slices_of
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.waiting import until
from tests.fakes.worker import FakeWorkers, Reply

ASKED: dict[str, Any] = {"model": "worker/alpha", "messages": [{"role": "user", "content": "6 times 7?"}]}


async def _post(edge: EdgeServer, body: Any = ASKED) -> tuple[int, Any, str]:
    async with (
        aiohttp.ClientSession(headers=edge.auth) as session,
        session.post(f"{edge.url}/v1/chat/completions", json=body) as response,
    ):
        return response.status, response.headers, await response.text()


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_says_what_is_left(*, stream: bool) -> None:
    limits = Limits(requests_per_minute=10, tokens_per_minute=5_000)
    workers = FakeWorkers(default=Reply(usage=Usage(100, 50)))
    async with running_edge(key_limits=limits, workers=workers) as edge:
        await _post(edge, {**ASKED, "stream": stream})
        status, headers, _ = await _post(edge, {**ASKED, "stream": stream})
    assert status == 200
    assert headers["x-ratelimit-limit-requests"] == "10"
    assert headers["x-ratelimit-remaining-requests"] == "8"
    assert headers["x-ratelimit-limit-tokens"] == "5000"
    assert 4_600 <= int(headers["x-ratelimit-remaining-tokens"]) <= 4_900
    for kind in ("requests", "tokens"):
        assert headers[f"x-ratelimit-reset-{kind}"].endswith("s")


async def test_a_refusal_is_openais_and_says_when_to_come_back() -> None:
    async with running_edge(key_limits=Limits(requests_per_minute=1)) as edge:
        await _post(edge)
        status, headers, text = await _post(edge)
    assert status == 429
    assert '"code":"rate_limit_exceeded"' in text
    assert '"type":"rate_limit_error"' in text
    assert "the key key-1 may have 1 requests per minute" in text
    assert 1 <= int(headers["retry-after"]) <= 66
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert "x-should-retry" not in headers


async def test_a_budget_that_is_nearly_used_is_told_with_every_answer() -> None:
    async with running_edge() as edge:
        month = datetime.now(UTC).strftime("%Y-%m")
        _, headers, text = await _post(edge)
        assert "x-podium-budget-warning" not in headers
        assert "budget" not in json.loads(text)["podium"]
        edge.edge.handler.runs.budgets.heard("acme", "", Budget(month, 1_000, 850, 0, 80))
        _, headers, text = await _post(edge)
        assert headers["x-podium-budget-warning"] == "80%"
        assert json.loads(text)["podium"]["budget"]["left_usd_micros"] == 150


async def test_openais_own_client_understands_a_refusal() -> None:
    async with (
        running_edge(key_limits=Limits(requests_per_minute=1)) as edge,
        AsyncOpenAI(base_url=f"{edge.url}/v1", api_key=TOKEN, max_retries=0) as client,
    ):
        raw = await client.chat.completions.with_raw_response.create(**ASKED)
        assert raw.headers["x-ratelimit-remaining-requests"] == "0"
        with pytest.raises(RateLimitError) as caught:
            await client.chat.completions.create(**ASKED)
    assert caught.value.code == "rate_limit_exceeded"
    assert float(caught.value.response.headers["retry-after-ms"]) <= 66_000


async def test_a_key_without_limits_gets_no_such_headers() -> None:
    async with running_edge() as edge:
        status, headers, _ = await _post(edge)
    assert status == 200
    assert not any(name.lower().startswith("x-ratelimit") for name in headers)


async def test_a_request_that_cannot_be_read_uses_nothing() -> None:
    async with running_edge(key_limits=Limits(requests_per_minute=1)) as edge:
        for _ in range(3):
            assert (await _post(edge, {**ASKED, "best_of": 3}))[0] == 400
        assert (await _post(edge))[0] == 200


@pytest.mark.parametrize(
    "limits", [Limits(concurrent_runs=10), Limits(requests_per_minute=10)], ids=["runs", "requests"]
)
async def test_two_gateways_and_fifty_calls_at_once_keep_a_limit_of_ten(limits: Limits) -> None:
    """No. 38. The overshoot is none: ten are performed, forty hear 429."""
    gate = asyncio.Event()
    workers = FakeWorkers(default=Reply(gate=gate))
    tenant = Tenant("acme", limits=limits)
    slices = slices_of(lambda: tenants(tenant), SystemClock())
    async with AsyncExitStack() as stack:
        edges = [
            await stack.enter_async_context(
                running_edge(workers=workers, tenant=tenant, slices=slices, holder_id=f"gateway_{n}")
            )
            for n in range(2)
        ]
        calls = [asyncio.ensure_future(_post(edges[n % 2])) for n in range(50)]
        await until(lambda: sum(call.done() for call in calls) >= 40)
        gate.set()
        statuses = sorted([status for status, _, _ in await asyncio.gather(*calls)])
    assert statuses == [200] * 10 + [429] * 40
    assert len(workers.calls) == 10


async def test_a_place_is_free_again_when_its_run_has_ended_or_its_client_is_gone() -> None:
    gate = asyncio.Event()
    async with running_edge(
        workers=FakeWorkers(default=Reply(gate=gate)), key_limits=Limits(concurrent_runs=1)
    ) as edge:
        first = asyncio.ensure_future(_post(edge))
        await until(lambda: edge.leases.stops)
        assert (await _post(edge))[0] == 429
        first.cancel()
        await until(lambda: not edge.leases.stops)
        gate.set()
        await asyncio.sleep(0.3)  # for so long a refusal is remembered
        assert (await _post(edge))[0] == 200


async def test_without_audit_a_limited_key_hears_503_and_others_are_served() -> None:
    away = PodiumError(Code.AUDIT_UNAVAILABLE, "away")
    async with running_edge(key_limits=Limits(requests_per_minute=5)) as edge:
        edge.limits.error = away
        status, headers, text = await _post(edge)
        assert status == 503
        assert '"code":"limits_unavailable"' in text
        assert headers["retry-after"] == "1"
    async with running_edge(key_limits=NO_LIMITS) as edge:
        edge.limits.error = away
        assert (await _post(edge))[0] == 200


@pytest.mark.parametrize("model", ["podium", "worker/alpha"])
@pytest.mark.parametrize("stream", [False, True])
async def test_when_every_worker_is_rate_limited_upstream_the_client_hears_429_and_when(
    model: str, *, stream: bool
) -> None:
    """No. 31. The longest wait that a provider asked for is passed on, in whole seconds."""
    limited = PodiumError(
        Code.RATE_LIMITED, "the provider is at its limit", reason="PROVIDER_RATE_LIMITED", retry_after_s=61.0
    )
    workers = FakeWorkers(default=Reply(error=limited, permitted=False))
    async with running_edge(workers=workers) as edge:
        status, headers, text = await _post(edge, {**ASKED, "model": model, "stream": stream})
    assert status == 429, text
    assert '"type":"rate_limit_error"' in text
    assert headers["retry-after"] == "61"
    assert "x-should-retry" not in headers


async def test_a_keys_budget_goes_into_the_log_and_keeps_out_workers_without_a_price() -> None:
    recorder = FakeRecorder()
    workers_of = pool(worker("alpha"), worker("beta", price=None))
    async with running_edge(key_budget_usd_micros=700, recorder=recorder, workers_of=workers_of) as edge:
        await _post(edge, {**ASKED, "model": "podium"})
    opened = recorder.only.opened
    assert (opened.tenant_budget_usd_micros, opened.key_budget_usd_micros) == (None, 700)
    assert [(v.worker_id, v.rule_id) for v in opened.verdicts if not v.allowed] == [("beta", "price.unknown")]
