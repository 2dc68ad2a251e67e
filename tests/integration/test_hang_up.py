"""Named after BerriAI/litellm#37140, #13774 and #14457: a client that hangs up stops what it pays for.

Whatever the tier, streamed or not, before or after the first token: the provider sees its connection close
within a second, the attempt's end says what was used, and the run is sealed as cancelled.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from podium_core.domain.plan import Plan, PlanSource, Step
from tests.fakes.leaves import end_of, leaves_in, seals_in
from tests.fakes.planner import plan_of
from tests.fakes.stack import Stack, asked, running_stack
from tests.fakes.upstream import SeenRequest, answer
from tests.fakes.waiting import PATIENCE_S, SOON_S, STALL_S, until

TWO = plan_of(("alpha", "compute", ()), ("beta", "say it", (0,)))
FAST = Plan((Step("beta", ""),), PlanSource.FAST)
LONG = answer(*["word "] * 150)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stack(tls_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    home = tmp_path_factory.mktemp("stack")
    async with running_stack(tls_dir, home, workers={"alpha": {}, "beta": {}}) as made:
        yield made


async def at_beta(stack: Stack) -> SeenRequest:
    """Wait until the second worker's provider has the request."""

    def asked_of_beta() -> list[SeenRequest]:
        return [seen for seen in stack.upstream.requests if seen.fields["model"] == "beta-model"]

    await until(asked_of_beta)
    return asked_of_beta()[0]


async def hang_up(stack: Stack, body: dict[str, Any], after_bytes: bytes) -> tuple[SeenRequest, float]:
    """Ask, leave once `after_bytes` were read or the provider has the request; return that, and when."""
    data = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", stack.gateway.port)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n"
    writer.write(f"{head}Authorization: {stack.session.headers['Authorization']}\r\n\r\n".encode() + data)
    seen = await at_beta(stack)
    async with asyncio.timeout(PATIENCE_S):
        await (reader.readuntil(after_bytes) if after_bytes else asyncio.sleep(0.1))
    writer.transport.abort()
    return seen, asyncio.get_running_loop().time()


@pytest.mark.parametrize("model", ["podium", "podium-fast", "podium-max", "worker/beta"])
@pytest.mark.parametrize("when", ["whole", "before the first token", "within the answer"])
@pytest.mark.asyncio(loop_scope="module")
async def test_hanging_up(model: str, when: str, stack: Stack) -> None:
    if model == "podium-max" and when == "within the answer":
        pytest.skip("while a later round may replace the answer nothing is sent")
    within, home = when == "within the answer", stack.audit.home
    stack.conductor.plan = FAST if model == "podium-fast" else TWO
    stack.upstream.requests.clear()
    late = LONG.but(gap_s=0.2) if within else LONG.but(delay_s=STALL_S)
    stack.upstream.by_model = {"alpha-model": answer("42"), "beta-model": late}
    before = len(leaves_in(home, "sealed"))
    body = asked(model=model, stream=when != "whole", max_tokens=200)
    seen, gone_s = await hang_up(stack, body, b"word" if within else b"")
    await until(lambda: seen.ended_s is not None)
    assert seen.was_hung_up
    assert seen.ended_s is not None
    assert seen.ended_s - gone_s < SOON_S, "it had 30 s of answer left, or kept still"
    assert (await seals_in(home, before + 1))[-1]["outcome"] == "cancelled"
    end = await end_of(home, seen.attempt_id)
    begun = {leaf["facts"]["attempt_id"]: leaf["facts"] for leaf in leaves_in(home, "attempt_begun")}
    most = begun[seen.attempt_id]["max_cost_usd_micros"]
    assert end["outcome"] == "cancelled"
    if within:
        assert 0 < end["usage"]["output_tokens"] < 200
        assert 0 < end["cost_usd_micros"] < most
    else:
        assert end["cost_usd_micros"] == most, "nobody knows what it used: the reserved maximum is billed"
