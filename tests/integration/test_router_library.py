"""The library itself: nothing of it reaches the network past the gate, whatever prefix it is asked for."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest
from yarl import URL

from podium_core.config.provider import LitellmPrefix
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_router.body import BodyShape, build_body
from podium_router.calls import ApiKey, Credentials, Piece
from podium_router.ports import ProviderRequest
from podium_router.providers.choice import Providers
from podium_router.providers.exchange import Exchange, ProviderLimits
from tests.fakes.upstream import Upstream

_RSS_BAR_MIB = 350


@pytest.fixture
async def providers() -> AsyncIterator[Providers]:
    exchange = Exchange(ProviderLimits(), SystemClock())
    yield Providers(exchange)
    await exchange.close()


def _request(model: str, url: str, *, stream: bool = False, parameters: bytes = b"") -> ProviderRequest:
    messages = (Piece("", json.dumps([{"role": "user", "content": "hi"}]).encode()),)
    body = build_body(
        BodyShape.of(model, max_completion_tokens=False),
        messages,
        parameters,
        max_output_tokens=9,
        stream=stream,
        max_bytes=1 << 20,
    )
    return ProviderRequest(
        "litellm", model, "", URL(url), Credentials(key=ApiKey("sk-x")), body, stream, "att_1"
    )


@pytest.mark.parametrize("prefix", get_args(LitellmPrefix))
@pytest.mark.parametrize("stream", [False, True])
async def test_every_prefix_stops_at_the_gate(providers: Providers, prefix: str, stream: bool) -> None:
    async with Upstream() as upstream:
        call = await providers.prepare(_request(f"{prefix}/a-model", upstream.base_url, stream=stream))
        assert call.host == "127.0.0.1"
        assert b"a-model" in call.body.data
        call.discard()
        await asyncio.sleep(0.02)
        assert upstream.requests == []


async def test_orders_to_the_library_are_no_parameters(providers: Providers) -> None:
    for name in (
        "api_base",
        "base_url",
        "api_key",
        "mock_response",
        "fallbacks",
        "extra_body",
        "caching",
        "metadata",
    ):
        parameters = json.dumps({name: "x"}).encode()
        with pytest.raises(PodiumError) as refused:
            await providers.prepare(_request("mistral/m", "http://127.0.0.1:9", parameters=parameters))
        assert (refused.value.reason, refused.value.param) == ("PARAMETER_UNSUPPORTED", name)


@pytest.mark.slow
def test_a_router_with_the_library_stays_small() -> None:
    """Peak memory after loading, in a process of its own; a router without such workers never imports it."""
    program = """
import asyncio, resource, sys
import podium_router.__main__
from podium_core.domain.clock import SystemClock
from podium_router.providers.choice import Providers
from podium_router.providers.exchange import Exchange, ProviderLimits
async def main():
    exchange = Exchange(ProviderLimits(), SystemClock())
    providers = Providers(exchange)
    await providers.load(["openai-compatible", "azure"])
    assert "litellm" not in sys.modules
    await providers.load(["anthropic", "gemini", "bedrock", "litellm"])
    await exchange.close()
asyncio.run(main())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=_environment()
    )
    peak_mib = int(done.stdout)
    assert peak_mib <= _RSS_BAR_MIB


def _environment() -> dict[str, Any]:
    return {**os.environ, "PYTHONWARNINGS": "ignore"}
