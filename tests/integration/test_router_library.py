"""The library itself: nothing of it reaches the network past the gate, whatever prefix it is asked for."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import get_args

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


async def test_a_pool_without_such_workers_never_imports_it() -> None:
    program = """
import asyncio, sys
import podium_router.__main__
from podium_core.domain.clock import SystemClock
from podium_router.providers.choice import Providers
from podium_router.providers.exchange import Exchange, ProviderLimits
async def main():
    exchange = Exchange(ProviderLimits(), SystemClock())
    await Providers(exchange).load(["openai-compatible", "openai", "azure"])
    await exchange.close()
    sys.exit("litellm" in sys.modules)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await process.wait() == 0
