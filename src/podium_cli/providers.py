"""Workers that this machine could offer: provider keys in the environment, model servers on loopback.

They are only listed, with the pool entry they would make, unless `podium up --use-keys` says to use them:
a key that happens to be set is no permission to send questions away.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from podium_cli.home import HOST
from podium_cli.settings import variables_set

_PROBE_S = 0.3
_MAX_LOCAL_MODELS = 8
_PORTS = {"ollama": 11434, "vllm": 8000}


@dataclass(frozen=True, slots=True)
class Provider:
    """A hosted provider that speaks the OpenAI protocol. `model` is a start; any model of theirs will do."""

    name: str
    variable: str
    base_url: str
    model: str


PROVIDERS = (
    Provider("openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-5-mini"),
    Provider(
        "gemini",
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "gemini-2.5-flash",
    ),
    Provider("mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1", "mistral-small-latest"),
    Provider("groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"),
    Provider("deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-chat"),
    Provider("xai", "XAI_API_KEY", "https://api.x.ai/v1", "grok-3-mini"),
    Provider(
        "together",
        "TOGETHER_API_KEY",
        "https://api.together.xyz/v1",
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
    ),
    Provider("openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "openrouter/auto"),
)
NOT_YET = (("anthropic", "ANTHROPIC_API_KEY"),)
"""Keys of providers with a protocol of their own: named, so that nobody wonders, but not usable yet."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A worker that could be added to the pool."""

    worker_id: str
    found: str
    model: str
    base_url: str
    variable: str = ""

    @property
    def entry(self) -> str:
        """The entry it makes under `workers:` of `pool.yaml`."""
        key = f"    key: {{env: {self.variable}}}\n" if self.variable else ""
        return (
            f"  - id: {self.worker_id}\n"
            f"    provider: openai-compatible\n"
            f"    model: {json.dumps(self.model)}\n"
            f"    base_url: {self.base_url}\n"
            f"{key}"
            f"    # Without a price it is left out wherever the cost is capped. Add what you pay:\n"
            f'    # price: {{input_usd_per_mtok: "0.00", output_usd_per_mtok: "0.00"}}\n'
        )


def offers_from_keys() -> list[Offer]:
    """Return an offer for every known provider whose key the environment holds."""
    present = set(variables_set(provider.variable for provider in PROVIDERS))
    return [
        Offer(
            provider.name, f"{provider.variable} is set", provider.model, provider.base_url, provider.variable
        )
        for provider in PROVIDERS
        if provider.variable in present
    ]


def keys_of_no_use() -> list[str]:
    """Return the variables that hold keys which this version cannot use."""
    return variables_set(variable for _, variable in NOT_YET)


async def offers_from_servers(ports: dict[str, int] | None = None) -> list[Offer]:
    """Return an offer for every model that a server on loopback says it serves."""
    ports = _PORTS if ports is None else ports
    timeout = aiohttp.ClientTimeout(total=_PROBE_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        found = await asyncio.gather(*(_models(session, port) for port in ports.values()))
    return [
        Offer(_worker_id(kind, model), f"{kind} serves it on port {port}", model, f"http://{HOST}:{port}/v1")
        for (kind, port), models in zip(ports.items(), found, strict=True)
        for model in models[:_MAX_LOCAL_MODELS]
    ]


async def _models(session: aiohttp.ClientSession, port: int) -> list[str]:
    """Return the models of an OpenAI-compatible server; none when there is no such server."""
    try:
        async with session.get(f"http://{HOST}:{port}/v1/models", allow_redirects=False) as response:
            body: Any = await response.json() if response.ok else {}
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return []
    models = body.get("data") if isinstance(body, dict) else None
    ids = [model.get("id") for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    return [name for name in ids if isinstance(name, str) and name.isprintable()]


def _worker_id(kind: str, model: str) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in model)
    return f"{kind}-{plain}"[:64]


def add_to_pool(
    pool_yaml: str, offers: Sequence[Offer], taken_ids: frozenset[str]
) -> tuple[str, list[Offer]]:
    """Return `pool_yaml` with the offers that it lacks appended, and which these were."""
    new = [offer for offer in offers if offer.worker_id not in taken_ids]
    return pool_yaml.rstrip("\n") + "\n" + "".join(offer.entry for offer in new), new
