"""What one provider call costs the router: natively, and in LiteLLM's translation.

    python -m benchmarks.provider_calls [calls]

The upstream runs in a process of its own; what is shown is this process's CPU time, without gRPC and permit.
"""

import asyncio
import json
import multiprocessing
import resource
import sys
import time
from multiprocessing.connection import Connection

from yarl import URL

from podium_core.domain.clock import SystemClock
from podium_router.answer import Answer
from podium_router.body import BodyShape, build_body
from podium_router.calls import ApiKey, Credentials, Delta, Piece
from podium_router.ports import ProviderRequest, Sending
from podium_router.providers.choice import Providers
from podium_router.providers.exchange import Exchange, ProviderLimits
from tests.fakes.upstream import Upstream, answer
from tests.fakes.wire_formats import AnthropicUpstream, anthropic_answer

_DELTAS = 50
_CONCURRENCY = 16
_MODELS = {"openai-compatible": "m", "anthropic": "claude-sonnet-4-5"}


class _Drop:
    def put(self, delta: Delta) -> None:
        """Take output and forget it."""

    @property
    def has_room(self) -> bool:
        """Say yes."""
        return True

    async def room(self) -> None:
        """Return at once."""


def _serve(ready: Connection) -> None:
    async def serve() -> None:
        text = "word " * _DELTAS
        native, anthropic = Upstream(answer(*text.split())), AnthropicUpstream()
        anthropic.default = anthropic_answer({"type": "text", "text": text}, pieces=_DELTAS)
        async with native, anthropic:
            base = native.base_url
            ready.send({"openai-compatible": f"{base}/chat/completions", "anthropic": anthropic.base_url})
            await asyncio.Event().wait()

    asyncio.run(serve())


async def _one(providers: Providers, kind: str, url: str, *, stream: bool) -> None:
    messages = (Piece("", json.dumps([{"role": "user", "content": "How are you?" * 20}]).encode()),)
    model = _MODELS[kind]
    body = build_body(
        BodyShape.of(model, max_completion_tokens=False),
        messages,
        b"",
        max_output_tokens=500,
        stream=stream,
        max_bytes=1 << 20,
    )
    request = ProviderRequest(
        kind, model, "", URL(url), Credentials(key=ApiKey("sk-bench")), body, stream, "att_bench"
    )
    call = await providers.prepare(request)
    await call.send(Sending("", asyncio.get_running_loop().time() + 60), Answer(), _Drop())


async def _limited(
    limit: asyncio.Semaphore, providers: Providers, kind: str, url: str, *, stream: bool
) -> None:
    async with limit:
        await _one(providers, kind, url, stream=stream)


async def _measure(urls: dict[str, str], calls: int) -> None:
    exchange = Exchange(ProviderLimits(), SystemClock())
    providers = Providers(exchange)
    for kind, url in urls.items():
        started = time.process_time()
        await providers.load([kind])
        loaded_s = time.process_time() - started
        for stream in (False, True):
            await _one(providers, kind, url, stream=stream)
            limit = asyncio.Semaphore(_CONCURRENCY)

            started = time.process_time()
            await asyncio.gather(
                *(_limited(limit, providers, kind, url, stream=stream) for _ in range(calls))
            )
            cpu_ms = (time.process_time() - started) / calls * 1_000
            print(f"{kind:18} {'stream of 50' if stream else 'whole':13} {cpu_ms:7.2f} ms CPU a call")
        rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{kind:18} loading {loaded_s:.1f} s CPU, {rss_mb} MB resident at most")
    await exchange.close()


def main() -> None:
    """Print the figures."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    upstream = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    upstream.start()
    urls = ours.recv()
    asyncio.run(_measure(urls, calls))
    upstream.terminate()


if __name__ == "__main__":
    main()
